"""The names of the built-in task kinds, as they are stored. What each kind does stands in the package that bears its name."""

from __future__ import annotations

GENERATION = "pi.generation"
TOOL = "pi.tool"
QUESTION = "pi.question"
BACKGROUND = "pi.background"
SUBAGENT = "pi.subagent"
COMPACTION = "pi.compaction"
