"""When somebody who looks elsewhere is called back (rule TU-20). PURE: what was seen before and what is seen now, in; yes or no, out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pi_durable_tui.tui.following import Sight

LONG_MS = 10_000
"""A run that took at least so long is one that people do something else during."""


def calls_back(before: Sight | None, now: Sight) -> bool:
    """Whether a question has come up, here or in a subagent, or a long run has ended, whatever its end.

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
