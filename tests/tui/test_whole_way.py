"""The way of a keystroke with the real harness below the app: nothing on the screen that is not in the store (README, "two laws")."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.observation.overview import Overview
from pi_durable_tui.tui.ports import ConversationPort, HarnessPort, OverviewPort
from pi_durable_tui.tui.projection import Projection
from tests.support.scripted_model import call, say
from tests.support.tui_conversation import FakeConversation, FakeHarness
from tests.support.tui_whole import whole

PORT = ("submit", "withdraw", "abort_task", "answer", "compact", "set_agent", "save_draft", "entries")


async def test_a_prompt_is_stored_before_it_is_shown_and_its_answer_comes_out_of_the_store(tmp_path: Path) -> None:
    async with whole(tmp_path, say("It is **done**.")) as made:
        await made.pilot.press(*"hello", "enter")
        shown = await made.until("It is done.")
        assert "❯ hello" in shown
        stored = await made.stored()
        assert list(Projection().apply(stored).rows) == list(made.app.chat.transcript._rows)
        assert stored.draft.text == ""


@pytest.mark.rule("TU-19")
async def test_a_question_is_stored_shown_answered_and_its_call_runs(tmp_path: Path) -> None:
    async with whole(tmp_path, call(("bash", {"command": "make all"})), say("Made."), approval="ask") as made:
        await made.pilot.press(*"go", "enter")
        shown = await made.until("Run this command?")
        assert "┃ make all" in shown
        made.clock.advance(1_000)
        await made.pilot.press("y")
        shown = await made.until("Made.")
        assert "✓ bash  make all  1 line" in shown
        assert "Run this command?" not in shown


@pytest.mark.rule("TU-10")
async def test_what_is_typed_is_in_the_store_while_it_is_typed(tmp_path: Path) -> None:
    async with whole(tmp_path) as made:
        await made.pilot.press(*"half a")
        await made.until("half a")
        made.clock.advance(100)
        await made.until("half a")
        assert (await made.stored()).draft.text == "half a"


@pytest.mark.parametrize("name", PORT)
def test_the_real_conversation_and_the_fake_take_what_the_bridge_gives(name: str) -> None:
    same_arguments(name, ConversationPort, Conversation, FakeConversation)


@pytest.mark.parametrize("name", ["create_conversation", "conversation", "fork", "chats", "usage", "task_graph"])
def test_the_real_harness_and_the_fake_take_what_the_app_gives(name: str) -> None:
    same_arguments(name, HarnessPort, Harness, FakeHarness)


@pytest.mark.parametrize("name", ["window_tokens", "context", "compaction", "branches", "facts"])
def test_the_real_overview_and_the_fake_take_what_the_app_gives(name: str) -> None:
    same_arguments(name, OverviewPort, Overview, FakeHarness)


def same_arguments(name: str, port: type, *kinds: type) -> None:
    wanted = list(inspect.signature(getattr(port, name)).parameters)
    for kind in kinds:
        assert list(inspect.signature(getattr(kind, name)).parameters)[: len(wanted)] == wanted
