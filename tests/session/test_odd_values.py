"""What a program may hand in and no store could give back: nested without end, numbers without end, keys in odd places."""

from __future__ import annotations

from typing import Any

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import BadRequest
from pi_durable_tui.records.json import STORED_DEPTH
from pi_durable_tui.records.keys import MARK, hiding
from pi_durable_tui.session.session import Session
from pi_durable_tui.storage.memory import MemoryStorage
from tests.support.session_builders import NOTES, START_MS, change, note, open_session


def innermost(value: Any) -> Any:
    """The list that nothing stands in any more."""
    while value:
        value = value[0]
    return value


@pytest.mark.rule("SE-5", "DO-2")
async def test_a_document_that_grows_deeper_step_by_step_is_refused_before_it_could_not_be_read_any_more() -> None:
    storage = MemoryStorage()
    session = await open_session(storage)

    async def deeper() -> None:
        await change(session, NOTES, None, lambda value: innermost(value["lines"]).append([]))

    for _ in range(STORED_DEPTH - 2):  # the document and its empty list of lines are two already
        await deeper()
    with pytest.raises(BadRequest, match=r"^The value at test\.notes\.lines\[0\].*… is nested too deeply to be stored\.$"):
        await deeper()
    assert session.failed is None
    again = await open_session(MemoryStorage(storage.contents))
    value = await again.snapshot(NOTES)
    assert value is not None
    assert innermost(value["lines"]) == []


@pytest.mark.rule("SE-5", "ST-6")
@pytest.mark.parametrize("odd", [10**5_000, -(10**4_299)], ids=["long", "just too long"])
async def test_a_number_that_cannot_be_stored_is_refused_and_the_session_goes_on(odd: int) -> None:
    session = await open_session()
    with pytest.raises(BadRequest, match=r"^The number at test\.notes\.lines\[0\] has \d+ bits"):
        await note(session, odd)
    await note(session, "more")
    assert await session.snapshot(NOTES) == {"lines": ["more"]}


@pytest.mark.rule("SA-17", "SE-5")
async def test_keys_are_hidden_wherever_they_stand_in_a_draft_and_endless_nesting_is_refused() -> None:
    session = await Session.open(MemoryStorage(), clock=ManualClock(START_MS), hide=hiding(["sk-0123456789abcdef"]))
    await note(session, ("a tuple", {"key": ("sk-0123456789abcdef",)}))
    assert await session.snapshot(NOTES) == {"lines": [["a tuple", {"key": [MARK]}]]}
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(BadRequest, match=r"^The value of test\.notes is nested too deeply to be stored\.$"):
        await note(session, endless)
