"""What extensions bring: task kinds, hooks, and the registry that all of it is installed in (durable.md, section 11)."""
