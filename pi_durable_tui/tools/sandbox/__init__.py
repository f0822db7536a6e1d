"""The optional wall around commands: what bubblewrap is told, and the proof that it holds on this machine (rule SA-15)."""
