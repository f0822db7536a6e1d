"""What reaches a screen or a terminal from foreign text."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from pi_durable_tui.tui.safe_text import CONTROL_MARK, MAX_LINE_CELLS, SEQUENCE_MARK, SafeStream, overwritten, safe_input, safe_json, safe_line, safe_text

S, C = SEQUENCE_MARK, CONTROL_MARK

G1 = "A\x1b]52;c;UFdORUQ=\x07B\x1b]0;T\x07\x1b[2J\u009b2J\x1b]8;;http://evil.example\x07x\x1b]8;;\x07\x1b[6n\x1bPq\x1b\\\x1b]"

SEQUENCES = [
    *(f"\x1b[{parameters}{final}" for parameters in ("", "2", "1;1", "?1049", "?25", ">1", "38;2;1;2;3") for final in "ABCDHJKSTfhlmnrstu@~"),
    *(f"\x1b]{number};payload{end}" for number in (0, 1, 2, 4, 8, 9, 10, 52, 133, 777, 1337) for end in ("\x07", "\x1b\\", "\x9c")),
    *(f"\x1b{kind}payload{end}" for kind in "P_^X" for end in ("\x07", "\x1b\\", "\x9c")),
    *(f"\x1b{final}" for final in "78=>cDEHMNOZ"),
    *("\x1b(B", "\x1b)0", "\x1b#8", "\x1b%G", "\x1b F"),
    *(f"\x9b{parameters}{final}" for parameters in ("", "2", "?1049") for final in "JKHmhl"),
    *(f"{kind}payload\x9c" for kind in "\x90\x98\x9d\x9e\x9f"),
]
CUT_OFF = ["\x1b", "\x1b[", "\x1b[38;2", "\x1b]", "\x1b]52;c;UFdO", "\x1bPq", "\x1b_x", "\x9b", "\x9b12", "\x9d0;t", "\x90q", "\x1b("]

terminal_soup = st.text(
    alphabet=st.one_of(st.sampled_from("\x1b\x07\x9b\x9c\x9d\x90[]PX^_\\;?0129mJHab\n\r\t\x00\x7f\u200d\u200c\u202e\u200b👩\U000e0041日"), st.characters()),
    max_size=80,
)


def _is_harmless(text: str) -> bool:
    return not any(((code := ord(char)) < 32 and char != "\n") or 0x7F <= code <= 0x9F or 0xD800 <= code <= 0xDFFF or 0x202A <= code <= 0x202E for char in text)


@pytest.mark.rule("SA-1")
@pytest.mark.parametrize("sequence", SEQUENCES, ids=ascii)
def test_a_whole_sequence_becomes_one_visible_mark(sequence: str) -> None:
    assert safe_text(f"a{sequence}b") == f"a{S}b"


@pytest.mark.rule("SA-1")
@pytest.mark.parametrize("sequence", CUT_OFF, ids=ascii)
def test_a_cut_off_sequence_becomes_one_mark_and_ends_at_the_line(sequence: str) -> None:
    assert safe_text(f"a{sequence}\nb") == f"a{S}\nb"


@pytest.mark.rule("SA-1")
@pytest.mark.parametrize("sequence", [*SEQUENCES, *CUT_OFF], ids=ascii)
def test_a_sequence_split_anywhere_over_pieces_reads_as_when_whole(sequence: str) -> None:
    text = f"a{sequence}\nb"
    for at in range(len(text) + 1):
        stream = SafeStream()
        assert stream.feed(text[:at]) + stream.feed(text[at:]) + stream.finish() == safe_text(text)


@pytest.mark.rule("SA-1", "CASE-G1")
def test_the_reported_attack_text_is_shown_with_marks() -> None:
    assert safe_text(G1) == f"A{S}B{S}{S}{S}{S}x{S}{S}{S}{S}"


@pytest.mark.rule("SA-1")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00\x00\x07b", f"a{C}b"),
        ("a\x7fb", f"a{C}b"),
        ("a\x85b", f"a{C}b"),
        ("a\rb", f"a{C}b"),
        ("a\r\nb", "a\nb"),
        ("a\u2028b\u2029c", "a\nb\nc"),
        ("\u202egnp.exe\u2066", f"{C}gnp.exe{C}"),
        ("x\U000e0041\U000e0042y", f"x{C}y"),
        ("pass\u200bword\ufeff", f"pass{C}word{C}"),
        ("a\u200db", f"a{C}b"),
        ("\ud83d\ude00", C),
        ("👩\u200d💻", "👩\u200d💻"),
        ("⏺\ufe0f", "⏺\ufe0f"),
        ("क\u094d\u200dष", "क\u094d\u200dष"),
        ("e\u0301 日本語 🇩🇪", "e\u0301 日本語 🇩🇪"),
        ("a\tb\n\tc", "a   b\n    c"),
        ("日\tb", "日  b"),
    ],
    ids=ascii,
)
def test_characters_that_hide_or_move_text_are_marked_and_honest_ones_stay(text: str, shown: str) -> None:
    assert safe_text(text) == shown


@pytest.mark.rule("SA-1")
def test_harmless_text_is_the_same_object() -> None:
    text = "def f(a: list[int]) -> None: ...\n[/] [bold] [@click=app.bell]hi[/]\n"
    assert safe_text(text) is text


@pytest.mark.rule("SA-1")
@pytest.mark.parametrize("letter", ["x", "日", "é"])
def test_a_line_wider_than_the_cap_is_broken_and_loses_nothing(letter: str) -> None:
    shown = safe_text(letter * 10_000)
    assert max(cell_len(line) for line in shown.split("\n")) <= MAX_LINE_CELLS
    assert shown.replace("\n", "") == letter * 10_000


@pytest.mark.rule("SA-1")
@given(terminal_soup)
def test_no_text_brings_a_control_character_through(text: str) -> None:
    assert _is_harmless(safe_text(text))
    assert _is_harmless(safe_line(text))
    assert "\n" not in safe_line(text)
    assert _is_harmless(safe_input(text).replace("\t", ""))


@pytest.mark.rule("SA-1")
@given(terminal_soup, st.lists(st.integers(min_value=0, max_value=80), max_size=6))
def test_pieces_read_as_the_whole(text: str, cuts: list[int]) -> None:
    stream, places = SafeStream(), sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    shown = "".join(stream.feed(text[start:end]) for start, end in pairwise(places)) + stream.finish()
    assert shown == safe_text(text)


@pytest.mark.rule("SA-1")
@given(st.lists(st.text(alphabet="x日\t\n\x1b[", max_size=3_000), max_size=5))
def test_a_stream_keeps_every_line_within_the_cap(pieces: list[str]) -> None:
    stream = SafeStream()
    shown = "".join(map(stream.feed, pieces)) + stream.finish()
    assert max(cell_len(line) for line in shown.split("\n")) <= MAX_LINE_CELLS


@pytest.mark.rule("SA-1")
def test_an_endless_unterminated_sequence_hides_at_most_the_cap() -> None:
    shown = safe_text("\x1b]0;" + "x" * 10_000)
    assert shown.startswith(S)
    assert shown.count("x") >= 10_000 - MAX_LINE_CELLS


@pytest.mark.rule("SA-1")
def test_one_line_is_cut_to_its_cells_with_an_ellipsis() -> None:
    assert safe_line("first\n  second\x1b[2J", max_cells=40) == f"first second{S}"
    assert safe_line("日本語日本語", max_cells=7) == "日本語…"
    assert safe_line("a" * 50, max_cells=10) == "a" * 9 + "…"


@pytest.mark.rule("CASE-D5")
def test_progress_bars_leave_their_last_state() -> None:
    assert overwritten("P 10%\rP 20%\rP 100%\nDone\r\n") == "P 100%\nDone\n"
    assert overwritten("".join(f"\r{step}" for step in range(10_000))) == "9999"


@pytest.mark.rule("SA-1", "TU-10")
def test_a_paste_keeps_tabs_and_loses_sequences() -> None:
    assert safe_input("a\tb\r\nc\rd\x1b[201~e\x00") == "a\tb\nc\nde"


@pytest.mark.rule("SA-1", "CASE-G1")
@given(terminal_soup)
def test_json_keeps_its_value_and_says_nothing_to_a_terminal(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    shown = safe_json(msgspec.json.encode({text: [text]}))
    assert msgspec.json.decode(shown.encode()) == {text: [text]}
    assert safe_text(shown).replace("\n", "") == shown
