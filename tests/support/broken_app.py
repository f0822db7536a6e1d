"""The program with one thing in it that breaks: `python -m tests.support.broken_app widget|background …arguments of the program…`."""

from __future__ import annotations

import sys
from typing import Any

from pi_durable_tui.cli import terminal
from pi_durable_tui.cli.main import main
from pi_durable_tui.tui.widgets.prompt import Prompt

WORDS = "broken on purpose [/ here"


def _broken_handler(self: Prompt, event: Any) -> None:
    raise ValueError(WORDS)


async def _broken_work() -> None:
    raise ValueError(WORDS)


_open = terminal._Start._open


async def _open_and_break(self: Any, screen: Any) -> Any:
    shown = await _open(self, screen)
    self._spawn(_broken_work())
    return shown


if __name__ == "__main__":
    match sys.argv.pop(1):
        case "widget":
            Prompt.on_text_area_changed = _broken_handler
        case "background":
            terminal._Start._open = _open_and_break
    main()
