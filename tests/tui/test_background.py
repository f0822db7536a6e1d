"""What goes on in the background, on the screen: a card, a row when it has ended, and a word before one leaves (TO-10, TU-12)."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from pi_durable_tui.harness.live import Inbox, InboxItem, Live, ToolSlot
from pi_durable_tui.harness.observation.inspection import TaskNode
from pi_durable_tui.records.entry import NOTICE, Entry, StoredEntry
from pi_durable_tui.records.messages import Text, UserMessage
from pi_durable_tui.tui.actions.tree import task_rows
from pi_durable_tui.tui.draw.paint import Painter
from pi_durable_tui.tui.following import Sight
from pi_durable_tui.tui.palette import DARK
from pi_durable_tui.tui.projection import Projection
from pi_durable_tui.tui.rows import MarkRow, ToolRow, entry_rows, queued_rows
from pi_durable_tui.tui.status import ends_with_us
from pi_durable_tui.tui.widgets.subagents import cards
from tests.support.tui_rig import running
from tests.support.tui_views import START_MS, result, slot, view

SLOT = ToolSlot(
    task_id=12,
    call_id="c1",
    name="bash",
    arguments={"command": "npm run dev"},
    title="bash npm run dev",
    status="running",
    started_at_ms=START_MS,
    output="ready\nlistening on [:8080]\n",
)
SINCE = datetime.fromtimestamp(START_MS / 1000, tz=UTC).astimezone(None).strftime("%H:%M")


def notice(text: str, **data: object) -> StoredEntry:
    message = UserMessage(content=(Text(text=text),))
    return StoredEntry(seq=9, entry=Entry(id=9, conversation_id=1, kind=NOTICE, at_ms=START_MS, message=message, data=data or None))  # type: ignore[arg-type]


@pytest.mark.rule("TO-10")
def test_what_goes_on_has_a_card_with_its_newest_line_that_time_alone_does_not_change():
    shown = view(live=Live(background=(SLOT,)))
    (card,) = cards(Sight(view=shown), START_MS)
    assert (card.conversation_id, card.name, card.facts, card.said) == (None, "npm run dev", ("background", f"since {SINCE}"), "listening on [:8080]")
    assert cards(Sight(view=shown), START_MS + 3_600_000) == (card,)


@pytest.mark.rule("TO-10")
async def test_the_card_says_how_to_stop_it_and_esc_does_not():
    async with running(view(live=Live(background=(SLOT,)))) as rig:
        assert f"npm run dev  background · since {SINCE}   /tasks stops it" in rig.text()
        assert "Esc stops" not in rig.text()


@pytest.mark.rule("TO-10", "SA-13")
async def test_a_question_says_that_the_command_runs_on():
    details = {"command": "npm run dev", "background": True}
    asking = slot(12, "bash", "bash npm run dev", status="asking", question=13, arguments={"command": "npm run dev"}, details=details)
    async with running(view(tools=[asking])) as rig:
        assert "It runs on in the background until it ends, is stopped, or the program ends." in rig.text()


@pytest.mark.rule("TO-10", "TU-5")
@pytest.mark.parametrize(
    ("data", "status", "exit_code"),
    [
        ({"details": {"exitCode": 0}}, "done", 0),
        ({"details": {"exitCode": 3}, "isError": True}, "failed", 3),
        ({"isError": True, "diagnostics": [{"level": "error", "code": "interrupted", "message": "killed"}]}, "interrupted", None),
        ({"isError": True, "diagnostics": [{"level": "warn", "code": "aborted", "message": "It was stopped."}]}, "stopped", None),
    ],
)
def test_its_end_is_a_row_like_that_of_a_call(data: dict, status: str, exit_code: int | None):
    stored = notice("[Number 12 …]", taskId=12, name="bash", title="bash npm test", output="12 passed", durationMs=3_100, **data)
    (row,) = Projection().apply(view(stored)).rows
    assert isinstance(row, ToolRow)
    assert (row.status, row.exit_code, row.output, row.title, row.duration_ms) == (status, exit_code, "12 passed", "bash npm test", 3_100)


@pytest.mark.rule("TU-18")
def test_a_notice_about_files_is_one_line():
    (row,) = Projection().apply(view(notice("[The user has set a.py back to an earlier state.]"))).rows
    assert row == MarkRow(key="entry-9", tone="info", text="The user has set a.py back to an earlier state.")


@pytest.mark.rule("TO-10", "TU-12")
def test_a_notice_that_waits_is_no_message_of_the_person():
    item = InboxItem(submission_id=4, mode="steer", content=(Text(text="[ended]"),), at_ms=START_MS, kind=NOTICE)
    typed = msgspec.structs.replace(item, submission_id=5, kind="pi.user")
    assert [row.submission_id for row in queued_rows(view(inbox=Inbox(items=(item, typed))))] == [5]


@pytest.mark.rule("TO-10")
def test_who_leaves_is_told_what_ends():
    assert [ends_with_us(view(live=Live(background=(SLOT,) * number))) for number in (0, 1, 2)] == [
        "",
        " and ends 1 background command",
        " and ends 2 background commands",
    ]
    assert ends_with_us(None) == ""


@pytest.mark.rule("OB-4", "TO-10")
def test_a_node_of_the_task_tree_is_named_by_its_command():
    node = TaskNode(
        task_id=12,
        kind="pi.background",
        name="bash npm run dev",
        conversation_id=1,
        owner=None,
        status="running",
        phase="run",
        waits_for=(),
        until_ms=None,
        background=True,
        is_aborted=False,
        restarts=0,
        started_at_ms=START_MS,
        conversations=(),
    )
    (row,) = task_rows([node], START_MS + 5_000)
    assert (row.label, row.state) == ("bash npm run dev", "run · 5s · in the background")


@pytest.mark.rule("TU-5", "TO-10")
def test_the_row_of_a_call_that_went_into_the_background_says_so_and_counts_no_lines() -> None:
    started = result(3, "bash", "bash npm run dev", "It goes on in the background as number 12.", details={"background": 12})
    (row,) = entry_rows(started)
    assert isinstance(row, ToolRow)
    lines = [line.plain.rstrip() for line in Painter(width=80, palette=DARK).lines(row, unfolded=False)]
    assert lines == ["", "✓ bash  npm run dev  started in the background · 0.1s"]
