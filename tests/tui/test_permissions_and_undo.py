"""The third answer of a question, /permissions, /undo and /redo, with the real harness below (TU-18, TU-19)."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.harness.approval import Rule, rule_text
from pi_durable_tui.harness.ports import Effects, Tool, ToolContext, ToolResult
from pi_durable_tui.permissions.approver import approver
from pi_durable_tui.records.messages import Text
from pi_durable_tui.tools.history.history import FileHistory
from pi_durable_tui.tools.history.recorder import FileRecorder
from pi_durable_tui.tui.actions.permissions import rule_of
from tests.support.scripted_model import call, say
from tests.support.tui_whole import Arguments, whole


def shell(folder: Path) -> Tool:
    """Writes the second word into the file that is the first one, and says what it would touch."""

    async def execute(arguments: Arguments, _context: ToolContext) -> ToolResult:
        name, text = arguments.command.split(" ")[:2]
        (folder / name).write_text(f"{text}\n")
        return ToolResult(content=(Text(text=f"wrote {name}"),))

    async def effects(arguments: Arguments, _context: ToolContext) -> Effects:
        return Effects(root=str(folder), directory=str(folder), command=arguments.command)

    return Tool(name="bash", description="", arguments=Arguments, execute=execute, title=lambda arguments: f"bash {arguments.command}", effects=effects)


@pytest.mark.rule("TU-19", "SA-13")
async def test_always_keeps_the_rule_that_the_card_shows_and_permissions_lists_and_revokes_it(tmp_path: Path) -> None:
    calls = (call(("bash", {"command": "notes one"})), call(("bash", {"command": "notes two"})), say("Made."))
    async with whole(tmp_path, *calls, approval="ask", tools=(shell(tmp_path),), approver=approver()) as made:
        await made.say("go")
        shown = await made.until("a always: allow commands that begin with: notes")
        assert "y or Enter allows · a always · n or Esc denies" in shown
        made.clock.advance(1_000)
        await made.pilot.press("a")
        await made.until("Made.")
        assert (tmp_path / "notes").read_text() == "two\n"  # the second call was not asked about

        await made.say("/permissions")
        shown = await made.until("Standing permissions")
        assert "allow commands that begin with: notes" in shown
        assert "by the user" in shown
        await made.pilot.press("d")
        await made.until("Revoked: allow commands that begin with: notes.")
        assert await made.ask(made.rig.harness.permissions.list()) == ()
        await made.say("/permissions")
        await made.until("There are no standing permissions in this session.")


@pytest.mark.rule("TU-19")
async def test_always_does_nothing_where_no_rule_is_offered(tmp_path: Path) -> None:
    async with whole(tmp_path, call(("bash", {"command": "make all"})), say("Made."), approval="ask") as made:
        await made.say("go")
        assert "a always" not in await made.until("Run this command?")
        made.clock.advance(1_000)
        await made.pilot.press("a")
        await made.step()
        assert "Run this command?" in made.screen()


@pytest.mark.rule("TU-19", "SA-13")
async def test_a_rule_can_be_typed_and_why_something_is_asked_is_said(tmp_path: Path) -> None:
    calls = (call(("bash", {"command": "notes one"})), say("Made."))
    async with whole(tmp_path, *calls, approval="all", tools=(shell(tmp_path),), approver=approver()) as made:
        await made.say("/permissions ask notes")
        await made.until("From now on: ask commands that begin with: notes.")
        await made.say("go")
        await made.until("There is a rule: ask commands that begin with: notes.")
        await made.say("x")
        made.clock.advance(1_000)
        await made.pilot.press("n")
        await made.until("Made.")
        assert not (tmp_path / "notes").exists()


@pytest.mark.rule("TU-18")
async def test_undo_shows_the_difference_changes_files_after_a_key_and_redo_brings_them_again(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("before\n")
    clock = ManualClock()
    recorder = FileRecorder(root=str(folder.resolve()), folder=tmp_path / "kept", clock=clock, reading=frozenset(), resolve=lambda _id, path: path)
    calls = (call(("bash", {"command": "a.txt after"})), say("Made."))
    async with whole(tmp_path, *calls, tools=(shell(folder),), extensions=(recorder.extension(),)) as made:
        made.files(FileHistory(made.rig.harness.session, recorder))
        await made.say("/undo")
        await made.until("Nothing was asked here yet")
        await made.say("go")
        await made.until("Made.")

        await made.say("/undo")
        shown = await made.until("Take back 1 file?")
        assert "- after" in shown
        assert "+ before" in shown
        await made.pilot.press("escape")
        await made.until("Nothing was changed.")
        assert (folder / "a.txt").read_text() == "after\n"

        await made.say("/undo")
        await made.until("Take back 1 file?")
        await made.pilot.press("y")
        await made.until("1 file changed. The model is told. /redo brings the changes again.")
        assert (folder / "a.txt").read_text() == "before\n"
        await made.say("/undo")
        await made.until("Nothing to take back: no file has changed since then.")

        await made.say("/redo")
        await made.until("Bring 1 file back again?")
        await made.pilot.press("y")
        await made.until("1 file changed. The model is told.")
        assert (folder / "a.txt").read_text() == "after\n"


@pytest.mark.rule("TU-19")
@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("allow git status", "allow commands that begin with: git status"),
        ("deny  'rm'", "deny commands that begin with: rm"),
        ("ask /etc/", "ask changes to files in /etc/"),
        ("allow", None),
        ("permit x", None),
        ("allow 'unclosed", None),
        ("allow 'a b'", None),
    ],
)
def test_rules_as_people_type_them(typed: str, text: str | None) -> None:
    rule = rule_of(typed)
    assert (rule_text(rule) if isinstance(rule, Rule) else None) == text
