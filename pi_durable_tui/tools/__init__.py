"""The tools of the agent and the door to files and processes that they act through (durable.md section 8; safety.md, "Tools")."""
