"""Which texts fit what is typed, and in which order: words that stand in them first, then letters that come in this order. PURE."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
MAX_TYPED = 64


def fitting(items: Iterable[T], typed: str, *, label: Callable[[T], str], more: Callable[[T], str]) -> list[T]:
    """The items that fit, best first; all of them, as they are, while nothing is typed.

    Args:
        label: What an item is called. All words in it is best, a word that begins it before one in its middle.
        more: What else is said of it. Words in there count less.
    """
    words = typed.lower()[:MAX_TYPED].split()
    if not words:
        return list(items)
    ranked = [(rank, item) for item in items if (rank := _rank(label(item).lower(), more(item).lower(), words)) is not None]
    return [item for _, item in sorted(ranked, key=lambda pair: pair[0])]


def _rank(label: str, more: str, words: list[str]) -> tuple[int, int] | None:
    if all(word in label for word in words):
        return (0 if any(label.startswith(word) for word in words) else 1, 0)
    if all(word in label or word in more for word in words):
        return (2, 0)
    spans = [_span(label, word) for word in words]
    return None if None in spans else (3, sum(span for span in spans if span is not None))


def _span(text: str, letters: str) -> int | None:
    """How far apart the letters stand at their first place in this order; None: they do not."""
    at = first = text.find(letters[0])
    for letter in letters[1:]:
        at = text.find(letter, at + 1) if at >= 0 else -1
    return at - first if at >= 0 else None
