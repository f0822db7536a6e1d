"""Program output as plain text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.tools.text.terminal_text import PlainStream, plain


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("P 10%\rP 20%\rP 100%\nDone\n", "P 100%\nDone\n"),
        ("\x1b[5A\x1b[2Kx\x1b[?1049h\x1b[?25l\x1b[31mred\x1b[0m", "xred"),
        ("a\bb\x07\x1b", "b"),
        ("windows\r\nlines\r\n", "windows\nlines\n"),
        ("long line\rshort", "shortline"),
        ("long line\rshort\x1b[K", "short"),
        ("long line\r\x1b[2Kshort", "short"),
        ("abc\x1b[2Kd", "   d"),
        ("abc\b\b\x1b[KX", "aX"),
        ("ab\x1b]0;title\x07cd\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\", "abcdlink"),
        ("A\x1b]52;c;UFdORUQ=\x07 B\x1b]0;T\x07\x1b[2J\x9b2J\x1b[6n\x1bPq\x1b\\end\x1b]", "A Bend"),
        ("x\x1b]never ended\nnext", "x\nnext"),
        ("tab\tstays", "tab\tstays"),
        ("shift \x0e\x0f out", "shift  out"),
    ],
)
@pytest.mark.rule("CASE-D5", "CASE-G1")
def test_output_becomes_what_a_screen_would_show(output: str, shown: str):
    assert plain(output) == shown


@pytest.mark.rule("CASE-D5")
def test_ten_thousand_progress_steps_are_one_line():
    assert plain("".join(f"\r{step / 100:.2f} %" for step in range(10_001)) + "\n") == "100.00 %\n"


ODD = st.text(alphabet=st.sampled_from("ab\r\n\b\t\x1b[]K2;\x9b\x9d\x07\\\x00 "), max_size=60)


@given(ODD)
def test_nothing_that_moves_a_terminal_is_left(output: str):
    assert [char for char in plain(output) if (ord(char) < 32 and char not in "\n\t") or 127 <= ord(char) < 160] == []


@pytest.mark.parametrize("piece", ["\x1b]a", "\x9d", "\x1b[1;", "ab\x1b[2K", "x\b", "a\r", "\x1b[K\b", "\x1bP1", "\x1b "])
def test_the_cost_grows_with_the_length_only(piece: str):
    plain(piece * (1_000_000 // len(piece)))  # the time limit of the run would end anything quadratic


@given(st.lists(ODD, max_size=6))
def test_text_in_pieces_ends_in_the_same_lines_when_nothing_is_overwritten(pieces: list[str]):
    pieces = [piece.replace("\r", "").replace("\b", "") for piece in pieces]
    whole = "".join(pieces)
    if "\x1b" in whole or "\x9b" in whole or "\x9d" in whole:
        return
    stream = PlainStream()
    assert "".join([stream.feed(piece) for piece in pieces]) + stream.finish() == plain(whole)


def test_an_escape_sequence_cut_between_pieces_is_not_shown():
    stream = PlainStream()
    assert stream.feed("a\x1b[3") + stream.feed("1mred\n") + stream.finish() == "ared\n"


def test_a_line_that_overwrites_itself_is_held_until_it_ends():
    stream = PlainStream()
    assert [stream.feed("10%\r20%"), stream.settle(), stream.feed("\r30%\n"), stream.finish()] == ["", "20%\n", "30%\n", ""]


def test_a_line_shown_in_part_and_overwritten_then_starts_anew():
    stream = PlainStream()
    assert [stream.feed("10%"), stream.feed("\r20%\n"), stream.finish()] == ["10%", "\n20%\n", ""]
