"""Every listing of docs/extensions.md does what the page says of it: AG-3, AG-4, EX-1."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from pi_durable_tui.cli.project.commands import commands_of, run
from pi_durable_tui.cli.settings import load
from pi_durable_tui.clock import SystemClock
from pi_durable_tui.harness.extensions.hooks import Blocked, HookedCall
from pi_durable_tui.harness.extensions.registry import Command, Extension
from pi_durable_tui.mcp.config import McpServer
from tests.support.context_folders import Folders
from tests.support.harness_rig import Rig
from tests.support.scripted_model import call, say

PAGE = (Path(__file__).parents[2] / "docs/extensions.md").read_text()
LISTING = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LISTINGS = [match[2] for match in LISTING.finditer(PAGE) if match[1] == "python"]


@pytest.fixture
def brought(folders: Folders) -> dict[str, Extension]:
    """What all listings bring, side by side in the config folder."""
    for number, text in enumerate(LISTINGS):
        folders.put(folders.config / "extensions" / f"listing-{number}" / "extension.py", text)
    loaded = folders.workspace().load_extensions()
    assert loaded.warnings == ()
    return {extension.name: extension for extension in loaded.extensions}


def typed(brought: dict[str, Extension], text: str) -> tuple[Command, str]:
    found = commands_of(brought.values(), ()).typed(text)
    assert found is not None
    return found


def test_all_listings_load(brought: dict[str, Extension]):
    assert list(brought) == ["house-rules", "counting", "no-force", "standup", "reminders"]
    assert commands_of(brought.values(), ()).warnings == ()


@pytest.mark.rule("AG-3")
async def test_the_instructions_the_tool_and_the_check_work_as_described(brought: dict[str, Extension], tmp_path: Path):
    pushed = HookedCall(conversation_id=1, task_id=2, name="bash", arguments={"command": "git push --force"})
    check = brought["no-force"].hooks.before_tool
    assert check is not None
    assert await check(pushed) == Blocked("Never push with --force here.")
    rig = Rig(tmp_path, extensions=[brought[name] for name in ("house-rules", "counting", "no-force")])
    chat = await rig.start(call(("count_word", {"word": "a", "text": "a b a"}), ("count_word", {"word": 3})), say("done"))
    await chat.submit("go")
    await rig.run_out(chat)
    results = [entry.message for entry in await rig.entries(chat.id) if entry.kind == "pi.tool-result"]
    assert sorted((message.is_error, message.content[0].text.splitlines()[0]) for message in results) == [(False, "a: 2"), (True, "<harness>")]
    assert "Answer in British English." in repr(rig.model.requests[0].messages[0])


@pytest.mark.rule("AG-3")
async def test_the_command_tells_the_person_and_hands_a_message_in(brought: dict[str, Extension], tmp_path: Path):
    rig = Rig(tmp_path, extensions=[brought["standup"]])
    chat = await rig.start(say("done"))
    said: list[str] = []
    command, argument = typed(brought, "/standup in one line")
    await run(command, argument, harness=rig.harness, conversation=chat, say=said.append, submit=partial(_submitted, chat))
    await rig.run_out(chat)
    assert said == ["Looking back over 0 entries."]
    assert "Sum up what was done here for a stand-up, in one line." in repr(rig.model.requests[0].messages[-1])


@pytest.mark.rule("AG-3", "TK-5")
async def test_the_reminder_survives_a_kill_and_is_told_once(brought: dict[str, Extension], tmp_path: Path):
    rig = Rig(tmp_path, extensions=[brought["reminders"]])
    rig.clock.jump_wall(SystemClock().now_ms() - rig.clock.now_ms())
    chat = await rig.start()
    said: list[str] = []
    command, argument = typed(brought, "/remind 5 drink tea")
    await run(command, argument, harness=rig.harness, conversation=chat, say=said.append, submit=partial(_submitted, chat))
    await rig.settle()
    await rig.kill()
    harness = await rig.open(say("Done."))
    chat = await harness.conversation(chat.id)
    await harness.resume()
    await rig.settle()
    assert rig.model.requests == []
    rig.clock.advance(5 * 60_000 + 5_000)
    await rig.until(lambda: len(rig.model.requests) == 1)
    await rig.run_out(chat)
    told = [entry for entry in await rig.entries(chat.id) if "Reminder: drink tea" in repr(entry.message)]
    assert (said, len(told)) == (["In 5 minutes: drink tea"], 1)


@pytest.mark.rule("AG-4")
def test_the_settings_of_the_page_are_settings(folders: Folders):
    [listing] = [match[2] for match in LISTING.finditer(PAGE) if match[1] == "json"]
    folders.put(folders.config / "settings.json", listing)
    servers = load(folders.config, {}).mcp_servers
    assert list(servers) == list(json.loads(listing)["mcp_servers"])
    assert servers["issues"] == McpServer(command="issue-server", env={"ISSUES_TOKEN": "$ISSUES_TOKEN", "LOG_LEVEL": "warning"})
    assert (servers["files"].start_timeout_ms, servers["files"].call_timeout_ms) == (60_000, 600_000)


async def _submitted(chat: object, text: str) -> None:
    await chat.submit(text)
