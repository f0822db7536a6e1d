"""Keys that a person binds: what `keybindings.json` may say, what comes of it, and what the screen says then (TU keys)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pi_durable_tui.tui.app import PidurableApp
from pi_durable_tui.tui.keymap import APP_KEYS, COMPOSER_KEYS, KEYS
from pi_durable_tui.tui.keys.bindings import Keymap, keymap
from pi_durable_tui.tui.keys.names import key_name, shown_key
from pi_durable_tui.tui.screens.chat import ChatScreen
from pi_durable_tui.tui.widgets.prompt import Prompt
from tests.support.tui_rig import Rig, running
from tests.support.tui_views import result, user, view

WHERE = "keybindings.json"


def said(**entries: Any) -> Keymap:
    return keymap(json.dumps(entries), WHERE)


# -------------------------------------------------------------------------------------------------------------- the table


def test_no_key_of_the_table_does_two_things_and_each_can_be_written_as_it_is_shown() -> None:
    keys = [key for each in KEYS for key in each.keys.split(",")]
    assert len(keys) == len(set(keys))
    assert [key_name(shown_key(key)) for key in keys] == keys
    assert keymap() == Keymap(keys={each.name: tuple(each.keys.split(",")) for each in KEYS}, where=WHERE)


def test_every_action_of_the_table_is_there() -> None:
    for each in KEYS:
        owner = Prompt if each in COMPOSER_KEYS else ChatScreen if each.action.startswith("screen.") else PidurableApp
        assert callable(getattr(owner, f"action_{each.action.removeprefix('screen.').partition('(')[0]}")), each


@pytest.mark.parametrize(
    ("written", "name", "shown"),
    [
        ("Ctrl+K", "ctrl+k", "Ctrl+K"),
        ("alt-enter", "alt+enter", "Alt+Enter"),
        ("Esc", "escape", "Esc"),
        ("PgUp", "pageup", "PageUp"),
        ("Ctrl+_", "ctrl+underscore", "Ctrl+_"),
        ("ctrl++", "ctrl+plus", "Ctrl++"),
        ("ctrl+-", "ctrl+minus", "Ctrl+-"),
        ("Shift+Alt+P", "alt+shift+p", "Alt+Shift+P"),
        ("f12", "f12", "F12"),
    ],
)
def test_keys_may_be_written_as_people_write_them(written: str, name: str, shown: str) -> None:
    assert (key_name(written), shown_key(name)) == (name, shown)


@pytest.mark.parametrize("written", ["", "x", "Shift+X", "space", "ctrl+", "hyper+x", "ctrl+enterr", "f25", "ctrl+ü"])
def test_what_is_no_key_or_would_take_a_letter_from_typing_is_refused(written: str) -> None:
    assert key_name(written) is None


# --------------------------------------------------------------------------------------------------------------- the file


def test_an_action_takes_several_keys_or_none_and_the_others_keep_theirs() -> None:
    found = said(tasks=["f4", "Ctrl+T"], suspend=[], send="ctrl+enter")
    usual = keymap()
    assert found.keys == {**usual.keys, "tasks": ("f4", "ctrl+t"), "suspend": (), "send": ("ctrl+enter",)}
    assert found.remarks == ()
    assert (found.shown("tasks"), found.all_shown("tasks"), found.shown("suspend"), found.all_shown("suspend")) == ("F4", "F4, Ctrl+T", "", "–")


def test_a_key_that_is_given_away_leaves_its_old_action_and_that_is_told_only_when_no_key_is_left() -> None:
    assert said(tasks="ctrl+j").remarks == ()  # a new line has Shift+Enter as well
    assert said(tasks="ctrl+j").keys["new_line"] == ("shift+enter",)
    found = said(tasks="ctrl+o")
    assert found.keys["unfold"] == ()
    assert found.remarks == (f'{WHERE}: Ctrl+O does "tasks" now, and "unfold" has no key left. Give it one, or [] if it needs none.',)
    assert said(tasks="ctrl+o", unfold=[]).remarks == ()


@pytest.mark.parametrize(
    ("entries", "remark", "kept"),
    [
        ({"taks": "f4"}, f'{WHERE}, "taks": there is no such action. Is it "tasks"?', "tasks"),
        ({"zzzzzz": "f4"}, f'{WHERE}, "zzzzzz": there is no such action. /hotkeys shows them.', "tasks"),
        ({"tasks": 4}, f'{WHERE}, "tasks": a key, a list of keys, or [] for none is expected. The usual keys stay.', "tasks"),
        ({"tasks": ["t"]}, f'{WHERE}, "tasks": "t" is no key that can be bound, such as "ctrl+k", "alt+enter" or "f5".', "tasks"),
        ({"unfold": "f4", "tasks": ["F4", "ctrl+t"]}, f'{WHERE}, "tasks": F4 does "unfold" already, by an entry above; it stays so.', "tasks"),
    ],
)
def test_a_wrong_entry_is_named_once_and_costs_only_itself(entries: dict[str, Any], remark: str, kept: str) -> None:
    found = said(stop="f9", **entries)
    assert found.remarks == (remark,)
    assert (found.keys["stop"], found.keys[kept]) == (("f9",), keymap().keys[kept])


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"'])
def test_a_file_that_is_no_object_is_told_and_the_usual_keys_stay(text: str) -> None:
    found = keymap(text, WHERE)
    assert found.keys == keymap().keys
    assert len(found.remarks) == 1
    assert found.remarks[0].startswith(f"{WHERE} is not a JSON object, so the keys are the usual ones:")


# ---------------------------------------------------------------------------------------------------------------- the app


async def test_bound_keys_work_and_the_ones_they_replace_do_nothing() -> None:
    async with running(keys=said(tasks="f4", next_approval=[], new_line="f3", kill_line_left="f8", send="ctrl+enter", clear_or_quit="f2")) as rig:
        await rig.press("ctrl+t", "shift+tab")
        assert (rig.chat.tasks.display, rig.asked) == (False, [])
        await rig.press("f4")
        assert rig.chat.tasks.display
        await rig.press("f4", "a", "f3", "b")
        assert rig.chat.prompt.text == "a\nb"
        await rig.press("ctrl+u")
        assert rig.chat.prompt.text == "a\nb"
        await rig.press("f8", "ctrl+enter")
        assert rig.asked == [("submit", "a", "followUp")]
        await rig.press("f2")
        assert "F2 again leaves" in rig.text()


async def test_esc_still_closes_pages_and_lists_when_another_key_stops() -> None:
    async with running(view(streaming=["half"]), keys=said(stop="f9")) as rig:
        assert "F9 stops" in rig.text()
        await rig.type("/help")
        await rig.press("enter")
        await rig.press("escape")
        assert rig.app.screen is rig.chat
        await rig.press("ctrl+f", "escape")
        assert (rig.chat.search.display, rig.asked) == (False, [])
        await rig.press("f9")
        assert rig.asked == [("abort",)]


async def test_hints_name_the_keys_that_are_bound_and_none_when_there_is_none() -> None:
    long = "\n".join(f"line {number}" for number in range(60))
    failed = view(user(1, "go"), result(2, "bash", "bash make", long, is_error=True))
    async with running(failed, keys=said(unfold=["alt+o"])) as rig:
        assert "lines before (Alt+O)" in rig.text()
        rig.app.take_keys(said(unfold=[]))
        await rig.settle()
        assert "lines before" in rig.text()
        assert "(Alt+O)" not in rig.text()


async def reload(rig: Rig, keys: Keymap) -> None:
    rig.app._opened = replace(rig.app._opened, read_keys=lambda: keys)
    rig.app.deeds.project._opened = rig.app._opened
    await rig.type("/reload")
    await rig.press("enter")
    await rig.settle()


async def test_reload_takes_other_keys_over_and_tells_what_is_wrong_with_them() -> None:
    async with running() as rig:
        await reload(rig, said(tasks="f4", stp="f9"))
        assert 'keybindings.json, "stp": there is no such action. Is it "stop"?' in rig.text()
        await rig.press("f4")
        assert rig.chat.tasks.display


async def test_what_is_wrong_with_the_file_is_said_from_the_first_paint_on() -> None:
    async with running(keys=keymap("{", "config/keybindings.json")) as rig:
        assert "config/keybindings.json is not a JSON object" in rig.text()


async def test_hotkeys_shows_the_keys_as_they_are_bound_with_the_names_of_their_actions() -> None:
    async with running(size=(120, 90), keys=said(tasks=["f4", "ctrl+t"], suspend=[], stp="f9")) as rig:
        await rig.type("/hotkeys")
        await rig.press("enter")
        shown = [" ".join(line.strip(" │").split()) for line in rig.screen_lines()]
        assert "F4, Ctrl+T show or hide what is at work · tasks" in shown
        assert "– suspend; the shell's fg comes back · suspend" in shown
        assert f"{WHERE} changes them by the names behind the dots; /reload takes it over." in shown
        assert f'! {WHERE}, "stp": there is no such action. Is it "stop"?' in shown
        text = " ".join(shown)
        assert all(f"· {each.name} " in f"{text} " for each in (*APP_KEYS, *COMPOSER_KEYS))
