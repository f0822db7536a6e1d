"""/diff and /export: what the agent changed in files, and the chat as a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from textual.containers import VerticalScroll

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import BadRequest
from pi_durable_tui.tools.history.history import FileHistory
from pi_durable_tui.tools.history.recorder import FileRecorder
from pi_durable_tui.tui.actions.changes import wanted
from pi_durable_tui.tui.commands import completions
from pi_durable_tui.tui.draw.diff import diff_lines
from pi_durable_tui.tui.palette import DARK
from pi_durable_tui.tui.rewinding.difference import DifferenceScreen, FileChange
from tests.support.scripted_model import call, say
from tests.support.tui_house import FakeHouse
from tests.support.tui_rig import running
from tests.support.tui_views import answer, user, view
from tests.support.tui_whole import whole
from tests.tui.test_permissions_and_undo import shell


@pytest.mark.rule("TU-18")
async def test_diff_shows_what_was_changed_since_the_last_message_and_since_the_chat_began(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    recorder = FileRecorder(root=str(folder.resolve()), folder=tmp_path / "kept", clock=ManualClock(), reading=frozenset(), resolve=lambda _id, path: path)
    calls = (call(("bash", {"command": "a.txt two"})), say("First."), call(("bash", {"command": "b.txt new"})), say("Second."), say("Third."))
    async with whole(tmp_path, *calls, tools=(shell(folder),), extensions=(recorder.extension(),)) as made:
        await made.say("/diff")
        await made.until("Files are not kept in this session")
        made.files(FileHistory(made.rig.harness.session, recorder))
        await made.say("/diff")
        await made.until("No file was changed since your last message.")
        for question, text in (("change it", "First."), ("add one", "Second.")):
            await made.say(question)
            await made.until(text)

        await made.say("/diff")
        shown = await made.until("1 file changed since your last message")
        assert "b.txt  +1 −0  new" in shown
        assert "+ new" in shown
        assert "a.txt" not in shown.partition("1 file changed")[2]
        await made.pilot.press("escape")

        await made.say("/diff chat")
        shown = await made.until("2 files changed since the chat began")
        assert "a.txt  +1 −1" in shown
        assert "- one" in shown
        assert "n next file · p previous · Esc closes" in shown
        await made.pilot.press("y")
        assert "2 files changed" in made.screen(), "there is nothing to say yes to"
        await made.pilot.press("escape")

        await made.say("nothing more")
        await made.until("Third.")
        await made.say("/diff")
        await made.until("No file was changed since your last message. /diff chat looks at all of the chat.")
        await made.say("/diff soon")
        await made.until("/diff takes the number of an entry, the word chat, or nothing.")


async def test_n_and_p_go_from_file_to_file(tmp_path: Path) -> None:
    diff = "@@ -1,1 +1,60 @@\n" + "\n".join(f"+line {number}" for number in range(60))
    changes = [FileChange(name=f"{name}.txt", remark="", diff=diff, added=60, removed=0) for name in "abc"]
    async with running(size=(100, 24)) as rig:
        rig.app.push_screen(DifferenceScreen(DARK, "3 files changed", changes, asks=False))
        await rig.settle()
        box = rig.app.screen.query_one("#sheet", VerticalScroll)
        seen = []
        for key in ("n", "n", "n", "p", "p", "p"):
            await rig.press(key)
            seen.append(box.scroll_y)
        assert seen == [62, 124, 124, 62, 0, 0]
        assert "b.txt" not in rig.text()


def test_lines_that_look_like_the_head_of_a_diff_are_shown_when_they_are_content() -> None:
    diff = "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,2 @@\n--- an old remark\n+++ counter\n index"
    shown = [line.plain.strip() for line in diff_lines(diff, path="", width=60, palette=DARK)]
    assert shown == ["1 - -- an old remark", "1 + ++ counter", "2   index"]


# ------------------------------------------------------------------------------------------------------------------- export


@pytest.mark.parametrize(
    ("argument", "form", "path"),
    [
        ("", "html", None),
        ("markdown", "markdown", None),
        ("jsonl ~/talk of today.txt", "jsonl", "~/talk of today.txt"),
        ("notes/talk.md", "markdown", "notes/talk.md"),
        ("talk.JSONL", "jsonl", "talk.JSONL"),
        ("my talk", "html", "my talk"),
        ("markdown.html", "html", "markdown.html"),
    ],
)
def test_the_form_is_the_one_that_is_named_or_that_the_ending_says(argument: str, form: str, path: str | None) -> None:
    assert wanted(argument) == (form, path)


def test_export_and_diff_are_completed_with_what_they_take() -> None:
    assert [offer.name for offer in completions("/export m")] == ["export markdown"]
    assert [offer.name for offer in completions("/diff c")] == ["diff chat"]


@dataclass
class FakeExports:
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    refuse: BadRequest | None = None

    async def write(self, conversation_id: int, form: str, path: str | None) -> str:
        if self.refuse is not None:
            raise self.refuse
        self.asked.append((conversation_id, form, path))
        return f"/here/{path or 'chat-1.1.html'}"


async def test_export_writes_the_chat_that_is_shown_and_says_where_or_why_not() -> None:
    house = FakeHouse()
    house.export = exports = FakeExports()
    async with running(view(user(1, "go"), answer(2, "Done.")), house=house) as rig:
        await rig.type("/export")
        await rig.press("enter")
        assert "✓ The chat is written to /here/chat-1.1.html" in rig.text()
        await rig.type("/export markdown talk.md")
        await rig.press("enter")
        assert exports.asked == [(1, "html", None), (1, "markdown", "talk.md")]
        exports.refuse = BadRequest("'/here/talk.md' is there already. Nothing was written.", hint="Name another file.")
        await rig.type("/export talk.md")
        await rig.press("enter")
        assert "'/here/talk.md' is there already. Nothing was written. Name another file." in rig.text()
