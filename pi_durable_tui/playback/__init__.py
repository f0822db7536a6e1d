"""Recorded sessions: how they are read, played through the real harness and tools, and compared with what was recorded."""
