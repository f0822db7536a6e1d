"""PURE. A bounded unified diff for people, and how many lines a change adds and removes."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from pi_durable_tui.records.json import JsonObject

CONTEXT_LINES = 3
COMPARED_LINES = 1_500  # beyond this a changed region is shown as removed and added whole: comparing costs the square of it
SHOWN_LINES = 400
SHOWN_CHARS = 32_768


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """`text` is a unified diff without file headers; `cut` says that it was too long to be shown whole. The counts are always whole."""

    text: str
    added: int
    removed: int
    cut: bool

    def to_json(self) -> JsonObject:
        """The form that result details carry."""
        return {"diff": self.text, "added": self.added, "removed": self.removed, "diffCut": self.cut}


def unified(before: str, after: str) -> Diff:
    """The difference of two texts. Lines end at a newline; a missing one at the end is said as `diff` says it."""
    old, new = _lines(before), _lines(after)
    start = 0
    shortest = min(len(old), len(new))
    while start < shortest and old[start] == new[start]:
        start += 1
    end = 0
    while end < shortest - start and old[-1 - end] == new[-1 - end]:
        end += 1
    removed, added = old[start : len(old) - end], new[start : len(new) - end]
    if not removed and not added:
        return Diff(text="", added=0, removed=0, cut=False)
    opcodes = _opcodes(removed, added)
    lead = min(CONTEXT_LINES, start)
    trail = min(CONTEXT_LINES, end)
    old_end, new_end = len(old) - end, len(new) - end
    whole = [
        ("equal", start - lead, start, start - lead, start),
        *((tag, a + start, b + start, c + start, d + start) for tag, a, b, c, d in opcodes),
        ("equal", old_end, old_end + trail, new_end, new_end + trail),
    ]
    changed = [code for code in opcodes if code[0] != "equal"]
    shown: list[str] = []
    for group in _grouped(whole):
        shown.extend(_hunk(group, old, new))
    text, cut = _bounded(shown)
    return Diff(text=text, added=sum(code[4] - code[3] for code in changed), removed=sum(code[2] - code[1] for code in changed), cut=cut)


_Opcode = tuple[str, int, int, int, int]


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
        return lines
    lines[-1] += "\n\\ No newline at end of file"
    return lines


def _opcodes(removed: list[str], added: list[str]) -> list[_Opcode]:
    if len(removed) > COMPARED_LINES or len(added) > COMPARED_LINES:
        return [("replace", 0, len(removed), 0, len(added))]
    return list(difflib.SequenceMatcher(None, removed, added).get_opcodes())


def _grouped(opcodes: list[_Opcode]) -> list[list[_Opcode]]:
    """The opcodes of each hunk: long equal stretches part them and are cut to their context."""
    groups: list[list[_Opcode]] = [[]]
    for tag, a, b, c, d in opcodes:
        if tag == "equal" and b - a > 2 * CONTEXT_LINES:
            groups[-1].append((tag, a, a + CONTEXT_LINES, c, c + CONTEXT_LINES))
            groups.append([(tag, b - CONTEXT_LINES, b, d - CONTEXT_LINES, d)])
        elif b > a or d > c:
            groups[-1].append((tag, a, b, c, d))
    return groups


def _hunk(group: list[_Opcode], old: list[str], new: list[str]) -> list[str]:
    first, last = group[0], group[-1]
    old_count, new_count = last[2] - first[1], last[4] - first[3]
    old_start = first[1] + (1 if old_count else 0)
    new_start = first[3] + (1 if new_count else 0)
    shown = [f"@@ -{old_start},{old_count} +{new_start},{new_count} @@"]
    for tag, a, b, c, d in group:
        if tag == "equal":
            shown += [f" {line}" for line in old[a:b]]
            continue
        shown += [f"-{line}" for line in old[a:b]]
        shown += [f"+{line}" for line in new[c:d]]
    return shown


def _bounded(lines: list[str]) -> tuple[str, bool]:
    kept: list[str] = []
    room = SHOWN_CHARS
    for line in lines[:SHOWN_LINES]:
        if len(line) > room:
            kept.append(line[:room] + "…")
            return "\n".join(kept), True
        room -= len(line) + 1
        kept.append(line)
    return "\n".join(kept), len(lines) > SHOWN_LINES
