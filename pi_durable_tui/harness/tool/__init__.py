"""The task `pi.tool`: one call of one tool, with its intent stored before anything is done (durable.md, section 8)."""
