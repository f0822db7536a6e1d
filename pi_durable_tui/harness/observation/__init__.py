"""Looking at a session while it works: frames of a conversation, agent events, the graph of tasks (durable.md, section 12)."""
