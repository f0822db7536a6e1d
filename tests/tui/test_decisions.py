"""What is decided about keys and trees, as values: what Esc stops, where a transcript can be forked, how trees are drawn."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pi_durable_tui.harness.chats import Branch, Chat
from pi_durable_tui.harness.live import CompactionRun, Live, Run
from pi_durable_tui.harness.observation.inspection import TaskNode
from pi_durable_tui.records.entry import NOTICE, StoredEntry
from pi_durable_tui.records.messages import ToolCall
from pi_durable_tui.records.task import Task, Waiting
from pi_durable_tui.tui import commands
from pi_durable_tui.tui.actions.escape import StopCompaction, StopRun, StopSubagent, what_stops
from pi_durable_tui.tui.actions.fork_points import fork_points, point_at
from pi_durable_tui.tui.actions.tree import branch_stems, task_rows
from tests.support.tui_views import START_MS, answer, result, slot, user, view

SUMMARY = CompactionRun(task_id=80, started_at_ms=START_MS, reason="manual")


def delegated(task_id: int, subagent: int) -> Any:
    return msgspec.structs.replace(slot(task_id, "subagent", "subagent"), subagent=subagent, conversation=subagent + 1)


def subagent(task_id: int, *, background: bool = False) -> Task:
    wanted = {"name": "x", "conversation": task_id + 1, "submission": 1, "background": background}
    state = Waiting(checkpoint={"phase": "report"}, on=(1,))
    return Task(id=task_id, kind="pi.subagent", conversation_id=1, input=wanted, state=state, created_at_ms=0, background=background)


@pytest.mark.rule("TU-8")
def test_escape_stops_the_newest_subagent_in_front_then_the_run_and_a_summary_when_nothing_else_runs() -> None:
    two = view(tools=[delegated(40, 50), delegated(41, 60), slot(42, "bash", "bash make")], tasks=(subagent(50), subagent(60)))
    assert what_stops(two, stopped_in=None) == StopSubagent(60, (900, 1))
    assert what_stops(two, stopped_in=(900, 1)) == StopRun()
    later = view(tools=[delegated(43, 70)], tasks=(subagent(70),), live=Live(run=Run(task_id=900, started_at_ms=0, turn=2), tools=(delegated(43, 70),)))
    assert what_stops(later, stopped_in=(900, 1)) == StopSubagent(70, (900, 2)), "in a later round a subagent comes first again"
    assert what_stops(view(streaming=["x"]), stopped_in=None) == StopRun()
    assert what_stops(view(live=Live(compactions=(SUMMARY,))), stopped_in=None) == StopCompaction(80)
    assert what_stops(view(), stopped_in=None) is None


@pytest.mark.rule("TU-8", "TK-16")
def test_escape_leaves_work_in_the_background_alone() -> None:
    joined = view(tools=[delegated(40, 50)], tasks=(subagent(50, background=True),))
    assert what_stops(joined, stopped_in=None) == StopRun()


def calling(entry_id: int, *ids: str) -> StoredEntry:
    return answer(entry_id, "I look", *(ToolCall(id=each, name="bash", arguments={}) for each in ids), stop="toolUse")


def done(entry_id: int, call_id: str) -> StoredEntry:
    stored = result(entry_id, "bash", "bash", "out")
    message = msgspec.structs.replace(stored.entry.message, tool_call_id=call_id)
    return StoredEntry(seq=stored.seq, entry=msgspec.structs.replace(stored.entry, message=message))


@pytest.mark.rule("TU-15", "CASE-F4", "CASE-A1")
def test_a_turn_can_be_forked_up_to_the_last_place_without_an_open_call() -> None:
    story = (
        user(1, "one"),
        calling(2, "a", "b"),
        done(3, "b"),
        done(4, "a"),
        answer(5, "first"),
        user(6, "two"),
        calling(7, "c"),
        done(8, "c"),
        calling(9, "d", "e"),
        done(10, "e"),
    )
    points = fork_points(story)
    assert [(point.said, point.said_id, point.entry_id, point.answered, point.is_whole) for point in points] == [
        ("one", 1, 5, "first", True),
        ("two", 6, 8, "I look", False),
    ]
    assert fork_points(()) == ()
    told = msgspec.structs.replace(user(11, "Number 7 has ended"), entry=msgspec.structs.replace(user(11, "Number 7 has ended").entry, kind=NOTICE))
    assert [point.said for point in fork_points((*story, told))] == ["one", "two"], "nobody said what the program told the model"
    assert [point_at(points, entry_id) for entry_id in (0, 1, 4, 6, 99)] == [None, points[0], points[0], points[1], points[1]]


def branch(conversation_id: int, parent: int | None, seq: int, *, is_subagent: bool = False) -> Branch:
    chat = Chat(conversation_id=conversation_id, title="t", first_text="", last_at_ms=0, last_seq=seq, unfinished=False, is_empty=False, model=None)
    return Branch(chat=chat, parent=parent, is_subagent=is_subagent)


@pytest.mark.rule("TU-16")
def test_a_tree_has_its_newest_work_at_the_end_and_children_below_their_parents() -> None:
    branches = (branch(1, None, 5), branch(2, None, 6), branch(3, 1, 40), branch(4, 1, 8, is_subagent=True), branch(5, 3, 9), branch(6, 77, 1))
    drawn = [(stem, one.chat.conversation_id) for stem, one in branch_stems(branches)]
    assert drawn == [("", 6), ("", 2), ("", 1), ("├ ", 4), ("└ ", 3), ("  └ ", 5)]


@pytest.mark.rule("OB-4")
@pytest.mark.parametrize(
    ("fields", "label", "state"),
    [
        ({"kind": "pi.generation", "status": "running", "phase": "request"}, "answer", "asking the model · 4s"),
        ({"kind": "pi.tool", "name": "bash", "title": "bash make -j4", "status": "running", "phase": "execute"}, "bash make -j4", "running · 4s"),
        ({"kind": "pi.tool", "name": "subagent", "title": "reader: look", "status": "waiting"}, "subagent reader: look", "ready · 4s"),
        ({"kind": "pi.question", "name": "bash", "status": "sleeping"}, "question about bash", "asks you · 4s"),
        (
            {"kind": "pi.compaction", "name": "manual", "status": "pending", "started_at_ms": None, "background": True},
            "summary (manual)",
            "ready · in the background",
        ),
        ({"kind": "pi.subagent", "name": "a\x1b[2Jb", "status": "waiting", "waits_for": (7, 8)}, "subagent a␛b", "ready · 4s"),
        ({"kind": "pi.tool", "name": "bash", "status": "running", "is_aborted": True, "restarts": 2}, "bash", "is being stopped · 4s · 2 restarts"),
        ({"kind": "ext.poll", "status": "sleeping", "until_ms": START_MS + 64_000}, "ext.poll", "wakes in 60s · 4s"),
    ],
)
def test_a_task_says_what_it_is_and_how_it_is_doing(fields: dict[str, Any], label: str, state: str) -> None:
    facts = {"task_id": 1, "name": "", "conversation_id": 1, "owner": None, "phase": None, "waits_for": (), "until_ms": None, "background": False}
    facts |= {"is_aborted": False, "restarts": 0, "started_at_ms": START_MS, "conversations": ()}
    (row,) = task_rows((TaskNode(**facts | fields),), START_MS + 4_000)
    assert (row.label, row.state) == (label, state)


def test_every_command_does_something_and_arguments_are_completed() -> None:
    offered = [offer.name for offer in commands.completions("/th")]
    assert offered == ["thinking", "theme"]
    assert [offer.name for offer in commands.completions("/approve e")] == ["approve edits"]
    assert commands.completions("/approve ") == ()
    assert commands.completions("/fork 1") == ()
    assert [offer.name for offer in commands.completions("/theme l")] == ["theme light"]
