"""What a shell user's fingers expect of the composer: killing, yanking, history, names, editor, commands; and pastes that cannot break."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
from textual import events

from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.tui.widgets.composing import tokens
from pi_durable_tui.tui.widgets.composing.kill_ring import KillRing
from tests.support.tui_rig import Rig, running
from tests.support.tui_views import view

HUGE = "line of a paste\n" * 400


@dataclass
class FakeDesk:
    """Names and an editor that a test makes up."""

    names: Sequence[str] = ()
    edited: Callable[[str], str] | None = None

    def find(self, query: str, *, limit: int) -> Sequence[str]:
        return [name for name in self.names if query in name][:limit]

    def complete(self, typed: str, *, limit: int) -> Sequence[str]:
        return [name for name in self.names if name.startswith(typed)][:limit]

    def branch(self) -> str:
        return ""

    def edit(self, text: str) -> str:
        assert self.edited is not None
        return self.edited(text)


def equip(rig: Rig, **desk: object) -> None:
    rig.chat.equip(replace(rig.opened, desk=FakeDesk(**desk)), rig.app.bridge)


async def paste(rig: Rig, text: str) -> None:
    rig.chat.prompt.post_message(events.Paste(text))
    await rig.settle()


# ------------------------------------------------------------------------------------------------------ killing and yanking


@pytest.mark.rule("TU-10")
@pytest.mark.parametrize(
    ("keys", "left", "yanked"),
    [
        (["ctrl+w"], "one two ", "three"),
        (["ctrl+w", "ctrl+w"], "one ", "two three"),
        (["ctrl+u"], "", "one two three"),
        (["home", "ctrl+k"], "", "one two three"),
        (["home", "alt+d", "alt+d"], " three", "one two"),
        (["alt+b", "ctrl+k"], "one two ", "three"),
        (["home", "alt+f", "ctrl+u"], " two three", "one"),
    ],
)
async def test_what_is_killed_in_a_row_comes_back_as_one(keys: list[str], left: str, yanked: str) -> None:
    async with running() as rig:
        await rig.type("one two three")
        await rig.press(*keys)
        assert rig.chat.prompt.text == left
        await rig.press("ctrl+u", "end", "ctrl+k", "right")
        rig.chat.prompt.put("")
        await rig.press("ctrl+y")
        assert yanked in rig.chat.prompt.text or rig.chat.prompt.text == left


@pytest.mark.rule("TU-10")
async def test_yank_and_rotate_bring_back_older_kills_and_undo_takes_them_away() -> None:
    async with running() as rig:
        await rig.type("first second")
        await rig.press("ctrl+w", "left", "right", "ctrl+u", "ctrl+y")
        assert rig.chat.prompt.text == "first "
        await rig.press("alt+y")
        assert rig.chat.prompt.text == "second"
        await rig.press("alt+y")
        assert rig.chat.prompt.text == "first "
        await rig.press("left", "alt+y")
        assert rig.chat.prompt.text == "first ", "only right after a yank"


@pytest.mark.rule("TU-10")
async def test_ctrl_k_at_the_end_of_a_line_joins_the_next_one() -> None:
    async with running() as rig:
        await rig.type("one\ntwo")
        await rig.press("up", "end", "ctrl+k")
        assert rig.chat.prompt.text == "onetwo"


def test_the_ring_keeps_kills_apart_when_something_came_between() -> None:
    ring = KillRing()
    assert (ring.yank(), ring.rotate()) == ("", "")
    ring.kill("b", "left")
    ring.kill("a", "left")
    ring.kill("c", "right")
    ring.other_key()
    ring.kill("x", "right")
    assert [ring.yank(), ring.rotate(), ring.rotate()] == ["x", "abc", "x"]


# ------------------------------------------------------------------------------------------------------------ folded pastes


@pytest.mark.rule("TU-10", "CASE-E3")
async def test_a_folded_paste_is_touched_as_a_whole_or_not_at_all() -> None:
    async with running() as rig:
        await rig.type("ab")
        await rig.press("left")
        await paste(rig, HUGE)
        prompt = rig.chat.prompt
        marker = prompt.text[1:-1]
        assert marker.startswith("[pasted text 1:")
        prompt.move_cursor((0, 10))
        await rig.press("x")
        assert prompt.text == f"a{marker}xb", "typed into it: it goes behind"
        assert prompt.full_text == f"a{HUGE}xb"
        prompt.move_cursor((0, 10))
        await rig.press("backspace")
        assert prompt.text == "axb"
        await rig.press("ctrl+underscore")
        assert prompt.full_text == f"a{HUGE}xb"
        prompt.move_cursor((0, 10))
        await rig.press("ctrl+k")
        assert prompt.text == "a"


@pytest.mark.rule("TU-10")
async def test_a_paste_that_holds_the_words_of_a_marker_is_not_looked_into() -> None:
    async with running() as rig:
        await paste(rig, HUGE)
        other = f"{rig.chat.prompt.text}\n" * 100
        await paste(rig, other)
        assert rig.chat.prompt.full_text == HUGE + other


# ------------------------------------------------------------------------------------------------------------------ history


@pytest.mark.rule("TU-10")
async def test_ctrl_r_searches_what_was_asked_in_other_chats_too() -> None:
    async with running() as rig:
        rig.harness.answers["prompts"] = ("fix the cart", "write [/a] test", "fix the till")
        await rig.type("fix")
        await rig.press("ctrl+r")
        assert "Sent before  1 of 2" in rig.text()
        assert "› fix the till" in rig.text()
        await rig.press("ctrl+r", "enter")
        assert rig.chat.prompt.text == "fix the cart"
        assert rig.asked == [("prompts",)], "it is not sent"
        await rig.press("ctrl+r", *" cart")
        await rig.press("escape")
        assert rig.chat.prompt.text == "fix the cart"
        assert "Sent before" not in rig.text()


@pytest.mark.rule("TU-10")
async def test_up_goes_on_into_what_was_asked_before_this_opening() -> None:
    async with running() as rig:
        rig.harness.answers["prompts"] = ("oldest", "older")
        await rig.press(*"now", "enter")
        await rig.press("up", "up", "up")
        assert rig.chat.prompt.text == "oldest"
        await rig.press("down", "down")
        assert rig.chat.prompt.text == "now"


# -------------------------------------------------------------------------------------------------------------------- names


@pytest.mark.rule("TU-10")
async def test_at_offers_files_and_takes_one() -> None:
    async with running() as rig:
        equip(rig, names=["src/cart.py", "src/my cart.py", "README.md"])
        await rig.press(*"see @cart")
        assert "Files  1 of 2" in rig.text()
        await rig.press("down", "tab")
        assert rig.chat.prompt.text == 'see @"src/my cart.py" '
        await rig.press(*"and @READ", "enter", "enter")
        ((_, content, _),) = rig.asked
        assert "".join(part.text for part in content) == 'see @"src/my cart.py" and @README.md '


@pytest.mark.rule("TU-10")
async def test_an_address_is_no_mention_and_escape_closes_the_list() -> None:
    async with running() as rig:
        equip(rig, names=["cart.py"])
        await rig.press(*"me@cart")
        assert "Files" not in rig.text()
        await rig.press(*" @cart")
        assert "Files" in rig.text()
        await rig.press("escape")
        assert "Files" not in rig.text()
        assert rig.asked == []


@pytest.mark.rule("TU-10")
async def test_tab_completes_a_path_as_far_as_it_is_sure_and_offers_the_rest() -> None:
    async with running() as rig:
        equip(rig, names=["src/cart.py", "src/cash till.py"])
        await rig.press(*"look at sr", "tab")
        assert rig.chat.prompt.text == "look at src/ca"
        assert "Paths  1 of 2" in rig.text()
        await rig.press("down", "enter")
        assert rig.chat.prompt.text == "look at src/cash\\ till.py"
        await rig.press("space", "tab")
        assert rig.chat.prompt.text == "look at src/cash\\ till.py "


@pytest.mark.parametrize(
    ("before", "text"),
    [("see @ca", "ca"), ("@", ""), ('@"my fi', "my fi"), ("(@x", "x"), ("a@b", None), ("@a b", None), ("\n@src/", "src/")],
)
def test_a_mention_ends_at_the_cursor(before: str, text: str | None) -> None:
    found = tokens.mention(before)
    assert (found.text if found is not None else None) == text


# --------------------------------------------------------------------------------------------------------- editor, commands


@pytest.mark.rule("TU-10")
async def test_the_editor_gets_all_of_the_text_and_what_it_leaves_stands_in_the_composer() -> None:
    async with running() as rig:
        equip(rig, edited=lambda text: f"{text}\nsecond\x1b[2J line")
        await paste(rig, HUGE)
        await rig.press("ctrl+g")
        assert rig.chat.prompt.full_text == f"{HUGE}\nsecond line"


@pytest.mark.rule("TU-10")
async def test_an_editor_that_fails_is_told_and_the_text_stays() -> None:
    def fail(_text: str) -> str:
        raise EnvironmentFailure("The editor [/x] ended with code 1. The text is as it was.")

    async with running() as rig:
        equip(rig, edited=fail)
        await rig.type("kept")
        await rig.press("ctrl+g")
        assert rig.chat.prompt.text == "kept"
        assert "The editor [/x] ended with code 1." in rig.text()


@pytest.mark.rule("TU-10")
@pytest.mark.parametrize(("typed", "asked"), [("!ls -l", ("run_command", "ls -l", True)), ("!!ls -l", ("run_command", "ls -l", False))])
async def test_an_exclamation_mark_runs_a_command_also_while_busy(typed: str, asked: tuple[object, ...]) -> None:
    async with running(view(streaming=["half"])) as rig:
        await rig.type(typed)
        await rig.press("enter")
        assert rig.asked == [asked]
        assert rig.chat.prompt.text == ""


@pytest.mark.rule("TU-12")
async def test_ctrl_q_queues_where_the_terminal_keeps_alt_enter() -> None:
    async with running(view(streaming=[])) as rig:
        await rig.press(*"later", "ctrl+q")
        assert rig.asked == [("submit", "later", "followUp")]


@pytest.mark.rule("TU-10", "TU-12")
async def test_what_is_typed_after_an_early_enter_is_not_glued_to_what_was_sent() -> None:
    rig = Rig(view())
    try:
        async with rig.app.run_test(size=(100, 30)) as pilot:
            rig.pilot = pilot
            rig.chat.prompt.put("early")
            rig.chat.prompt.send("steer")
            rig.chat.prompt.put("typed later")
            await rig.settle()
            assert [call[1] for call in rig.asked if call[0] == "submit"] == ["early"]
            assert rig.chat.prompt.text == "typed later"
            assert [call[1] for call in rig.conversation.asked if call[0] == "save_draft"][-1] == "typed later"
    finally:
        rig.thread.close()
