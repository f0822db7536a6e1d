"""The task `pi.generation`: one run of a conversation, turn by turn (durable.md, section 7)."""
