"""Finding the places that edits name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.tools.text.edit_match import Mismatch, Replacement, Wanted, apply, plan


def refused(text: str, *edits: Wanted) -> str:
    found = plan(text, edits)
    assert isinstance(found, Mismatch)
    return found.message


def test_a_text_that_is_there_once_is_found():
    assert plan("one two three", (Wanted(old="two", new="2"),)) == (Replacement(start=4, end=7, new="2"),)


def test_edits_are_looked_for_in_the_text_as_it_was_and_come_in_order_of_place():
    found = plan("a b", (Wanted(old="b", new="a"), Wanted(old="a", new="b")))
    assert not isinstance(found, Mismatch)
    assert apply("a b", found) == "b a"


@pytest.mark.rule("CASE-C3")
def test_overlapping_places_are_counted_and_refused():
    message = refused("x = 1\nx = 1\nx = 1\n", Wanted(old="x = 1\nx = 1", new="y"))
    assert message == "The edit: the old text is in the file 2 times, at lines 1, 2. Add lines around it to name one place, or set replace_all."


@pytest.mark.rule("CASE-C3")
def test_replacing_all_of_overlapping_places_is_refused_as_ambiguous():
    assert "overlap each other (lines 1, 2)" in refused("x = 1\nx = 1\nx = 1\n", Wanted(old="x = 1\nx = 1", new="y", everywhere=True))


@pytest.mark.rule("CASE-C3")
def test_two_equal_blocks_are_refused_with_their_lines():
    assert "2 times, at lines 1, 4" in refused("def f():\n    pass\n\ndef f():\n    pass\n", Wanted(old="def f():\n    pass\n", new=""))


@pytest.mark.rule("CASE-C3")
def test_an_empty_old_text_and_an_edit_without_effect_are_refused():
    assert "empty old text" in refused("abc", Wanted(old="", new="x"))
    assert "would change nothing" in refused("abc", Wanted(old="b", new="b"))


@pytest.mark.rule("CASE-C3")
def test_another_indentation_is_shown_and_not_replaced():
    message = refused("if x:\n\treturn 1\n", Wanted(old="if x:\n    return 1\n", new="pass\n"))
    assert "Lines 1-2 differ from it only in blanks and tabs" in message
    assert "\treturn 1" in message


@pytest.mark.rule("CASE-C4")
def test_typographic_quotes_are_shown_and_not_replaced():
    message = refused("a\nsay “hi” — now\n", Wanted(old='say "hi" - now', new="x"))
    assert "Lines 2-2 differ from it only in quotes, dashes or special blanks:\n---\nsay “hi” — now\n---" in message


def test_the_closest_text_is_shown_with_its_line():
    message = refused("alpha\nthe quick brown fox\nomega\n", Wanted(old="the quick brown dog", new="x"))
    assert "The closest text begins at line 2:\n---\nthe quick brown fox\n---" in message


@pytest.mark.rule("CASE-C3")
@pytest.mark.parametrize("turned", [False, True])
def test_overlapping_edits_are_refused_in_either_order(turned: bool):
    edits = [Wanted(old="abcd", new="1"), Wanted(old="cdef", new="2")]
    assert refused("abcdef", *(reversed(edits) if turned else edits)) == "Edits 1 and 2 overlap at line 1. Join them into one edit."


def test_the_same_edit_twice_is_refused_as_overlapping():
    assert "overlap" in refused("abc", Wanted(old="b", new="1"), Wanted(old="b", new="2"))


@pytest.mark.rule("CASE-C3")
def test_one_edit_that_fails_refuses_all():
    assert "Edit 2" in refused("abc", Wanted(old="a", new="x"), Wanted(old="zzzz", new="y"))


@given(st.text(alphabet="ab\n", max_size=30), st.text(alphabet="ab\n", min_size=1, max_size=4), st.text(alphabet="xy", max_size=4))
def test_an_edit_replaces_the_only_place_or_is_refused(text: str, old: str, new: str):
    places = [index for index in range(len(text)) if text.startswith(old, index)]
    found = plan(text, (Wanted(old=old, new=new),))
    if len(places) == 1:
        assert not isinstance(found, Mismatch)
        assert apply(text, found) == text.replace(old, new, 1)
    else:
        assert isinstance(found, Mismatch)


@given(st.text(alphabet="abc\n", max_size=30), st.text(alphabet="abc\n", min_size=1, max_size=4))
def test_replacing_all_does_what_replace_does_or_is_refused(text: str, old: str):
    found = plan(text, (Wanted(old=old, new="X", everywhere=True),))
    if not isinstance(found, Mismatch):
        assert apply(text, found) == text.replace(old, "X")
        assert old in text
