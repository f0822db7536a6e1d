"""What stands at the cursor of the composer: a mention (`@file`) or a path, and how a choice takes its place. PURE."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

_MENTION = re.compile(r"(?:^|(?<=[\s(\[{\"'`]))@(\"[^\"\n]*|[^\s\"]*)$")
_PATH = re.compile(r"(?:\\.|[^\s\\\"'`()<>|;&])*$")


class Token(Struct, frozen=True):
    """A piece of text that ends at the cursor: `text`, and `start`, the index of its first character (the "@" of a mention)."""

    text: str
    start: int


def mention(before: str) -> Token | None:
    """The mention that ends at the end of `before`; None when there is none."""
    found = _MENTION.search(before)
    return Token(found[1].lstrip('"'), found.start()) if found else None


def path(before: str) -> Token:
    """The path that ends at the end of `before`, without backslashes; may be empty."""
    found = _PATH.search(before)
    raw = found[0] if found else ""
    raw = raw.removeprefix("@")
    return Token(re.sub(r"\\(.)", r"\1", raw), len(before) - len(raw))


def mention_text(name: str) -> str:
    """A mention of a file as it is sent: names with blanks in quotes."""
    return f'@"{name}"' if re.search(r"\s", name) else f"@{name}"


def common(names: Sequence[str]) -> str:
    """What all names begin with."""
    first, last = min(names, default=""), max(names, default="")
    length = next((index for index, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), min(len(first), len(last)))
    return first[:length]


def history_matches(sent: Sequence[str], query: str) -> list[str]:
    """What was sent before and holds all words of `query`, newest first, each once."""
    words = query.lower().split()
    found = [text for text in reversed(sent) if all(word in text.lower() for word in words)]
    return list(dict.fromkeys(found))
