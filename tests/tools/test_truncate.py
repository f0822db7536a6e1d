"""Cutting texts to what a model may be given."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.tools.text.truncate import Cut, head_and_tail, head_within, line_count, size_text, tail_within

TEXTS = st.text(alphabet="aé😀\n", max_size=60)


def test_a_text_within_the_limits_stays_whole():
    assert head_and_tail("a\nb\n") == Cut(head="a\nb\n")


def test_a_long_text_keeps_its_start_and_more_of_its_end():
    text = "".join(f"{number}\n" for number in range(100))
    assert head_and_tail(text, max_lines=10) == Cut(
        head="0\n1\n", tail="".join(f"{number}\n" for number in range(92, 100)), left_out_lines=90, left_out_bytes=262
    )


@given(TEXTS, st.integers(1, 40), st.integers(1, 6))
def test_both_parts_are_within_the_limits_and_really_of_the_text(text: str, max_bytes: int, max_lines: int):
    head = head_within(text, max_bytes=max_bytes, max_lines=max_lines)
    tail = tail_within(text, max_bytes=max_bytes, max_lines=max_lines)
    assert text.startswith(head)
    assert text.endswith(tail)
    for part in (head, tail):
        assert len(part.encode()) <= max_bytes
        assert line_count(part) <= max_lines


@given(TEXTS)
def test_a_text_is_kept_whole_exactly_when_it_fits(text: str):
    cut = head_and_tail(text, max_bytes=20, max_lines=4)
    assert (cut == Cut(head=text)) == (len(text.encode()) <= 20 and line_count(text) <= 4)


def test_sizes_are_told_in_units_of_people():
    assert [size_text(size) for size in (0, 999, 1_400, 3_000_000, 5_363_666_981)] == ["0 bytes", "999 bytes", "1.4 KB", "3.0 MB", "5.4 GB"]
