"""The tools with which the agent keeps its own work in order: its list of things to do, and its commands in the background (rules AG-2, TO-10)."""
