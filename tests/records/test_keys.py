"""What is written holds no loaded key (SA-17): whole values, in texts that come in pieces, and without touching anything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.records.keys import MARK, SHORTEST_CHARS, HidingStream, has_mark, hiding, mapped

KEY, OTHER = "a-loaded-key-0123456789abcdef", "a-loaded-key-0123456789abcdef-and-longer"
HIDE = hiding([KEY, OTHER]) or str


@pytest.mark.rule("SA-17")
@pytest.mark.parametrize(
    ("text", "written"),
    [
        (f"a {KEY} b {KEY}", f"a {MARK} b {MARK}"),
        (f"{OTHER}{KEY}", f"{MARK}{MARK}"),
        ("it begins a-loaded-", f"it begins {MARK}"),
        ("cdef-and-longer it ended", f"{MARK} it ended"),
        ("a-load", "a-load"),
        ("nothing of that kind", "nothing of that kind"),
        ("", ""),
    ],
)
def test_a_key_and_a_long_part_of_one_at_an_edge_are_replaced(text: str, written: str) -> None:
    assert HIDE(text) == written
    assert HIDE(written) == written


@pytest.mark.rule("SA-17")
def test_short_values_are_words_and_not_hidden() -> None:
    assert hiding(["ollama", "not-needed", "x" * (SHORTEST_CHARS - 1)]) is None


@pytest.mark.rule("SA-17", "DO-3")
def test_a_value_keeps_every_part_that_holds_no_key_as_the_same_object() -> None:
    value = {"a": ["x", {"b": "y"}], "c": [f"k={KEY}"], "n": 1}
    written = mapped(value, HIDE)
    assert written == {"a": ["x", {"b": "y"}], "c": [f"k={MARK}"], "n": 1}
    assert written["a"] is value["a"]
    assert mapped(value["a"], HIDE) is value["a"]
    assert (has_mark(written), has_mark(value)) == (True, False)


@pytest.mark.rule("SA-17")
@given(st.lists(st.one_of(st.just(KEY), st.just(OTHER), st.text("a-loadedky0123456789bcf\nz", max_size=30)), max_size=8), st.data())
def test_bytes_in_pieces_never_give_a_key_away_and_lose_nothing_else(parts: list[str], data: st.DataObject) -> None:
    raw = "".join(parts).encode()
    stream, passed, at = HidingStream([KEY, OTHER]), b"", 0
    while at < len(raw):
        size = data.draw(st.integers(1, 40))
        passed += stream.feed(raw[at : at + size])
        at += size
    passed += stream.finish()
    assert KEY.encode() not in passed
    if KEY[:8].encode() not in raw:
        assert passed == raw
    if raw.decode().count(KEY) == raw.decode().count(KEY[:8]) and not raw.decode().count(OTHER):
        assert passed == raw.replace(KEY.encode(), MARK.encode())
