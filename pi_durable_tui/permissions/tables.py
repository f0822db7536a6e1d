"""PURE. How the tables of this package are written."""

from __future__ import annotations


def words_of(text: str) -> frozenset[str]:
    """The words of a text; a table of names reads best as a text."""
    return frozenset(text.split())
