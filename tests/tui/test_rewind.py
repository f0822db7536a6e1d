"""/rewind with the real harness and real files below (TU-18)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.harness.ports import TextDelta
from pi_durable_tui.tools.history.history import FileHistory
from pi_durable_tui.tools.history.recorder import FileRecorder
from pi_durable_tui.tui.palette import DARK
from pi_durable_tui.tui.rewinding.difference import MAX_LINES, FileChange, difference_lines
from pi_durable_tui.tui.safe_text import SEQUENCE_MARK
from tests.support.scripted_model import Hold, call, say, texts
from tests.support.strict_provider import violations
from tests.support.tui_whole import Whole, whole
from tests.tui.test_permissions_and_undo import shell

WORK = {"name": "writer", "prompt": "write it"}


@asynccontextmanager
async def project(root: Path, *script: object) -> AsyncIterator[tuple[Whole, Path]]:
    """The app in a folder whose files are kept; the shell writes into it."""
    folder = root / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("first\n")
    recorder = FileRecorder(
        root=str(folder.resolve()), folder=root / "kept", clock=ManualClock(), reading=frozenset({"subagent"}), resolve=lambda _id, path: path
    )
    async with whole(root, *script, tools=(shell(folder),), extensions=(recorder.extension(),)) as made:
        recorder._clock = made.rig.clock  # what subagents did is told by the time at which they did it
        made.files(FileHistory(made.rig.harness.session, recorder))
        yield made, folder


async def turn(made: Whole, question: str, answer: str) -> None:
    await made.say(question)
    await made.until(answer)
    await made.until("Esc stops", gone=True)


async def pick(made: Whole, part: str) -> None:
    """In the list of parts."""
    for _ in range(3):
        if f"› {part}" in await made.until("Go back to before “"):
            break
        await made.pilot.press("down")
        await made.step()
    assert f"› {part}" in made.screen()
    await made.pilot.press("enter")


@pytest.mark.rule("TU-18", "TU-15")
async def test_chat_and_files_go_back_to_before_a_message_with_all_that_commands_and_subagents_did(tmp_path: Path) -> None:
    script = (
        call(("bash", {"command": "a.txt second"})),
        say("Made one."),
        call(("subagent", WORK)),
        call(("bash", {"command": "b.txt by-the-subagent"})),
        say("written"),
        say("Made two."),
        call(("bash", {"command": "a.txt third"})),
        say("Made three."),
    )
    async with project(tmp_path, *script) as (made, folder):
        for question, answer in (("one", "Made one."), ("two", "Made two."), ("three", "Made three.")):
            await turn(made, question, answer)
        old, before = made.conversation.id, await made.entries()

        await made.say("/rewind")
        assert "› three" in await made.until("Go back to before")
        await made.pilot.press("up", "enter")
        shown = await made.until("The chat and the files")
        assert "2 files +1 −2" in shown
        assert "without this message and the 1 after it" in " ".join(shown.replace("│", " ").split())
        await pick(made, "The chat and the files")
        shown = await made.until("Take back 2 files?")
        assert "- third" in shown
        assert "+ second" in shown
        await made.pilot.press("y")
        await made.until("2 files changed. /redo brings the changes again.")
        assert ((folder / "a.txt").read_text(), (folder / "b.txt").exists()) == ("second\n", False)
        fork = await made.view()
        assert fork.conversation.parent is not None
        assert made.app.chat.prompt.text == "two"
        assert "Made one." in made.screen()
        assert "Made two." not in made.screen()
        assert [entry for entry in await made.entries(old) if entry.kind != "note"] == before, "nothing is taken away"
        assert (await made.stored(fork.conversation.id)).draft.text == "two", "it is there after a kill"

        made.app.chat.prompt.put("")
        made.rig.model.then(say("Made other."))
        await turn(made, "other", "Made other.")
        asked = made.rig.model.requests[-1]
        first, last = [text for role, text in texts(asked) if role == "user"]
        assert first == "one"
        assert last.startswith("[The user has set ")
        assert last.endswith("other")
        assert violations(asked.messages) == []

        await made.say("/redo")
        await made.until("Bring 2 files back again?")
        await made.pilot.press("y")
        await made.until("2 files changed.")
        assert ((folder / "a.txt").read_text(), (folder / "b.txt").read_text()) == ("third\n", "by-the-subagent\n")


@pytest.mark.rule("TU-18")
async def test_files_only_leaves_the_chat_and_chat_only_leaves_the_files(tmp_path: Path) -> None:
    async with project(tmp_path, call(("bash", {"command": "a.txt second"})), say("Made one.")) as (made, folder):
        await turn(made, "one", "Made one.")
        await made.say("/rewind")
        await made.until("Go back to before")
        await made.pilot.press("enter")
        await pick(made, "The files only")
        await made.until("Take back 1 file?")
        await made.pilot.press("escape")
        await made.until("Nothing was changed.")
        assert (folder / "a.txt").read_text() == "second\n"

        first = (await made.entries())[0].id
        await made.say(f"/rewind {first}")
        await pick(made, "The files only")
        await made.until("Take back 1 file?")
        await made.pilot.press("y")
        await made.until("1 file changed. /redo brings")
        assert (folder / "a.txt").read_text() == "first\n"
        assert (await made.view()).conversation.id == made.conversation.id

        await made.say("/redo")
        await made.until("Bring 1 file back again?")
        await made.pilot.press("y")
        await made.until("1 file changed.")
        await made.say(f"/rewind {first}")
        await pick(made, "The chat only")
        await made.until("A new chat, as of before “one”")
        assert (folder / "a.txt").read_text() == "second\n"
        assert await made.entries((await made.view()).conversation.id) == [], "there was nothing before the first message"
        assert made.app.chat.prompt.text == "one"


@pytest.mark.rule("TU-18", "CASE-F4")
async def test_while_work_goes_on_only_the_chat_goes_back_and_the_old_one_works_on(tmp_path: Path) -> None:
    async with project(tmp_path, say("Made one."), (TextDelta("two and"), Hold())) as (made, _folder):
        await turn(made, "one", "Made one.")
        await made.say("two")
        await made.until("two and")
        await made.say("/rewind")
        await made.until("Go back to before")
        await made.pilot.press("enter")
        shown = await made.until("Go back to before “two”")
        assert "Work is going on here. Stop it first" in shown
        assert "The files only" not in shown
        await pick(made, "The chat")
        await made.until("A new chat, as of before “two”")
        assert "Made one." in made.screen()
        assert made.app.chat.prompt.text == "two"
        assert (await made.stored(made.conversation.id)).is_busy


@pytest.mark.rule("TU-18")
async def test_what_cannot_be_gone_back_to_is_said(tmp_path: Path) -> None:
    async with whole(tmp_path, say("Made one.")) as made:
        await made.say("/rewind")
        await made.until("Nothing to go back to yet")
        await turn(made, "one", "Made one.")
        await made.say("/rewind 0")
        await made.until("There is no message 0 here. /rewind alone lists them.")
        await made.say("/rewind")
        await made.until("Go back to before")
        await made.pilot.press("enter")
        await made.until("Files are not kept in this session.")
        await made.pilot.press("escape")
        await made.until("Files are not kept", gone=True)
        assert (await made.view()).conversation.id == made.conversation.id


@pytest.mark.rule("TU-18", "SA-1")
def test_a_difference_is_shown_whole_safe_and_bounded() -> None:
    long = "@@ -1,0 +1,3000 @@\n" + "".join(f"+line {number}\n" for number in range(3_000))
    changes = [
        FileChange(name="a.txt", remark="", diff="@@ -1 +1 @@\n-old \x1b[31m\n+new\n", added=1, removed=1),
        FileChange(name="\x1b]0;x\x07.bin", remark="comes back", diff="", added=0, removed=0),
        FileChange(name="long.txt", remark="", diff=long, added=3_000, removed=0),
        FileChange(name="last.txt", remark="is removed", diff="@@ -1 +0,0 @@\n-gone\n", added=0, removed=1),
    ]
    lines = [line.plain.rstrip() for line in difference_lines(changes, DARK, width=60)]
    assert lines[:3] == ["a.txt  +1 −1", f"  1 - old {SEQUENCE_MARK}", "  1 + new"]
    assert lines[4] == f"{SEQUENCE_MARK}.bin  +0 −0  comes back"
    assert lines[5] == "(no text)"
    assert lines[7] == "long.txt  +3000 −0"
    assert lines[-4:-1] == ["… 1002 more lines", "", "last.txt  +0 −1  is removed"]
    assert len(lines) < MAX_LINES + 20
