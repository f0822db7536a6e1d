"""The system prompt that a chat really gets: AG-1, GE-1, CASE-F6."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_durable_tui.context import role
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.settings import Compaction, Settings
from pi_durable_tui.records.entry import SYSTEM
from pi_durable_tui.records.messages import SystemMessage
from tests.support.context_folders import Folders
from tests.support.harness_rig import Rig
from tests.support.scripted_model import say


def said(message: object) -> str:
    assert isinstance(message, SystemMessage)
    return message.content[0].text


@pytest.mark.rule("AG-1")
def test_the_sections_stand_in_their_order_and_hold_what_they_are_named_for(folders: Folders):
    folders.put(folders.config / "AGENTS.md", "Be kind.")
    folders.put(folders.repo / "AGENTS.md", "Use tabs.")
    folders.put(folders.config / "skills" / "pdf" / "SKILL.md", "---\nname: pdf\ndescription: Fill in forms.\n---\n")
    (folders.repo / "pkg").mkdir()
    sections = folders.workspace(folders.repo / "pkg").sections(Agent(instructions="Only look."))
    assert list(sections) == ["role", "tools", "place", "config/AGENTS.md", "AGENTS.md", "skills", "agents", "task"]
    assert sections["role"] == role.ROLE
    assert sections["place"].startswith(f"Working directory: {folders.repo}/pkg\nRoot of the project: {folders.repo}\nSystem: ")
    assert sections["AGENTS.md"] == '<instructions from="AGENTS.md" of="the project">\nUse tabs.\n</instructions>'
    assert sections["config/AGENTS.md"] == '<instructions from="config/AGENTS.md" of="the user">\nBe kind.\n</instructions>'
    assert sections["skills"].splitlines()[1:] == [f"- pdf: Fill in forms. ({folders.config}/skills/pdf/SKILL.md)"]
    assert sections["task"] == "Only look."


def test_the_role_is_short():
    assert len(role.ROLE.split()) < 350


@pytest.mark.rule("AG-1")
def test_only_tools_that_are_offered_are_explained_and_skills_only_to_those_who_can_read_them(folders: Folders):
    folders.put(folders.config / "skills" / "pdf" / "SKILL.md", "---\nname: pdf\ndescription: Fill in forms.\n---\n")
    workspace = folders.workspace()
    assert [line[2:6] for line in workspace.sections(Agent())["tools"].splitlines()[1:-1]] == ["read", "bash"]
    sections = workspace.sections(Agent(tools=("bash", "other")))
    assert ([line[2:6] for line in sections["tools"].splitlines()[1:-1]], sections["skills"]) == (["bash"], "")
    assert workspace.sections(Agent(tools=()))["tools"] == ""


@pytest.mark.rule("AG-1", "GE-1")
async def test_the_prompt_is_sent_once_and_after_a_change_only_what_changed(folders: Folders):
    folders.put(folders.config / "AGENTS.md", "Be kind.")
    rig = Rig(folders.top, extensions=[folders.workspace().extension()])
    chat = await rig.start(say("one"), say("two"), say("three"), say("four"))
    for text in ("a", "b"):
        await chat.submit(text)
        await rig.run_out(chat)
    folders.put(folders.config / "AGENTS.md", "Be very kind.")
    await chat.submit("c")
    await rig.run_out(chat)
    (folders.config / "AGENTS.md").unlink()
    await chat.submit("d")
    await rig.run_out(chat)

    first, second, third = [entry.message for entry in await rig.entries(chat.id) if entry.kind == SYSTEM]
    assert role.ROLE in said(first)
    assert "Be kind." in said(first)
    assert said(second) == ('The section "config/AGENTS.md" now reads:\n<instructions from="config/AGENTS.md" of="the user">\nBe very kind.\n</instructions>')
    assert said(third) == 'The section "config/AGENTS.md" no longer applies.'


@pytest.mark.rule("AG-1", "CO-1")
async def test_after_a_compaction_the_whole_prompt_stands_in_the_context_again_word_for_word(folders: Folders):
    folders.put(folders.config / "AGENTS.md", "Be kind.")
    settings = Settings(compaction=Compaction(reserve_tokens=500, keep_tokens=50, background_tokens=500))
    rig = Rig(folders.top, settings=settings, extensions=[folders.workspace().extension()])
    chat = await rig.start(*[say(f"answer {n} " + "a" * 500, usage=None) for n in range(3)], say("the gist"), say("done"))
    for n in range(3):
        await chat.submit(f"question {n} " + "q" * 500)
        await rig.run_out(chat)
    before = rig.model.requests[0].messages[0]
    await chat.compact()
    await rig.run_out(chat)
    await chat.submit("and now?")
    await rig.run_out(chat)

    last = rig.model.requests[-1].messages
    assert "the gist" in repr(last)
    assert [message for message in last if isinstance(message, SystemMessage)] == [before]


@pytest.mark.rule("AG-1")
async def test_a_chat_that_goes_on_in_another_process_gets_the_prompt_no_second_time(folders: Folders, tmp_path: Path):
    folders.put(folders.config / "AGENTS.md", "Be kind.")
    rig = Rig(tmp_path, extensions=[folders.workspace().extension()])
    chat = await rig.start(say("one"))
    await chat.submit("a")
    await rig.run_out(chat)
    await rig.kill()
    rig.extensions = [folders.workspace().extension()]
    chat = await (await rig.open(say("two"))).conversation(chat.id)
    await chat.submit("b")
    await rig.run_out(chat)
    assert [entry.kind for entry in await rig.entries(chat.id)].count(SYSTEM) == 1
