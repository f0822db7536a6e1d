"""Which chats a session has, and in which order (rules CL-2, TU-10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_durable_tui.harness.live import Agent
from tests.support.harness_rig import Rig
from tests.support.scripted_model import say


@pytest.mark.rule("TU-10", "CL-2")
async def test_a_chat_that_holds_a_draft_alone_is_no_empty_one_and_counts_by_its_commits(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    answered = await rig.start(say("an answer"), agent=Agent(model="test/model"))
    await answered.submit("a question")
    await answered.idle()
    drafted = await rig.harness.create_conversation(Agent(model="test/model"))
    untouched = await rig.harness.create_conversation(Agent(model="test/model"))
    await drafted.save_draft("a thought", 3)
    await rig.kill()

    harness = await rig.open()
    found = [(chat.conversation_id, chat.title, chat.is_empty) for chat in await harness.chats()]
    assert found == [(drafted.id, "a thought", False), (answered.id, "a question", False), (untouched.id, "", True)]
    drafted = await harness.conversation(drafted.id)
    await drafted.save_draft("", 0)
    assert (await harness.chats())[0].conversation_id == answered.id
    await rig.close()
