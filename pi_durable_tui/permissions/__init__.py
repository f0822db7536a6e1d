"""What the agent may do without asking: pure rules over approval modes, standing permissions, paths and shell commands (safety.md, "Tools").

A question is a courtesy, no wall: a command that was allowed can do whatever its user can.
"""
