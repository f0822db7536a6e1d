"""The task `pi.subagent`: work that a tool call hands to a conversation of its own (rules TO-7, FB-27)."""
