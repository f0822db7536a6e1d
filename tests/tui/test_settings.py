"""/settings, /theme and the choice of a model, against a program that keeps settings in memory."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pi_durable_tui.errors import ConfigError
from pi_durable_tui.harness.chats import Chat
from pi_durable_tui.tui.house import KnownModel
from pi_durable_tui.tui.palette import LIGHT
from pi_durable_tui.tui.screens.fitting import fitting
from tests.support.tui_house import FakeHouse, FakeModels, FakeSettings
from tests.support.tui_rig import Rig, running
from tests.support.tui_views import MODEL


def chat(conversation_id: int, model: str) -> Chat:
    return Chat(conversation_id=conversation_id, title="", first_text="", last_at_ms=0, last_seq=conversation_id, unfinished=False, is_empty=False, model=model)


async def say(rig: Rig, text: str) -> None:
    await rig.type(text)
    await rig.press("enter")


def shown(rig: Rig) -> list[str]:
    return [" ".join(line.strip(" │").split()) for line in rig.screen_lines()]


# ----------------------------------------------------------------------------------------------------------------- settings


@pytest.mark.rule("CL-4")
async def test_settings_shows_each_with_its_value_who_says_so_and_what_it_means() -> None:
    async with running(house=FakeHouse()) as rig:
        await say(rig, "/settings")
        lines = shown(rig)
        assert "› model playback/story default" in lines
        assert "thinking off project file" in lines
        assert "theme dark your file" in lines
        assert "on_continue go environment" in lines
        assert "The model that new chats ask." in lines


@pytest.mark.rule("TU-14")
async def test_a_list_that_does_not_fit_says_where_in_it_the_chosen_line_is() -> None:
    async with running(house=FakeHouse(), size=(100, 14)) as rig:
        await say(rig, "/settings")
        found = re.search(r"1 of (\d+) · type to search", rig.text())
        assert found is not None
        count = int(found[1])
        await rig.press("down", "down")
        assert f"3 of {count} · type to search" in rig.text()
        await rig.press(*"theme")
        assert " of " not in rig.screen_lines()[-1], "all that fits is seen"
    async with running(house=FakeHouse(), size=(100, 40)) as rig:
        await say(rig, "/settings")
        assert "type to search" in rig.text()
        assert f"1 of {count}" not in rig.text()


@pytest.mark.rule("CL-4")
async def test_a_value_that_is_picked_is_stored_and_taken_over_by_the_chat_and_the_list_comes_back_with_it() -> None:
    house = FakeHouse()
    async with running(house=house) as rig:
        await say(rig, "/settings")
        await rig.press("down", "enter")
        assert "How much the model reasons." in rig.text()
        await rig.press("end", "down", "down", "enter")
        assert house.settings.asked == [("thinking", "high")]
        assert rig.asked == [("set_agent", {"thinking": "high"})]
        assert "› thinking high your file" in shown(rig)
        await rig.press("escape")
        assert "✓ thinking is high now, and stored." in shown(rig)


async def test_a_value_that_is_typed_is_stored_as_it_is_typed_and_one_that_is_refused_changes_nothing() -> None:
    house = FakeHouse()
    async with running(house=house) as rig:
        await say(rig, "/settings max_turns")
        assert "max_turns · type a whole number from 1" in rig.text()
        await rig.press("1", "2", "enter")
        assert house.settings.asked == [("max_turns", "12")]
        await say(rig, "/settings max_turns 14")
        assert house.settings.asked[-1] == ("max_turns", "14")
        assert rig.asked == []


async def test_delete_takes_only_what_the_file_says_out_of_it() -> None:
    house = FakeHouse()
    async with running(house=house) as rig:
        await say(rig, "/settings")
        await rig.press("delete", "down", "down", "delete")
        assert house.settings.asked == [("theme", None)]
        await rig.press("escape")
        assert "✓ theme is out of your file: dark holds again." in shown(rig)


@pytest.mark.rule("CL-4")
async def test_what_is_wrong_with_the_file_is_said_and_nothing_is_shown_or_changed() -> None:
    settings = FakeSettings(refuse=ConfigError("The settings 's.json' are not JSON. Nothing was changed.", hint="Correct the file, or remove it."))
    async with running(house=FakeHouse(settings=settings)) as rig:
        await say(rig, "/settings")
        assert rig.app.screen is rig.chat
        assert "The settings 's.json' are not JSON. Nothing was changed. Correct the file, or remove it." in rig.text()
        assert settings.asked == []


async def test_who_else_says_so_is_told_and_so_is_from_when_on_a_change_counts() -> None:
    settings = FakeSettings(overruled_by="the environment")
    async with running(house=FakeHouse(settings=settings)) as rig:
        await say(rig, "/settings thinking low")
        assert "✓ thinking is low now, and stored. New chats still get other: the environment says so." in shown(rig)
        settings.overruled_by = ""
        await say(rig, "/settings on_continue ask")
        assert "✓ on_continue is ask now, and stored. A change counts from the next start on." in shown(rig)


async def test_an_object_is_left_to_the_file_and_an_unknown_key_is_told() -> None:
    house = FakeHouse()
    async with running(house=house) as rig:
        await say(rig, "/settings base_urls")
        assert "base_urls is written in ~/.config/pidurable/settings.json: an object." in rig.text()
        await say(rig, "/settings colour red")
        assert "There is no setting colour. /settings shows them all." in rig.text()
        assert house.settings.asked == []


async def test_a_theme_is_worn_at_once_and_stored_by_both_commands() -> None:
    house = FakeHouse()
    async with running(house=house) as rig:
        await say(rig, "/theme light")
        assert rig.app.palette == LIGHT
        await say(rig, "/settings theme dark")
        assert (rig.app.palette.name, house.settings.asked) == ("pidurable-dark", [("theme", "light"), ("theme", "dark")])
        house.settings.refuse = ConfigError("Full. Nothing was changed.")
        await say(rig, "/theme light")
        assert (rig.app.palette.name, "Full. Nothing was changed." in rig.text()) == ("pidurable-dark", True)


# ------------------------------------------------------------------------------------------------------------------- models

KNOWN = (
    KnownModel(name="anthropic/claude-big", window_tokens=200_000, input_usd=3.0, output_usd=15.0),
    KnownModel(name="openai/gpt-large", window_tokens=272_000, input_usd=0.25, output_usd=2.0),
    KnownModel(name="openai/unpriced"),
)


async def choosing(rig: Rig) -> list[str]:
    await rig.press("alt+p")
    await rig.settle()
    return [line for line in shown(rig) if "/" in line and not line.startswith(("~", "Ask"))]


async def test_alt_p_offers_what_was_used_before_then_what_is_known_with_window_and_price() -> None:
    async with running(house=FakeHouse(models=FakeModels(KNOWN))) as rig:
        rig.harness.answers["chats"] = (chat(1, MODEL), chat(3, "openai/gpt-large"), chat(4, "mistral/old"))
        assert await choosing(rig) == [
            "› playback/story now",
            "openai/gpt-large used before 272k · $0.25 / $2",
            "mistral/old used before",
            "anthropic/claude-big 200k · $3 / $15",
            "openai/unpriced",
        ]
        await rig.press("down", "down", "down", "enter")
        assert rig.asked == [("set_agent", {"model": "anthropic/claude-big"})]


async def test_a_model_is_found_by_letters_and_any_other_can_be_typed() -> None:
    async with running(house=FakeHouse(models=FakeModels(KNOWN))) as rig:
        await choosing(rig)
        await rig.press(*"clbg", "enter")
        assert rig.asked == [("set_agent", {"model": "anthropic/claude-big"})]
        await choosing(rig)
        await rig.press(*"my/own")
        assert "› my/own as typed" in shown(rig)
        await rig.press("enter")
        assert rig.asked[-1] == ("set_agent", {"model": "my/own"})


async def test_the_list_is_there_before_what_is_known_is_loaded_and_fills_under_what_is_typed() -> None:
    class Slow(FakeModels):
        async def known(self) -> Any:
            await rig.clock.sleep_ms(5_000)
            return KNOWN

    async with running(house=FakeHouse(models=Slow())) as rig:
        rig.harness.answers["chats"] = (chat(3, "mistral/old"),)
        await say(rig, "/model")
        assert "Model · loading what is known …" in rig.text()
        await rig.press("o", "l", "d")
        assert "› mistral/old used before" in shown(rig)
        rig.thread.call(rig.clock.advance, 6_000)
        await rig.settle()
        assert "loading" not in rig.text()
        assert "› mistral/old used before" in shown(rig)
        await rig.press(*["backspace"] * 3)
        assert "openai/gpt-large 272k · $0.25 / $2" in shown(rig)


# -------------------------------------------------------------------------------------------------------------- what fits


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", ["beta one", "alpha two", "one beta"]),
        ("one", ["one beta", "beta one"]),
        ("beta one", ["beta one", "one beta"]),
        ("red", ["alpha two"]),
        ("bt", ["beta one", "one beta"]),
        ("zz", []),
    ],
)
def test_words_that_begin_a_label_come_before_those_inside_before_what_else_is_said_before_letters(typed: str, found: list[str]) -> None:
    items = {"beta one": "", "alpha two": "red", "one beta": ""}
    assert fitting(items, typed, label=str, more=lambda name: items[name]) == found
