"""The sections of the system prompt (harness/generation/prompt.py)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.harness.generation.prompt import changed_sections, digest, sections_sent
from pi_durable_tui.records.entry import SYSTEM, Entry
from pi_durable_tui.records.json import strict
from tests.support.harness_builders import entry, said, told

RULES = {"rules": "Be kind.", "cwd": "You are in /a."}


def sent(**texts: str) -> dict[str, str]:
    return {name: digest(text) for name, text in texts.items()}


@pytest.mark.rule("GE-1")
def test_at_first_every_section_is_sent_in_its_order():
    assert changed_sections({}, RULES) == (told("Be kind.\n\nYou are in /a."), {"sections": sent(**RULES)})


@pytest.mark.rule("GE-1")
def test_when_nothing_has_changed_nothing_is_sent():
    assert changed_sections(sent(**RULES), RULES) is None
    assert changed_sections({}, {}) is None


@pytest.mark.rule("GE-1")
def test_only_what_has_changed_is_sent_and_what_is_gone_is_said():
    wanted = {"rules": "Be brief.", "today": "Monday"}
    assert changed_sections(sent(**RULES), wanted) == (
        told('The section "rules" now reads:\nBe brief.\n\nMonday\n\nThe section "cwd" no longer applies.'),
        {"sections": {**sent(**wanted), "cwd": None}},
    )


def prompt_entry(entry_id: int, **sections: str | None) -> Entry:
    marks = {name: None if text is None else digest(text) for name, text in sections.items()}
    return entry(entry_id, told("x"), data={"sections": marks})


def test_what_was_sent_is_read_from_the_entries_the_newest_counting():
    entries = [
        prompt_entry(1, rules="a", cwd="b", today="c"),
        entry(2, said("hi"), data={"sections": {"rules": "no system entry"}}),
        prompt_entry(3, rules="d", cwd=None, never=None),
        entry(4, told("no sections")),
        entry(5, told("no sections"), data={"other": 1}),
        entry(6, told("strange sections"), data={"sections": ["rules"]}),
    ]
    assert sections_sent(entries) == sent(rules="d", today="c")
    assert sections_sent([]) == {}


@pytest.mark.rule("GE-1")
def test_a_section_that_was_gone_and_comes_back_is_sent_like_a_new_one():
    assert changed_sections(sections_sent([prompt_entry(1, rules="a"), prompt_entry(2, rules=None)]), {"rules": "a"}) == (
        told("a"),
        {"sections": sent(rules="a")},
    )


TEXTS = st.sampled_from(["", "a", "b", "half a pair \ud83d"])


@pytest.mark.rule("GE-1", "CASE-B10")
@given(st.lists(st.dictionaries(st.sampled_from(["rules", "cwd", "today"]), TEXTS), max_size=6))
def test_after_each_change_the_entries_say_exactly_what_is_wanted(history):
    entries: list[Entry] = []
    for wanted in history:
        change = changed_sections(sections_sent(entries), wanted)
        if change is not None:
            message, data = change
            stored = strict(data)
            assert isinstance(stored, dict)
            entries.append(Entry(id=len(entries) + 1, conversation_id=1, kind=SYSTEM, at_ms=0, message=message, data=stored))
        assert sections_sent(entries) == sent(**wanted)
        assert changed_sections(sections_sent(entries), wanted) is None


@pytest.mark.rule("CASE-B10")
def test_a_fingerprint_is_that_of_the_text_as_it_is_stored():
    assert digest("x\ud83d") == digest("x\ufffd")
    assert digest("x") != digest("y")
    assert len(digest("x")) == 16
