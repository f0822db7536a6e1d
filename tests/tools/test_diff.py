"""The bounded unified diff."""

from __future__ import annotations

import difflib

from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.tools.text.diff import unified

LINES = st.lists(st.sampled_from(["a", "b", "c", "d", ""]), max_size=25).map(lambda lines: "".join(f"{line}\n" for line in lines))


def test_a_change_is_shown_with_its_context_and_counted():
    diff = unified("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\nand\n6\n7\n8\n9\n")
    assert diff.text == "@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n+and\n 6\n 7\n 8"
    assert (diff.added, diff.removed, diff.cut) == (2, 1, False)


def test_a_missing_newline_at_the_end_is_said():
    assert unified("a\n", "a").text == "@@ -1,1 +1,1 @@\n-a\n+a\n\\ No newline at end of file"


def test_a_huge_change_is_counted_whole_and_shown_in_part():
    diff = unified("x\n" * 5_000, "y\n" * 4_000)
    assert (diff.added, diff.removed, diff.cut) == (4_000, 5_000, True)
    assert len(diff.text) < 40_000


@given(LINES, LINES)
def test_hunks_say_where_they_are(before: str, after: str):
    """Applying the hunks to the old text gives the new one."""
    old, result, position = before.split("\n")[:-1], [], 0
    text = unified(before, after).text
    for line in text.split("\n") if text else []:
        if line.startswith("@@"):
            start, count = (int(number) for number in line.split(" ")[1][1:].split(","))
            begin = start - 1 if count else start
            result += old[position:begin]
            position = begin
        elif line.startswith("+"):
            result.append(line[1:])
        else:
            assert old[position] == line[1:]
            position += 1
            if line.startswith(" "):
                result.append(line[1:])
    assert result + old[position:] == after.split("\n")[:-1]


def test_the_counts_are_those_of_difflib_where_nothing_is_trimmed():
    before, after = "a\nb\nc\n", "x\nb\ny\n"
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm=""))[2:]
    assert unified(before, after).added == sum(line.startswith("+") for line in lines)
