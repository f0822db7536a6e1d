"""The end of the transcript as plain text, for the normal screen after the app has gone (rule CL-8). PURE."""

from __future__ import annotations

from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.tui.draw.paint import Painter
from pi_durable_tui.tui.palette import DARK
from pi_durable_tui.tui.projection import Projection


def last_lines(view: ConversationView, count: int, *, width: int = 80) -> tuple[str, ...]:
    """At most `count` lines, oldest first, each at most `width` cells, without colour; safe to print (rule SA-1).

    Args:
        count: 0 or more. The first line is never blank.
        width: At least 8.
    """
    painter = Painter(width=width, palette=DARK)
    lines: list[str] = []
    for row in reversed(Projection().apply(view).rows):
        lines[:0] = [line.plain.rstrip() for line in painter.lines(row, unfolded=False, now_ms=view.committed_at_ms)]
        if len(lines) > count:
            break
    kept = lines[max(0, len(lines) - count) :]
    while kept and not kept[0]:
        del kept[0]
    return tuple(kept)
