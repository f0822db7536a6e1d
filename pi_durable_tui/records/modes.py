"""The words that say how an agent works, as they are stored, typed and shown. Apart from the rest, because the screen needs them first (speed.md)."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

ThinkingLevel: TypeAlias = Literal["off", "low", "medium", "high"]
"""How much a model reasons."""

ApprovalMode: TypeAlias = Literal["ask", "edits", "all", "plan"]
"""What an agent may do unasked."""

THINKING_LEVELS: tuple[ThinkingLevel, ...] = get_args(ThinkingLevel)
APPROVAL_MODES: tuple[ApprovalMode, ...] = get_args(ApprovalMode)
