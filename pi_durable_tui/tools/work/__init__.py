"""The tools with which the agent keeps its own work in order (rule AG-2)."""
