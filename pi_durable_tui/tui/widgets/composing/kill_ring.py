"""What was killed, for yanking it back (rule TU-10), as in a shell: kills in a row are one. PURE."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

KEPT = 30


@dataclass(slots=True)
class KillRing:
    """The newest kill last. `yank` starts there; `rotate` goes to the one before, around the end."""

    _kills: list[str] = field(default_factory=list[str])
    _at: int = 0
    _joins: bool = False

    def kill(self, text: str, side: Literal["left", "right"]) -> None:
        """Keep a text that stood left or right of the cursor; right after another kill it is joined to that one."""
        if not text:
            return
        if self._joins and self._kills:
            last = self._kills[-1]
            self._kills[-1] = text + last if side == "left" else last + text
        else:
            self._kills = [*self._kills, text][-KEPT:]
        self._joins = True
        self._at = len(self._kills) - 1

    def other_key(self) -> None:
        """Something else was done: the next kill is one of its own."""
        self._joins = False

    def yank(self) -> str:
        """The newest kill; "" when nothing was killed."""
        self._at = len(self._kills) - 1
        return self._kills[-1] if self._kills else ""

    def rotate(self) -> str:
        """The kill before the one that was yanked last."""
        if not self._kills:
            return ""
        self._at = (self._at - 1) % len(self._kills)
        return self._kills[self._at]
