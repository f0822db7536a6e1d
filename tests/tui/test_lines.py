"""Lines that stay one line, notices behind their marks, and what stands beside the composer (TU-5, TU-12, TU-14; CL-5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from msgspec.structs import replace as with_changes
from rich.cells import cell_len
from textual.events import Paste

from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import TextDelta
from pi_durable_tui.records.messages import Image
from pi_durable_tui.tui.commands import COMMANDS
from pi_durable_tui.tui.draw.marks import copied
from pi_durable_tui.tui.draw.paint import Painter
from pi_durable_tui.tui.palette import DARK
from pi_durable_tui.tui.projection import Projection
from pi_durable_tui.tui.rows import MarkRow, Notice, Row, ToolRow, UserRow, can_unfold
from tests.support.scripted_model import Hold, call
from tests.support.tui_rig import running
from tests.support.tui_views import answer, result, slot, user, view, with_live
from tests.support.tui_whole import whole

LONG = "it goes on and on " * 20


def drawn(row: Row, *, width: int = 60) -> list[str]:
    return [line.plain.rstrip() for line in Painter(width=width, palette=DARK).lines(row, unfolded=False)]


# --------------------------------------------------------------------------------------------------------- one line is one line


@pytest.mark.rule("TU-14")
@pytest.mark.parametrize("width", [40, 80])
async def test_each_command_of_the_menu_is_one_line_however_narrow_the_window_is(width: int) -> None:
    async with running(size=(width, 24)) as rig:
        await rig.press("slash")
        shown = [line for line in rig.screen_lines() if line.startswith(("› /", "  /"))]
        assert [line[2:].split()[0] for line in shown] == [f"/{command.name}" for command in COMMANDS[:10]]
        assert all(len(line) <= width for line in shown)


@pytest.mark.rule("TU-7", "TO-10", "TU-14")
async def test_what_a_command_in_the_background_says_is_one_line_of_its_card() -> None:
    at_work = slot(7, "bash", "bash serve", output=LONG)
    busy = view(user(1, "serve it"))
    async with running(replace(busy, live=with_live(busy, background=(at_work,))), size=(60, 20)) as rig:
        lines = rig.screen_lines()
        at = next(index for index, line in enumerate(lines) if line.startswith("◆ serve"))
        assert (lines[at + 1][:20], lines[at + 1][-1]) == ("│ it goes on and on ", "…")
        assert lines[at + 2] == ""


@pytest.mark.rule("TU-7", "TU-14")
@pytest.mark.parametrize(("word", "end"), [("step {}", "step 97 step 98 step 99"), ("段階{}", "段階97 段階98 段階99")])
async def test_a_card_shows_the_newest_words_of_a_subagent_that_writes_a_long_line(tmp_path: Path, word: str, end: str) -> None:
    line = " ".join(word.format(number) for number in range(100))
    work = call(("subagent", {"name": "reader", "prompt": "read it all"}))
    async with whole(tmp_path, work, (TextDelta(f"First.\n{line}"), Hold()), size=(60, 24)) as made:
        await made.say("go")
        shown = await made.until(end)
        (card,) = [line for line in shown.split("\n") if line.startswith("│ …")]
        assert card.endswith(end)
        assert 57 <= cell_len(card) <= 60


@pytest.mark.rule("TU-5")
@pytest.mark.parametrize(
    ("name", "exit_code", "shown"),
    [
        ("edit", None, ["  │ line 1", "  │ line 2", "  │ line 8", "    … 12 more lines"]),
        ("ops__deploy", None, ["  │ line 1", "  │ line 2", "  │ line 8", "    … 12 more lines"]),
        ("bash", 1, ["    … 12 lines before", "  │ line 13", "  │ line 19", "  │ line 20"]),
    ],
)
def test_a_failure_shows_the_part_that_says_why(name: str, exit_code: int | None, shown: list[str]) -> None:
    """Of a command that is the end; of an edit that found nothing it is the beginning, and what stands there instead follows."""
    output = "\n".join(f"line {number}" for number in range(1, 21))
    row = ToolRow(key="t", name=name, title=f"{name} x", status="failed", started_at_ms=0, output=output, exit_code=exit_code)
    lines = drawn(row)
    assert [lines[2], lines[3], lines[-2], lines[-1]] == shown
    assert len(lines) == 11


@pytest.mark.rule("TU-14")
async def test_an_empty_chat_says_in_a_narrow_window_that_a_line_goes_on() -> None:
    async with running(size=(40, 12)) as rig:
        shown = [line for line in rig.screen_lines() if line.startswith(("  pidurable", "  Type"))]
        assert [line[-1] for line in shown] == ["…", "…"]


# ------------------------------------------------------------------------------------------------------------------- notices


@pytest.mark.rule("TU-14")
async def test_a_long_notice_wraps_behind_its_mark_and_further_lines_stand_below() -> None:
    async with running(size=(40, 20)) as rig:
        rig.chat.say(Notice(tone="warn", text="Something rather long has happened to it.\nDo this.\nOr that."))
        await rig.settle()
        lines = [line for line in rig.screen_lines() if line]
        at = next(index for index, line in enumerate(lines) if line.startswith("!"))
        assert lines[at : at + 4] == ["! Something rather long has happened to", "  it.", "  Do this.", "  Or that."]


async def test_the_same_notice_is_not_said_twice() -> None:
    async with running() as rig:
        for text in ("one", "two", "one"):
            rig.app.tell("info", text)
        await rig.settle()
        assert [line for line in rig.screen_lines() if line.startswith("i ")] == ["i two", "i one"]


# ---------------------------------------------------------------------------------------------------------------- tool cards


@pytest.mark.rule("TU-5")
def test_why_a_call_failed_can_be_read_without_unfolding_it() -> None:
    (row,) = Projection().apply(view(result(3, "edit", "edit", f"a.py: {LONG}", is_error=True, arguments={"path": "a.py"}))).rows
    _, head, *why = drawn(row)
    assert head == "✗ edit  a.py  0.1s"
    assert [line[:4] for line in why] == ["  │ "] * 3
    assert " ".join(line[4:] for line in why).removesuffix("…").rstrip() in f"a.py: {LONG}"
    assert why[-1].endswith("…")


@pytest.mark.rule("TU-5")
def test_a_call_that_nobody_could_name_is_not_called_twice() -> None:
    (row,) = Projection().apply(view(result(3, "todo", "todo", "no such field", is_error=True))).rows
    assert drawn(row)[1] == "✗ todo    0.1s"


@pytest.mark.rule("TU-5", "TU-6")
def test_pictures_and_outputs_that_are_kept_elsewhere_are_told_by_their_size() -> None:
    kept = {"outputBytes": 23_893, "outputPath": "/somewhere/call-70.txt"}
    (row,) = Projection().apply(view(result(3, "bash", "bash seq 1 5000", "1\n…\n5000", details=kept))).rows
    assert drawn(row)[1] == "✓ bash  seq 1 5000  23.9 KB · 0.1s"
    whole = result(4, "bash", "bash seq 3", "1\n2\n3", details={"outputBytes": 6, "outputPath": None})
    (row,) = Projection().apply(view(whole)).rows
    assert drawn(row)[1] == "✓ bash  seq 3  3 lines · 0.1s"
    seen = result(5, "read", "read a.png", "a.png is a picture.")
    message = with_changes(seen.entry.message, content=(*seen.entry.message.content, Image(mime_type="image/png", data="AAAA")))
    (row,) = Projection().apply(view(with_changes(seen, entry=with_changes(seen.entry, message=message)))).rows
    assert drawn(row)[1] == "✓ read  a.png  image/png, 3 bytes · 0.1s"


@pytest.mark.rule("TU-1", "TU-10", "CASE-E3")
def test_of_a_long_message_only_the_beginning_is_drawn_until_it_is_unfolded() -> None:
    painter = Painter(width=60, palette=DARK, unfold_key="Ctrl+O")
    whole, long, wide = (UserRow(key="x", text=text) for text in ("\n".join("ab" * 15), "\n".join(map(str, range(500))), "word " * 2_000))
    assert [can_unfold(row) for row in (whole, long, wide)] == [False, True, True]
    assert len(painter.lines(whole, unfolded=False)) == 1 + 30
    folded = [line.plain.rstrip() for line in painter.lines(long, unfolded=False)]
    assert folded == ["", "❯ 0", *(f"  {number}" for number in range(1, 10)), "  … 490 more lines (Ctrl+O)"]
    assert [line.plain.rstrip() for line in painter.lines(long, unfolded=True)][-2:] == ["  399", "  … 100 more lines"]
    assert [len(painter.lines(wide, unfolded=False)), painter.lines(wide, unfolded=False)[-1].plain.rstrip()] == [1 + 10 + 1, "  … more (Ctrl+O)"]
    assert not copied(painter.lines(long, unfolded=False)).endswith("(Ctrl+O)")


# ------------------------------------------------------------------------------------------------------- beside the composer


@pytest.mark.rule("TU-10", "OB-4")
async def test_what_is_typed_or_pasted_while_the_task_graph_has_the_keys_goes_into_the_composer() -> None:
    async with running() as rig:
        await rig.press("ctrl+t", "h", "i")
        assert (rig.chat.prompt.text, rig.chat.prompt.has_focus, rig.chat.tasks.display) == ("hi", True, True)
        rig.chat.tasks.focus()
        await rig.settle()
        rig.chat.tasks.post_message(Paste(" there"))
        await rig.settle()
        assert rig.chat.prompt.text == "hi there"


@pytest.mark.rule("CL-5")
async def test_without_a_model_nothing_is_sent_and_the_message_stays_in_the_composer() -> None:
    nobody = view()
    ways = Notice(tone="warn", text="No key was found.\nWith a key: set KEY, and start again.")
    async with running(replace(nobody, agent=Agent(model=None, cwd="/")), told=[ways]) as rig:
        assert "With a key" in rig.text()
        await rig.type("do it")
        await rig.press("enter")
        assert rig.asked == []
        assert rig.chat.prompt.text == "do it"
        assert "! No model is chosen: nothing was sent, your message is still here.\n  /model (Alt+P) chooses one." in rig.text()
        assert "! No key was found.\n  With a key: set KEY, and start again." in rig.text(), "what can be done about it stays"


@dataclass
class Moving:
    """A machine whose branch a test changes."""

    name: str

    def branch(self) -> str:
        return self.name


@pytest.mark.rule("TU-11")
async def test_the_footer_names_the_branch_as_it_is_after_the_work() -> None:
    async with running() as rig:
        rig.chat.equip(replace(rig.opened, desk=Moving("feature/cart")), rig.app.bridge)
        assert "~/code/shop · main" in rig.text()
        await rig.show(view(user(1, "go"), tools=[slot(9, "bash", "bash git switch")]))
        await rig.pilot.app.workers.wait_for_complete()
        await rig.show(view(user(1, "go"), answer(2, "done"), seq=9))
        await rig.pilot.app.workers.wait_for_complete()
        await rig.settle()
        assert "~/code/shop · feature/cart" in rig.text()


@pytest.mark.rule("CASE-H2")
def test_a_run_that_failed_tells_what_is_true_now_and_the_next_step() -> None:
    row = MarkRow(key="x", tone="bad", text="Busy. What you wrote is stored: any message tries again, /model chooses another model.")
    assert drawn(row, width=120)[1] == f"✗ {row.text}"


@pytest.mark.rule("SA-1", "TU-13")
async def test_a_notice_shows_a_path_that_is_longer_than_a_line_whole_and_its_own_lines_only() -> None:
    path = "/" + "very-long-name" * 12 + "/keybindings.json"
    async with running(view()) as rig:
        rig.app.tell("warn", f"{path}, there is no such action.\nsecond\x0bstill\x85second")
        await rig.pilot.pause()
        shown = "".join(rig.text().split())
        assert f"{path},there is no such action.".replace(" ", "") in shown
        assert rig.text().count("second") == 2
        assert next(line for line in rig.text().splitlines() if "second" in line).count("second") == 2
