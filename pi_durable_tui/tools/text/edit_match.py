"""PURE. Finds the places that edits name: exactly, each once, none overlapping, all or nothing (CASE-C3, CASE-C4).

A text that is not there is never replaced by one that is similar; the similar one is shown instead.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass

SHOWN_PLACES = 5
COUNTED_PLACES = 100
COMPARED_LINES = 5_000  # of the file, when the closest text is looked for
COMPARED_CHARS = 160  # of a line
SHOWN_LINES = 12
SIMILAR = 0.6
_COPY_IT = "Copy the text exactly as it is in the file."

_TYPOGRAPHY = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2009\u202f\u3000", " "),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One edit: replace `old` by `new`, where it stands once, or everywhere. Line endings are plain newlines."""

    old: str
    new: str
    everywhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """Characters `start` up to `end` of the text become `new`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """Why nothing may be replaced, in words that say the next step."""

    message: str


def plan(text: str, edits: tuple[Wanted, ...]) -> tuple[Replacement, ...] | Mismatch:
    """Where all `edits` apply to `text`, each looked for in the text as it is now, in order of place; or why none of them may.

    Returns:
        Replacements that do not overlap, by rising start; at least one per edit.
    """
    found: list[tuple[int, Replacement]] = []
    for number, edit in enumerate(edits, 1):
        name = f"Edit {number}" if len(edits) > 1 else "The edit"
        places = _places(text, edit, name)
        if isinstance(places, Mismatch):
            return places
        found += [(number, Replacement(start=start, end=start + len(edit.old), new=edit.new)) for start in places]
    found.sort(key=lambda item: (item[1].start, item[1].end))
    for (number, one), (other, two) in itertools.pairwise(found):
        if two.start < one.end:
            return Mismatch(message=f"Edits {min(number, other)} and {max(number, other)} overlap at line {line_of(text, two.start)}. Join them into one edit.")
    return tuple(item[1] for item in found)


def apply(text: str, replacements: tuple[Replacement, ...]) -> str:
    """The text with all replacements made. They must not overlap and must rise."""
    parts: list[str] = []
    position = 0
    for replacement in replacements:
        parts += [text[position : replacement.start], replacement.new]
        position = replacement.end
    return "".join([*parts, text[position:]])


def line_of(text: str, position: int) -> int:
    """The number, from 1, of the line that `position` is in."""
    return text.count("\n", 0, position) + 1


def _places(text: str, edit: Wanted, name: str) -> list[int] | Mismatch:
    if not edit.old:
        return Mismatch(message=f"{name} has an empty old text. Name the text to replace; use write to fill an empty file.")
    if edit.old == edit.new:
        return Mismatch(message=f"{name} would change nothing: old and new are the same.")
    every = _all_places(text, edit.old)
    if not every:
        return Mismatch(message=f"{name}: the old text is not in the file. {_explain(text, edit.old)}")
    if len(every) == 1:
        return every
    if not edit.everywhere:
        where = f"{_count(every)} times, at lines {_lines(text, every)}"
        return Mismatch(message=f"{name}: the old text is in the file {where}. Add lines around it to name one place, or set replace_all.")
    apart = _places_apart(text, edit.old)
    if apart is None:
        return Mismatch(
            message=f"{name}: places of the old text overlap each other (lines {_lines(text, every)}), so that replacing all is ambiguous. Name each place."
        )
    return apart


def _all_places(text: str, old: str) -> list[int]:
    """Every place, overlapping ones too, at most COUNTED_PLACES."""
    places: list[int] = []
    start = text.find(old)
    while start >= 0 and len(places) < COUNTED_PLACES:
        places.append(start)
        start = text.find(old, start + 1)
    return places


def _places_apart(text: str, old: str) -> list[int] | None:
    """Every place; None when two of them overlap."""
    places: list[int] = []
    start = text.find(old)
    while start >= 0:
        places.append(start)
        end = start + len(old)
        if text.find(old, start + 1, end + len(old) - 1) >= 0:
            return None
        start = text.find(old, end)
    return places


def _count(places: list[int]) -> str:
    return f"{len(places)}" if len(places) < COUNTED_PLACES else f"at least {COUNTED_PLACES}"


def _lines(text: str, places: list[int]) -> str:
    shown = ", ".join(str(line_of(text, place)) for place in places[:SHOWN_PLACES])
    return shown + (" …" if len(places) > SHOWN_PLACES else "")


def _explain(text: str, old: str) -> str:
    """The closest text, where it is, and in what it differs when that has a name."""
    lines = text.split("\n")
    wanted = old.strip("\n").split("\n")
    for difference, fold in (("blanks and tabs", _fold_blanks), ("quotes, dashes or special blanks", _fold_all)):
        start = _folded(lines, wanted, fold)
        if start is not None:
            where = f"Lines {start + 1}-{start + len(wanted)} differ from it only in {difference}"
            return f"{where}:\n{_quote(lines, start, len(wanted))}\n{_COPY_IT}"
    start = _closest(lines, wanted)
    if start is None:
        return "Nothing similar is in it. Read the file again."
    return f"The closest text begins at line {start + 1}:\n{_quote(lines, start, len(wanted))}\n{_COPY_IT}"


def _fold_blanks(line: str) -> str:
    return re.sub(r"[ \t]+", " ", line).strip()


def _fold_all(line: str) -> str:
    return _fold_blanks(line.translate(_TYPOGRAPHY))


def _folded(lines: list[str], wanted: list[str], fold: Callable[[str], str]) -> int | None:
    """The first line from which the file equals `wanted` when both are folded; the last and first line may go on beyond."""
    folded = [fold(line) for line in wanted]
    if not any(folded):
        return None
    file = [fold(line) for line in lines]
    for start in range(len(file) - len(folded) + 1):
        if (
            folded[0] in file[start]
            and all(file[start + index] == line for index, line in enumerate(folded[1:-1], 1))
            and folded[-1] in file[start + len(folded) - 1]
        ):
            return start
    return None


def _closest(lines: list[str], wanted: list[str]) -> int | None:
    """Where the text would begin if its longest line were the most similar line of the file; None when none is similar."""
    anchor = max(range(len(wanted)), key=lambda index: len(wanted[index].strip()))
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[anchor].strip()[:COMPARED_CHARS])
    best, at = SIMILAR, None
    for index, line in enumerate(lines[:COMPARED_LINES]):
        matcher.set_seq1(line.strip()[:COMPARED_CHARS])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, at = ratio, index
    return None if at is None else max(0, at - anchor)


def _quote(lines: list[str], start: int, count: int) -> str:
    shown = [line[:COMPARED_CHARS] for line in lines[start : start + min(count, SHOWN_LINES)]]
    return "\n".join(["---", *shown, *(["…"] if count > SHOWN_LINES else []), "---"])
