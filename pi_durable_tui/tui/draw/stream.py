"""A growing Markdown text as lines, at a cost that does not grow with it (rule TU-2). PURE: text in, lines out.

Each block that is final is drawn once, the last one again and again; of an open fence all but the last lines are drawn once,
and the whole of it when it closes.
"""

from __future__ import annotations

from rich.text import Text

from pi_durable_tui.tui.draw.markdown import Block, Joint, MarkdownPainter, language_of, spans

_FENCE_CHUNK_LINES = 16


class MarkdownStream:
    """The lines of a text that grows at its end; what is final is drawn once.

    `lines` holds all lines as of the last `show`. Texts that do not continue the one before start anew.
    """

    def __init__(self, painter: MarkdownPainter) -> None:
        self._painter = painter
        self._restart()

    def _restart(self) -> None:
        self.lines: list[Text] = []
        self._text = ""
        self._frozen_chars = 0
        self._frozen_lines = 0
        self._gap = False  # a blank line stands before the first block that is not frozen
        self._joins: Joint | None = None  # that block goes on with the line before it
        self._in_fence = False
        self._fence_drawn = 0  # lines up to here hold what of the open fence is drawn for good
        self._fence_done = 0  # lines of code that those are

    @property
    def text(self) -> str:
        """What `lines` show."""
        return self._text

    def show(self, text: str) -> int:
        """Draw `text`.

        Returns:
            The index of the first line that may differ from before; everything ahead of it is unchanged.
        """
        if not text.startswith(self._text):
            self._restart()
        self._text = text
        kept = self._frozen_lines
        tail = text[self._frozen_chars :]
        pieces = list(spans(tail, self._joins))
        if not self._in_fence:
            del self.lines[self._frozen_lines :]
        for index, (start, end, gap, is_open, joins) in enumerate(pieces):
            block = Block(text=tail[start:end].rstrip("\n"), gap=gap or (index == 0 and self._gap), is_open_fence=is_open, joins=joins)
            if is_open:
                return min(kept, self._show_fence(block)) if not self._in_fence else self._show_fence(block)
            if self._in_fence:
                del self.lines[self._frozen_lines :]
                self._in_fence = False
            self.lines += self._painter.block(block)
            # A line that is still growing may yet join the block before it ("-" becoming "---"); only a whole one ends a block.
            following = pieces[index + 1] if index < len(pieces) - 1 else None
            if following is not None and (following.joins is not None or "\n" in tail[following.start :]):
                self._frozen_chars = len(text) - len(tail) + (end if following.joins is None else following.start)
                self._frozen_lines, self._gap, self._joins = len(self.lines), following.gap, following.joins
        return kept

    def _show_fence(self, block: Block) -> int:
        """All but the last chunk of an open fence is drawn once; the whole is drawn anew when it closes."""
        first, _, code = block.text.partition("\n")
        code_lines = code.split("\n")
        if not self._in_fence:
            del self.lines[self._frozen_lines :]
            if block.gap:
                self.lines.append(Text("", end=""))
            self._in_fence, self._fence_drawn, self._fence_done = True, len(self.lines), 0
        del self.lines[self._fence_drawn :]
        changed = self._fence_drawn
        language = language_of(first)
        while len(code_lines) - self._fence_done > 2 * _FENCE_CHUNK_LINES:
            chunk = code_lines[self._fence_done : self._fence_done + _FENCE_CHUNK_LINES]
            self.lines += self._painter.code("\n".join(chunk), language, self._painter.width)
            self._fence_done += _FENCE_CHUNK_LINES
            self._fence_drawn = len(self.lines)
        self.lines += self._painter.code("\n".join(code_lines[self._fence_done :]), language, self._painter.width)
        return changed
