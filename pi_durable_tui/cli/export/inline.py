"""The little Markdown that makes an answer readable in a browser: code, headings, lists, emphasis, and nothing that loads or links. PURE.

What comes out is made of a closed set of tags without attributes, with every other character escaped; so no text, whatever is in it,
can become markup of its own.
"""

from __future__ import annotations

import html
import re

_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$")
_ITEM = re.compile(r"^(\s*)(?:[-*+]|\d{1,9}[.)])\s+")
_RULE = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
_INLINE = re.compile(r"`([^`\n]+)`|\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*")
_FIRST_HEADING = 3  # h1 and h2 are the document's own


def escaped(text: str) -> str:
    """The text as it stands in an element or an attribute."""
    return html.escape(text, quote=True)


def answer_html(text: str) -> str:
    """A Markdown text as safe HTML."""
    blocks: list[str] = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        if fence := _FENCE.match(line):
            end = next((n for n in range(at + 1, len(lines)) if lines[n].strip().startswith(fence[1]) and not lines[n].strip().strip(fence[1][0])), len(lines))
            blocks.append(f"<pre><code>{escaped(chr(10).join(lines[at + 1 : end]))}</code></pre>")
            at = end + 1
        elif heading := _HEADING.match(line):
            level = min(6, len(heading[1]) + _FIRST_HEADING - 1)
            blocks.append(f"<h{level}>{_inline(heading[2])}</h{level}>")
            at += 1
        elif not line.strip():
            at += 1
        else:
            end = next((n for n in range(at, len(lines)) if not lines[n].strip() or _FENCE.match(lines[n]) or _HEADING.match(lines[n])), len(lines))
            blocks.append(_table(lines[at:end]) or _paragraph(lines[at:end]))
            at = end
    return "".join(blocks)


def _table(lines: list[str]) -> str:
    """Lines that are a table; "" for others."""
    if len(lines) < 2 or "|" not in lines[0] or not _RULE.match(lines[1]) or "|" not in lines[1]:
        return ""
    rows = [[cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")] for line in (lines[0], *lines[2:])]
    head, *body = ["".join(f"<{kind}>{_inline(cell)}</{kind}>" for cell in row) for kind, row in zip(["th", *["td"] * len(rows)], rows, strict=False)]
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in body)}</tbody></table>"


def _paragraph(lines: list[str]) -> str:
    """A paragraph keeps its lines; those of a list keep their places."""
    kind = "div" if any(_ITEM.match(line) for line in lines) else "p"
    return f"<{kind}>{'<br>'.join(_spaced(line) for line in lines)}</{kind}>"


def _spaced(line: str) -> str:
    indent = len(line) - len(line.lstrip(" "))
    return "\u00a0" * indent + _inline(line[indent:])


def _inline(text: str) -> str:
    pieces: list[str] = []
    at = 0
    for match in _INLINE.finditer(text):
        pieces.append(escaped(text[at : match.start()]))
        pieces.append(f"<code>{escaped(match[1])}</code>" if match[1] is not None else f"<strong>{escaped(match[2])}</strong>")
        at = match.end()
    return "".join([*pieces, escaped(text[at:])])
