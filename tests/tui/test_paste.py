"""A bracketed paste is one event, however the reads cut it, and what stands around it is typed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import constants
from textual._xterm_parser import XTermParser
from textual.events import Key, Paste

from pi_durable_tui.tui.foreign.paste import END, START, PasteParser


def events(pieces: list[str]) -> list[str]:
    parser = PasteParser(XTermParser())
    found = [event for piece in pieces for event in parser.feed(piece)]
    found += parser.tick(is_quiet=True)
    return [f"paste {event.text}" if isinstance(event, Paste) else f"key {event.key}" for event in found if isinstance(event, Paste | Key)]


WHOLE = f"a{START}one\x00\r\ntwo\x1b[2J [/x] {START} three{END}b{START}{END}{START}last{END}\r"
SEEN = ["key a", f"paste one\r\ntwo\x1b[2J [/x] {START} three", "key b", "paste ", "paste last", "key enter"]


@pytest.mark.rule("CASE-E3", "TU-10")
def test_a_paste_is_one_event_and_keys_around_it_are_keys() -> None:
    assert events([WHOLE]) == SEEN


@pytest.mark.rule("CASE-E3")
@pytest.mark.parametrize("at", range(1, len(WHOLE)))
def test_a_paste_cut_at_any_place_by_a_read_gives_the_same_keys_and_the_same_text(at: int) -> None:
    assert events([WHOLE[:at], WHOLE[at:]]) == SEEN


@given(st.lists(st.sampled_from([START, END, "a", "\x1b", "[20", "1~", "0~", "\r", "text "]), max_size=14))
def test_no_order_of_marks_raises_or_hangs(pieces: list[str]) -> None:
    events(pieces)


@pytest.mark.rule("CASE-E3")
def test_a_large_paste_in_small_reads_is_whole() -> None:
    text = "0123456789abcde\n" * 10_000
    whole = f"{START}{text}{END}x"
    assert events([whole[start : start + 1_000] for start in range(0, len(whole), 1_000)]) == [f"paste {text}", "key x"]


def test_what_looked_like_a_mark_is_keys_when_nothing_follows() -> None:
    parser = PasteParser(XTermParser())
    assert list(parser.feed("x\x1b")) != []
    assert parser.is_holding
    assert list(parser.tick(is_quiet=False)) == []


@pytest.mark.rule("TU-8")
def test_escape_alone_is_looked_after_until_it_is_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ESCAPE_DELAY", 0.0)
    parser = PasteParser(XTermParser())
    assert list(parser.feed("\x1b")) == []
    assert parser.is_holding
    found = list(parser.tick(is_quiet=True))  # now the library's parser has it, and waits for what may follow
    while not found:
        assert parser.is_holding
        found += parser.tick(is_quiet=True)
    assert [event.key for event in found if isinstance(event, Key)] == ["escape"]
    assert not parser.is_holding


@pytest.mark.rule("TU-12")
@pytest.mark.parametrize("pieces", [["\x1b\r"], ["\x1b", "\r"], ["a\x1b\rb"], ["\x1b[13;3u"]])
def test_alt_enter_is_one_key_also_where_the_terminal_sends_escape_and_enter(pieces: list[str]) -> None:
    assert "key alt+enter" in events(pieces)
    assert "key enter" not in events(pieces)
