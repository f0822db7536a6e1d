"""Which chat --continue takes, and how chats are listed, inspected and logged (CL-2, CL-3, CASE-H5, OB-5, SA-1)."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

import pytest

from pi_durable_tui.cli.chats import Found, choose, find_chats, merged, parse_id
from pi_durable_tui.cli.compose import open_free, open_session
from pi_durable_tui.cli.inspect import as_text
from pi_durable_tui.cli.log import entry_text, running_text
from pi_durable_tui.cli.paths import Place, prepare
from pi_durable_tui.cli.screen.seam import seam_text
from pi_durable_tui.cli.sessions.listing import table
from pi_durable_tui.cli.settings import UserSettings
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.clock import ManualClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.errors import BadRequest, NotFound
from pi_durable_tui.harness.chats import Chat
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.observation.inspection import Inspection, TaskInfo
from pi_durable_tui.harness.opening import Recovery
from pi_durable_tui.records.messages import Problem, Text
from pi_durable_tui.records.submission import Queued, Submission
from pi_durable_tui.records.task import Running, Sleeping, Task
from tests.support.harness_rig import Folder
from tests.support.scripted_model import ScriptedModel, say
from tests.support.tui_views import answer, result, slot, thinking, user, view


def _chat(conversation_id: int, at_ms: int, *, unfinished: bool = False, title: str = "t") -> Chat:
    return Chat(
        conversation_id=conversation_id, title=title, first_text=title, last_at_ms=at_ms, last_seq=at_ms, unfinished=unfinished, is_empty=False, model="a/b"
    )


def _found(session: int, *chats: Chat) -> list[Found]:
    return [Found(session=session, chat=chat) for chat in chats]


@pytest.mark.rule("CL-2", "CASE-H5")
def test_unfinished_chats_come_first_and_then_the_newest_work() -> None:
    sessions = [_found(1, _chat(1, 50, unfinished=True), _chat(2, 90)), _found(2, _chat(1, 70, unfinished=True), _chat(3, 80))]
    assert [item.id for item in merged(sessions)] == ["2.1", "1.1", "1.2", "2.3"]


@pytest.mark.rule("CASE-H5")
def test_within_a_session_the_order_of_commits_counts_and_not_the_clock() -> None:
    set_back = _found(1, _chat(5, 10), _chat(1, 99))  # the newest work was done after the clock was set back
    assert [item.id for item in merged([set_back, _found(2, _chat(1, 50))])] == ["2.1", "1.5", "1.1"]


@pytest.mark.parametrize(("text", "ids"), [("7", (1, 7)), ("2.13", (2, 13)), ("1.1", (1, 1))])
def test_an_id_is_a_session_and_a_conversation(text: str, ids: tuple[int, int]) -> None:
    assert parse_id(text) == ids


@pytest.mark.parametrize("text", ["", "x", "1.", ".1", "1.2.3", "-1", "\u0661.\u0661"])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="is not the id of a chat"):
        parse_id(text)


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    place = Place(directory=tmp_path, folder=tmp_path / "data" / "place")
    return Setup(place=place, settings=UserSettings(), environ={}, clock=ManualClock(), entropy=SeededEntropy(1))


async def _talk(setup: Setup, number: int, *texts: str) -> None:
    """A session with one chat per text, each answered; an empty text: the chat is only opened."""
    prepare(setup.place)
    models = ScriptedModel(setup.clock, *[say("fine") for text in texts if text])
    storage = await open_session(setup, number)
    harness = await Harness.open(
        storage, models=models, clock=setup.clock, entropy=SeededEntropy(number), environment=lambda agent: Folder(agent.cwd), tools=()
    )
    for text in texts:
        conversation = await harness.create_conversation(Agent(model="a/b"))
        if text:
            await conversation.settled((await conversation.submit(text)).id)
    await harness.close()


@pytest.mark.rule("CASE-H5", "CL-3")
async def test_all_sessions_are_looked_at_and_chats_without_a_word_are_left_out(setup: Setup) -> None:
    await _talk(setup, 1, "first", "")
    assert isinstance(setup.clock, ManualClock)
    setup.clock.advance(1_000)
    await _talk(setup, 2, "second", "")
    found = await find_chats(setup, note=pytest.fail)
    assert [(item.id[0], item.chat.title) for item in found] == [("2", "second"), ("1", "first")]
    assert (await choose(setup, None, note=pytest.fail)).chat.title == "second"
    assert (await choose(setup, found[1].id, note=pytest.fail)).chat.title == "first"
    with pytest.raises(NotFound, match=r"There is no chat 3\.1"):
        await choose(setup, "3.1", note=pytest.fail)


@pytest.mark.rule("ST-15")
async def test_a_session_that_cannot_be_read_is_told_and_the_others_are_found(setup: Setup) -> None:
    await _talk(setup, 1, "first")
    (setup.place.folder / "session-2.sqlite").write_bytes(b"no database" * 1_000)
    notes: list[str] = []
    assert [item.chat.title for item in await find_chats(setup, note=notes.append)] == ["first"]
    assert len(notes) == 1
    assert "session-2.sqlite" in notes[0]


@pytest.mark.rule("CL-3", "ST-15")
async def test_a_new_chat_goes_past_a_damaged_session_and_one_that_is_held_and_leaves_both(setup: Setup) -> None:
    prepare(setup.place)
    damaged = setup.place.folder / "session.sqlite"
    damaged.write_bytes(b"no database" * 1_000)
    held = await open_session(setup, 2)
    number, storage = await open_free(setup)
    await storage.close()
    await held.close()
    assert (number, damaged.read_bytes()) == (3, b"no database" * 1_000)


# ----------------------------------------------------------------------------------------------------------------- texts


def test_the_table_has_a_line_per_chat_and_foreign_titles_are_safe() -> None:
    rows = table([*_found(1, _chat(1, 0, title="fine"), _chat(22, 60_000, unfinished=True, title="bad\x1b[2J\ntitle"))], UTC).split("\n")
    assert rows[0] == "ID    LAST WORK         STATE       MODEL  TITLE"
    assert rows[1] == "1.1   1970-01-01 00:00  done        a/b    fine"
    assert rows[2].startswith("1.22  1970-01-01 00:01  unfinished  a/b    bad")
    assert "\x1b" not in rows[2]
    assert len(rows) == 3


def _recovery(*, interrupted: tuple[Task, ...] = (), in_doubt: tuple[Task, ...] = (), queued: int = 0, at_ms: int | None = 3_723_000) -> Recovery:
    return Recovery(was_killed=bool(interrupted), last_commit_at_ms=at_ms, interrupted=interrupted, in_doubt=in_doubt, queued=queued)


TASK = Task(id=7, kind="pi.tool", conversation_id=1, input={}, state=Running(checkpoint={"phase": "execute"}), created_at_ms=0, restarts=2)


@pytest.mark.rule("TU-9")
@pytest.mark.parametrize(
    ("recovery", "text"),
    [
        (_recovery(), ""),
        (_recovery(queued=3), ""),
        (_recovery(interrupted=(TASK,)), "killed 01:02:03; nothing lost"),
        (_recovery(interrupted=(TASK,), in_doubt=(TASK,), queued=2), "killed 01:02:03; nothing lost; 1 command in doubt; 2 messages queued"),
        (_recovery(interrupted=(TASK,), queued=1, at_ms=None), "killed; nothing lost; 1 message queued"),
    ],
)
def test_the_seam_says_in_one_line_what_happened(recovery: Recovery, text: str) -> None:
    assert seam_text(recovery, UTC) == text


@pytest.mark.rule("OB-5")
def test_inspection_names_tasks_with_phase_restarts_and_reason_and_open_submissions() -> None:
    queued = Submission(id=9, conversation_id=1, mode="steer", content=(Text(text="and\nthen"),), digest="", at_ms=0, state=Queued())
    text = as_text(Inspection(tasks=(TaskInfo(task=TASK, reason="running"),), submissions=(queued,)), _recovery(interrupted=(TASK,), in_doubt=(TASK,)))
    assert text.split("\n")[:2] == [
        "1 live task, 1 open submission",
        "  task 7  pi.tool  running/execute  restarts 2  running  in doubt if its program is dead",
    ]
    assert text.split("\n")[2].startswith("  submission 9  steer  queued  and")


@pytest.mark.rule("OB-5")
@pytest.mark.parametrize(
    ("until_ms", "said"), [(3_723_000, "sleeping until 1970-01-01 01:02:03"), (10**17, "as it is"), (None, "as it is")], ids=["a time", "no time", "a person"]
)
def test_inspection_names_the_time_until_which_a_task_sleeps_as_people_do(until_ms: int | None, said: str) -> None:
    asleep = Task(id=7, kind="pi.tool", conversation_id=1, input={}, state=Sleeping(checkpoint={"phase": "retry"}, until=until_ms), created_at_ms=0)
    text = as_text(Inspection(tasks=(TaskInfo(task=asleep, reason="as it is"),), submissions=()), _recovery(), zone=UTC)
    assert text == f"1 live task, 0 open submissions\n  task 7  pi.tool  sleeping/retry  {said}"


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (user(1, "why?"), "> why?\n"),
        (answer(2, thinking("hm"), "so"), "| hm\nso\n"),
        (answer(2, "half", stop="aborted", problem=Problem(reason="interrupted")), "half\n[interrupted: cut off here]\n"),
        (answer(2, stop="toolUse"), ""),
        (result(3, "bash", "bash ls", "a\nb\n"), "[bash ls]\n  a\n  b\n"),
        (result(3, "bash", "bash ls", "no", is_error=True), "[bash ls (failed)]\n  no\n"),
    ],
)
def test_the_log_shows_each_entry_as_text(entry: object, text: str) -> None:
    assert entry_text(entry.entry) == text  # type: ignore[attr-defined]


def test_the_log_ends_with_what_is_under_way() -> None:
    assert running_text(view(user(1, "x"), streaming=["so f"], tools=[slot(5, "bash", "bash ls", output="a")]).live) == (
        "so f\n[bash ls: running]\na\n[unfinished]"
    )
    assert running_text(view(user(1, "x"), answer(2, "done")).live) == ""
