"""The task `pi.compaction`: an old part of the context becomes a summary (durable.md, section 9)."""
