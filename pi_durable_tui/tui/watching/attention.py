"""Calls somebody back who looks elsewhere (rule TU-20). When, is decided by what was seen before and what is seen now, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pi_durable_tui.tui.app import PidurableApp
    from pi_durable_tui.tui.following import Sight

LONG_MS = 10_000
"""A run that took at least so long is one that people do something else during."""


def call_back(app: PidurableApp, before: Sight | None, now: Sight) -> None:
    """Let the terminal ring when there is a reason to, its window is not looked at, and the person lets it."""
    house = app.bridge.house if app.bridge is not None else None
    if not app.app_focus and (house is None or house.rings) and calls_back(before, now):
        app.bell()


def calls_back(before: Sight | None, now: Sight) -> bool:
    """Whether a question has come up, here or in a subagent, or a long run has ended, whatever its end. PURE.

    Args:
        before: What was shown before; None, or another conversation: what stands there is not news.
    """
    if before is None or before.view.conversation.id != now.view.conversation.id:
        return False
    asked = {slot.question for _, slot in before.questions()}
    if any(slot.question not in asked for _, slot in now.questions()):
        return True
    run = before.view.live.run
    return run is not None and now.view.live.run is None and now.view.committed_at_ms - run.started_at_ms >= LONG_MS
