"""An observer who was too slow gets everything all the same: rules OB-1, OB-2, OB-3."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.harness_rig import Rig
from tests.support.scripted_model import say


@pytest.mark.rule("OB-1", "OB-2", "OB-3", "FB-39")
async def test_view_after_an_overflow_holds_what_every_commit_would_have_brought(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start(*[say(str(n)) for n in range(260)])
    slow, events = chat.watch(), chat.watch_events()
    first = await anext(slow)
    await anext(events)
    assert first.commit is None

    for n in range(260):
        await chat.submit(f"question {n}")
        await rig.run_out(chat)
    view = (await anext(slow)).view
    told = [await anext(events) for _ in range(520)]

    assert [stored.entry for stored in view.entries] == await rig.entries(chat.id)
    assert len(view.entries) == 520
    assert [event["entryId"] for event in told if event["type"] in {"entry", "message_end"}] == [stored.entry.id for stored in view.entries]
    assert not view.has_older
    await slow.aclose()
    await events.aclose()


@pytest.mark.rule("OB-2", "OB-3")
async def test_submission_that_settled_meanwhile_is_told_after_an_overflow(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start(*[say(str(n)) for n in range(60)])
    placed = await chat.submit("the first")
    slow = chat.watch()
    assert [submission.status for submission in (await anext(slow)).view.submissions] == ["placed"]

    await rig.run_out(chat)
    for n in range(59):
        await chat.submit(f"question {n}")
        await rig.run_out(chat)
    view = (await anext(slow)).view

    assert next(submission.status for submission in view.submissions if submission.id == placed.id) == "done"
    await slow.aclose()


@pytest.mark.rule("OB-1", "OB-2", "OB-3", "SU-1")
async def test_submissions_that_came_and_settled_meanwhile_are_told_after_an_overflow_and_older_ones_are_not(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start(*[say(str(n)) for n in range(62)])
    early = [await chat.submit("before anybody looks"), await chat.submit("taken back before anybody looks")]
    assert await chat.withdraw(early[1].id) == "withdrawn"
    await rig.run_out(chat)
    slow, fast, events = chat.watch(), chat.watch(), chat.watch_events()
    await anext(slow)
    await anext(events)
    view = (await anext(fast)).view
    assert [submission.id for submission in view.submissions] == [submission.id for submission in early]

    handed_in = []
    for n in range(61):
        handed_in.append((await chat.submit(f"question {n}")).id)
        await rig.run_out(chat)
        while view.seq < rig.harness.session.next_seq - 1:
            view = (await anext(fast)).view
    assert (await anext(slow)).view.submissions == view.submissions
    told = []
    while len(told) < len(handed_in):
        told += [event["submissionId"] for event in [await anext(events)] if event["type"] == "submission"]
    assert told == handed_in
    for watching in (slow, fast, events):
        await watching.aclose()


@pytest.mark.rule("OB-2", "SE-7")
async def test_a_watch_ends_with_the_session_also_when_it_was_too_slow_to_see_the_end(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start()
    frames, events = chat.watch(), chat.watch_events()
    await anext(frames)
    await anext(events)
    for n in range(101):
        await chat.save_draft("typing", n)
    await rig.close()

    assert [frame async for frame in frames] == []
    assert [event async for event in events] == []
