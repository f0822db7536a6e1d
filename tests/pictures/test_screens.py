"""Pictures: what a person sees in each state worth a name. The states themselves are asserted first; a picture alone says "looks"."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from pi_durable_tui.harness.chats import Branch, Chat
from pi_durable_tui.harness.live import CompactionRun, Draft, Live, UsageTotals
from pi_durable_tui.harness.observation.inspection import TaskNode
from pi_durable_tui.harness.observation.overview import CompactionPlan
from pi_durable_tui.records.entry import COMPACTION, Entry, StoredEntry
from pi_durable_tui.records.messages import Problem, Text, Usage, UserMessage
from pi_durable_tui.records.task import Task, Waiting
from pi_durable_tui.tui.palette import LIGHT
from tests.support.pictures import Picture, why_not_update
from tests.support.tui_rig import Rig, running
from tests.support.tui_story import ASKED, DIFF, FINAL, FIXED, LOOKED, STORY
from tests.support.tui_views import START_MS, answer, slot, user, view

Looks = Callable[[Rig, str], None]
FIGURES = {"context_tokens": 18_400, "cost_usd": 0.0412}


@pytest.fixture
def looks(snapshot: SnapshotAssertion, request: pytest.FixtureRequest) -> Looks:
    """Compare the screen with the picture of a moment."""
    refusal = why_not_update(is_ci="CI" in os.environ)
    if request.config.option.update_snapshots and refusal:
        pytest.fail(refusal)
    pictures = snapshot.use_extension(Picture)

    def compare(rig: Rig, moment: str) -> None:
        assert rig.app.export_screenshot(title="pidurable") == pictures(name=moment)

    return compare


async def test_start(looks: Looks) -> None:
    async with running() as rig:
        assert "every step is stored before it is shown" in rig.text()
        looks(rig, "empty chat")


@pytest.mark.rule("TU-2")
async def test_streaming(looks: Looks) -> None:
    async with running(view(ASKED, *LOOKED, *FIXED, streaming=[FINAL[:430]], **FIGURES)) as rig:
        assert "Answering · 4s   Esc stops" in rig.text()
        assert "  • including the rounding ones" in rig.text()
        looks(rig, "answer coming in")


@pytest.mark.rule("TU-5")
async def test_tools(looks: Looks) -> None:
    running_tool = slot(
        99, "bash", "bash pytest -q", output="\n".join(f"tests/test_{name}.py ....." for name in ("cart", "till", "tax", "stock", "mail", "api"))
    )
    async with running(view(ASKED, *LOOKED, *FIXED[:2], tools=[running_tool], **FIGURES), size=(100, 36)) as rig:
        assert "✗ bash  pytest -q tests/test_cart.py  exit 1 · 1.2s" in rig.text()
        assert "✓ edit  shop/cart.py  +2 −1" in rig.text()
        assert "◐ bash  pytest -q  4s" in rig.text()
        looks(rig, "failed, edited, running")


@pytest.mark.rule("TU-19", "SA-3")
async def test_question(looks: Looks) -> None:
    arguments, details = {"command": "make -j4 all"}, {"rule": "allow commands that begin with: make"}
    command = slot(99, "bash", "bash make -j4 all", status="asking", question=77, arguments=arguments, details=details)
    edit = slot(99, "edit", "edit shop/cart.py", status="asking", question=78, arguments={"path": "shop/cart.py"}, details={"diff": DIFF})
    async with running(view(ASKED, *LOOKED, tools=[command], **FIGURES)) as rig:
        assert "Run this command?" in rig.text()
        looks(rig, "command")
        await rig.show(view(ASKED, *LOOKED, tools=[edit], **FIGURES))
        assert "Make this change?" in rig.text()
        looks(rig, "edit")


@pytest.mark.rule("TU-12")
async def test_queue(looks: Looks) -> None:
    queued = [("steer", "also run the linter"), ("followUp", "then write a changelog entry")]
    async with running(view(ASKED, *LOOKED, streaming=["The discount is applied"], queued=queued, **FIGURES)) as rig:
        await rig.type("and tell me\nwhat the linter says")
        assert "queued, steers     also run the linter" in rig.text()
        looks(rig, "two messages wait")


@pytest.mark.rule("TU-9", "TU-10")
async def test_resumed(looks: Looks) -> None:
    cut = answer(6, FINAL[:120], stop="aborted", problem=Problem(reason="interrupted"))
    draft = Draft(text="when done, also check the rounding", cursor=34)
    seam = "killed 14:02:11; nothing lost; 1 message queued"
    async with running(view(ASKED, *LOOKED, cut, streaming=[], draft=draft, **FIGURES), seam=seam) as rig:
        await rig.show(view(ASKED, *LOOKED, cut, streaming=["The discount was multiplied"], draft=draft, live_task_id=901, **FIGURES))
        assert f"─── {seam} ───" in rig.text()
        assert "! Interrupted here" in rig.text()
        assert "when done, also check the rounding" in rig.text()
        looks(rig, "after kill -9")


@pytest.mark.rule("TU-14")
async def test_narrow(looks: Looks) -> None:
    async with running(view(*STORY, **FIGURES), size=(80, 24)) as rig:
        assert "● stored" in rig.screen_lines()[-1]
        looks(rig, "80x24")


@pytest.mark.rule("TU-14")
async def test_light(looks: Looks) -> None:
    async with running(view(*STORY, **FIGURES), size=(160, 50), palette=LIGHT) as rig:
        assert "✓ edit  shop/cart.py  +2 −1" in rig.text()
        looks(rig, "160x50")


async def test_help(looks: Looks) -> None:
    async with running(view(*STORY, **FIGURES)) as rig:
        await rig.type("/help")
        await rig.press("enter")
        assert "Commands" in rig.text()
        looks(rig, "keys and commands")


def chat_of(conversation_id: int, title: str, *, minutes_ago: int, unfinished: bool = False, model: str = "playback/story") -> Chat:
    at_ms = START_MS + 4_000 - minutes_ago * 60_000
    return Chat(
        conversation_id=conversation_id,
        title=title,
        first_text=f"{title}, please",
        last_at_ms=at_ms,
        last_seq=1_000 - minutes_ago,
        unfinished=unfinished,
        is_empty=False,
        model=model,
    )


def subagent(task_id: int, conversation_id: int, name: str) -> Task:
    wanted = {"name": name, "conversation": conversation_id, "submission": 1}
    return Task(id=task_id, kind="pi.subagent", conversation_id=1, input=wanted, state=Waiting(checkpoint={"phase": "report"}, on=(1,)), created_at_ms=START_MS)


READER = view(
    user(61, "find all callers of discount()"),
    conversation_id=2,
    tools=[slot(70, "grep", "grep discount")],
    usage=UsageTotals(models={"playback/story": Usage(input_tokens=11_900, output_tokens=420)}),
)
WRITER = view(user(62, "write the tests"), conversation_id=3, streaming=["The cart has two places where\nthe discount is rounded."], usage=UsageTotals())


@pytest.mark.rule("TU-7", "TU-8")
async def test_subagents(looks: Looks) -> None:
    tools = [slot(40, "subagent", "callers: find all callers of discount()"), slot(41, "subagent", "tests: write the tests")]
    tools = [msgspec.structs.replace(tool, subagent=tool.task_id + 10, conversation=tool.task_id - 38) for tool in tools]
    tasks = (subagent(50, 2, "callers"), subagent(51, 3, "tests"))
    async with running(view(ASKED, *LOOKED, tools=tools, tasks=tasks, **FIGURES), others=[READER, WRITER]) as rig:
        await rig.settle()
        assert "◆ callers  running grep · 4s · 12.3k tokens" in rig.text()
        assert "│ the discount is rounded." in rig.text()
        assert "Esc stops the subagent, twice the run" in rig.text()
        looks(rig, "two at work")


@pytest.mark.rule("TU-16")
async def test_tree(looks: Looks) -> None:
    async with running(view(*STORY, **FIGURES)) as rig:
        rig.harness.answers["branches"] = (
            Branch(chat=chat_of(1, "The discount is wrong for two items", minutes_ago=3, unfinished=True), parent=None, is_subagent=False),
            Branch(chat=chat_of(2, "callers", minutes_ago=4), parent=1, is_subagent=True),
            Branch(chat=chat_of(3, "Rounding, another way", minutes_ago=2), parent=1, is_subagent=False),
            Branch(chat=chat_of(4, "tests", minutes_ago=1), parent=3, is_subagent=True),
            Branch(chat=chat_of(5, "Write the changelog", minutes_ago=60 * 26), parent=None, is_subagent=False),
        )
        await rig.type("/tree")
        await rig.press("enter")
        assert "├ subagent callers" in rig.text()
        assert "  └ subagent tests" in rig.text()
        looks(rig, "chats, forks, subagents")


@pytest.mark.rule("TU-15")
async def test_fork_picker(looks: Looks) -> None:
    async with running(view(*STORY, **FIGURES)) as rig:
        more = (
            user(20, "Now write a test for three items"),
            answer(21, "Done: `test_three_items` covers it."),
            user(22, "And the changelog"),
            answer(23, "Added one line."),
        )
        rig.conversation.older = (*STORY, *more)
        await rig.type("/fork")
        await rig.press("enter", "up")
        assert "› Now write a test for three items" in rig.text()
        assert "test_three_items" in rig.text()
        looks(rig, "one of three messages")


@pytest.mark.rule("OB-4")
async def test_task_graph(looks: Looks) -> None:
    def node(task_id: int, kind: str, owner: int | None, name: str = "", **fields: Any) -> TaskNode:
        facts: dict[str, Any] = {"status": "waiting", "phase": None, "waits_for": (), "until_ms": None, "background": False, "is_aborted": False, "restarts": 0}
        facts |= {"started_at_ms": START_MS, "conversations": (), "conversation_id": 1} | fields
        return TaskNode(task_id=task_id, kind=kind, owner=owner, name=name, **facts)

    nodes = (
        node(900, "pi.generation", None, waits_for=(40, 42)),
        node(40, "pi.tool", 900, "subagent", title="callers: find all callers of discount()", waits_for=(50,)),
        node(50, "pi.subagent", 40, "callers", waits_for=(60,), conversations=(2,)),
        node(60, "pi.generation", 50, conversation_id=2, status="sleeping", until_ms=START_MS + 16_000, restarts=1),
        node(42, "pi.tool", 900, "bash", title="bash pytest -q", status="running", phase="execute"),
        node(80, "pi.compaction", None, "manual", status="running", phase="summarize", background=True),
    )
    async with running(view(ASKED, *LOOKED, tools=[slot(42, "bash", "bash pytest -q")], **FIGURES), size=(120, 30)) as rig:
        rig.harness.answers["task_graph"] = nodes
        await rig.press("ctrl+t", "down", "down", "down")
        assert "› │ └ subagent callers" in rig.text()
        assert "wakes in 12s · 4s · 1 restart" in rig.text()
        looks(rig, "a tree at the side")


@pytest.mark.rule("TU-17")
async def test_compaction(looks: Looks) -> None:
    message = UserMessage(content=(Text(text="<summary>\nThe user wants the discount fixed. `shop/cart.py` was changed.\n</summary>"),))
    data: Any = {"entriesSummarized": 42, "tokensBefore": 31_200, "files": ["shop/cart.py", "tests/test_cart.py"]}
    summary = StoredEntry(seq=30, entry=Entry(id=30, conversation_id=1, kind=COMPACTION, at_ms=START_MS, message=message, data=data, head=5))
    run = CompactionRun(task_id=80, started_at_ms=START_MS, reason="manual")
    async with running(view(*STORY, live=Live(compactions=(run,)), **FIGURES)) as rig:
        rig.harness.answers["compaction"] = CompactionPlan(summarized_entries=42, summarized_tokens=24_100, kept_entries=6, kept_tokens=7_100, shortened=1)
        assert "Summarizing what came before · 4s   Esc cancels the summary" in rig.text()
        looks(rig, "being made")
        await rig.show(view(*STORY, summary, user(31, "go on"), answer(32, "With the summary in mind: next come the tests."), **FIGURES))
        assert "─── Summary of 42 entries · 31,200 tokens before · 2 files touched (Ctrl+O) ───" in rig.text()
        looks(rig, "one row")
