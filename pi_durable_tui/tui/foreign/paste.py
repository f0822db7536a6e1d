"""Reads what a terminal sends, and takes a bracketed paste as one piece (rules TU-10, TU-12; CASE-E3).

The library's parser looks at every character of a paste, which takes seconds for one of megabytes, and takes escape sequences inside of
it for keys. Here everything between the two marks is cut out ahead of it; all else goes to it as it came. What may be the beginning of
a mark is held back until more comes, or nothing does. Alt+Enter, which most terminals send as Escape and Enter, is one key here.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from textual._xterm_parser import XTermParser
from textual.events import Paste
from textual.message import Message

START, END = "\x1b[200~", "\x1b[201~"
_ESCAPE_ENTER, _ALT_ENTER = "\x1b\r", "\x1b[13;3u"  # the library knows the second one only


class PasteParser:
    """Feed it what was read; it gives the events. Used on the thread that reads."""

    def __init__(self, parser: XTermParser) -> None:
        self._parser = parser
        self._paste: list[str] | None = None  # inside of a paste: what has come of it
        self._held = ""  # the end of what came, when it may begin a mark

    @property
    def is_holding(self) -> bool:
        """Whether something waits that may be a key, Escape above all, here or in the library's parser: tick soon."""
        return self._paste is None and (bool(self._held) or self._parser._timeout_time is not None)  # noqa: SLF001 - the library does not tell

    def feed(self, data: str) -> Iterator[Message]:
        """The events of some more characters, in order."""
        data, self._held = self._held + data, ""
        while data:
            data = yield from (self._typed(data) if self._paste is None else self._pasted(data, self._paste))

    def tick(self, *, is_quiet: bool) -> Iterator[Message]:
        """What a pause means: what was held back is no mark, an Escape that no sequence followed is a key.

        Args:
            is_quiet: Nothing came since the last read.
        """
        if self._paste is None:
            if is_quiet and self._held:
                held, self._held = self._held, ""
                yield from self._parser.feed(held)
            yield from self._parser.tick()

    def _typed(self, data: str) -> Generator[Message, None, str]:
        before, mark, rest = data.partition(START)
        if mark:
            self._paste = []
        else:
            before, self._held = _split(data, START)
        if before:
            yield from self._parser.feed(before.replace(_ESCAPE_ENTER, _ALT_ENTER))
        return rest

    def _pasted(self, data: str, paste: list[str]) -> Generator[Message, None, str]:
        before, mark, rest = data.partition(END)
        if mark:
            self._paste = None
            yield Paste("".join([*paste, before]).replace("\x00", ""))
        else:
            before, self._held = _split(data, END)
            paste.append(before)
        return rest


def _split(data: str, mark: str) -> tuple[str, str]:
    """The text without what may be the beginning of a mark at its end, and that. PURE."""
    for length in range(min(len(mark) - 1, len(data)), 0, -1):
        if data.endswith(mark[:length]):
            return data[:-length], data[-length:]
    return data, ""
