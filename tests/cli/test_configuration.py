"""The user's settings while the program runs: the file they are changed in, its schema, who says what, and what takes effect (CL-4)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.cli import settings
from pi_durable_tui.cli.configuration.desk import SettingsDesk, parsed, use
from pi_durable_tui.cli.configuration.editing import edited, removed
from pi_durable_tui.cli.configuration.schema import FILE, settings_schema
from pi_durable_tui.cli.configuration.table import MEANINGS, UNSHOWN, allowed
from pi_durable_tui.cli.setup import set_up
from pi_durable_tui.cli.wish import Wish
from pi_durable_tui.context.project_settings import ProjectSettings
from pi_durable_tui.errors import ConfigError
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.settings import Settings as HarnessSettings
from pi_durable_tui.models.catalog import Offer, offers
from tests.support.schema import written

OWN = '{\n    "theme" : "dark",   "retry": {"max_retries": 7},\n    "a key of a newer program": [1,  2]\n}\n'


# --------------------------------------------------------------------------------------------------------- editing the text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('ab"\\{},:[ é\n', max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "c", 'd"', "é"]), VALUES, max_size=4)
PATHS = st.lists(st.sampled_from(["a", "b", "z", 'd"']), min_size=1, max_size=2)
LAYOUTS = st.sampled_from([None, 1, 4])


def at(value: Any, path: list[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


@given(OBJECTS, PATHS, VALUES, LAYOUTS)
def test_one_value_is_set_and_every_other_one_stays_what_it_was(before: dict[str, Any], path: list[str], value: Any, layout: int | None) -> None:
    text = json.dumps(before, indent=layout)
    after = json.loads(edited(text, path, value))
    assert at(after, path) == value
    expected = dict(before)
    inner = expected.get(path[0])
    expected[path[0]] = value if len(path) == 1 else {**(inner if isinstance(inner, dict) else {}), path[1]: value}
    assert after == expected
    assert list(after)[: len(before)] == list(before), "in the order in which they were written"


@given(OBJECTS, PATHS, LAYOUTS)
def test_one_value_is_taken_out_and_every_other_one_stays(before: dict[str, Any], path: list[str], layout: int | None) -> None:
    after = json.loads(removed(json.dumps(before, indent=layout), path))
    expected = dict(before)
    if len(path) == 1:
        expected.pop(path[0], None)
    elif isinstance(expected.get(path[0]), dict):
        expected[path[0]] = {name: value for name, value in expected[path[0]].items() if name != path[1]}
    assert after == expected


def test_what_is_not_changed_stays_as_it_is_written() -> None:
    assert edited(OWN, ["theme"], "light") == OWN.replace('"dark"', '"light"')
    assert edited(OWN, ["retry", "enabled"], False) == OWN.replace('{"max_retries": 7}', '{"max_retries": 7, "enabled": false}')
    assert edited(OWN, ["store"], "jsonl") == OWN.replace("[1,  2]\n", '[1,  2],\n    "store": "jsonl"\n')
    assert removed(OWN, ["retry", "max_retries"]) == OWN.replace('{"max_retries": 7}', "{}")
    assert edited("{}", ["retry", "enabled"], True) == '{\n  "retry": {\n    "enabled": true\n  }\n}'
    assert edited('{"a": 1, "a": 2}', ["a"], 3) == '{"a": 1, "a": 3}', "the last one counts, for every reader"
    assert removed('{"a": 1, "b": 0, "a": 2}', ["a"]) == '{"b": 0}'


@pytest.mark.rule("CL-4")
def test_keys_that_this_program_does_not_know_survive_a_change_and_a_wrong_file_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(OWN)
    settings.remember(tmp_path, "retry.max_retries", 9)
    assert path.read_text() == OWN.replace("7", "9")
    settings.remember(tmp_path, "retry.max_retries", None)
    assert path.read_text() == OWN.replace('{"max_retries": 7}', "{}")
    path.write_text("[1]")
    with pytest.raises(ConfigError, match="must be a JSON object"):
        settings.remember(tmp_path, "theme", "dark")
    assert path.read_text() == "[1]"


# ------------------------------------------------------------------------------------------------------------ table, schema


@pytest.mark.rule("CL-4")
def test_every_key_that_the_file_may_have_has_a_meaning_and_a_default_that_is_true() -> None:
    keys = [key for key in settings.ALLOWED if key not in settings.NESTED] + [f"{key}.{name}" for key, inner in settings.NESTED.items() for name in inner]
    assert {meaning.key for meaning in MEANINGS} == set(keys) - UNSHOWN
    assert len(MEANINGS) == len({meaning.key for meaning in MEANINGS})
    harness, file = HarnessSettings(), settings.UserSettings()
    limits = file.command_limits()
    own = {
        "background": harness.limits.background_calls,
        "processes": limits.processes,
        "open_files": limits.open_files,
        "file_mb": limits.file_bytes // 1_000_000,
    }
    for meaning in MEANINGS:
        part, _, name = meaning.key.partition(".")
        value = own[name] if part == "commands" else getattr(getattr(harness, part), name) if name else getattr(file, part)
        if value is not None and not isinstance(value, dict | tuple):
            assert meaning.default == (str(value).lower() if isinstance(value, bool) else str(value)), meaning.key


@pytest.mark.rule("CL-4")
def test_the_schema_that_is_shipped_is_the_one_of_the_code() -> None:
    assert FILE.read_text(encoding="utf-8") == written(), "PYTHONPATH=. python -m tests.support.schema"


@pytest.mark.rule("CL-4", "SA-17")
def test_the_schema_allows_what_the_program_reads_and_names_no_place_for_a_key() -> None:
    schema = settings_schema()
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == set(settings.ALLOWED)
    assert {key: set(schema["properties"][key]["properties"]) for key in settings.NESTED} == {key: set(inner) for key, inner in settings.NESTED.items()}
    assert schema["properties"]["theme"]["enum"] == ["ansi", "dark", "light", "system"]
    assert (schema["properties"]["retry"]["properties"]["max_retries"]["maximum"], schema["properties"]["max_turns"]["minimum"]) == (1_000, 1)
    assert all(part["description"] for key, part in schema["properties"].items() if key not in settings.NESTED)
    assert "api_key" not in FILE.read_text(encoding="utf-8")


def test_what_a_person_types_is_read_as_the_setting_needs_it() -> None:
    assert [parsed(*typed) for typed in (("max_turns", "12"), ("model", "12"), ("retry.enabled", "false"), ("restart_limit", "unlimited"))] == [
        12,
        "12",
        False,
        "unlimited",
    ]
    with pytest.raises(ConfigError) as caught:
        parsed("max_turns", "many")
    assert (caught.value.message, caught.value.hint) == ("'many' is not allowed for max_turns. Nothing was changed.", "Allowed: a whole number from 1.")


# ----------------------------------------------------------------------------------------------------------------- the desk


def desk(
    tmp_path: Path, content: dict[str, Any], *, wish: Wish | None = None, project: ProjectSettings | None = None, **environ: str
) -> tuple[SettingsDesk, HarnessSettings, Path]:
    work, config = tmp_path / "work", tmp_path / "config"
    for folder in (work, config):
        folder.mkdir(exist_ok=True)
    file = config / "settings.json"
    file.write_text(json.dumps(content))
    environ = {"PIDURABLE_CONFIG_DIR": str(config), "PIDURABLE_DATA_DIR": str(tmp_path / "data"), **environ}
    setup = set_up(str(work), environ)
    running = setup.settings.harness()
    return SettingsDesk(setup, wish or Wish(), lambda: project or ProjectSettings(), running), running, file


async def told(made: SettingsDesk, agent: Agent | None = None) -> dict[str, tuple[str, str]]:
    return {row.key: (row.value, row.source) for row in await made.all(agent)}


@pytest.mark.rule("CL-4", "SA-6")
async def test_each_setting_tells_who_says_what_it_is_and_the_nearest_word_wins(tmp_path: Path) -> None:
    content = {"model": "a/file", "thinking": "low", "retry": {"max_retries": 9}, "store": "jsonl", "models": {"a/b": {}}}
    made, _, _ = desk(tmp_path, content)
    found = await told(made)
    assert (found["model"], found["thinking"], found["retry.max_retries"]) == (("a/file", "your file"), ("low", "your file"), ("9", "your file"))
    assert (found["approve"], found["store"], found["models"]) == (("ask", "default"), ("jsonl", "your file"), ("1 set", "your file"))
    project = ProjectSettings(model="a/project", thinking="high")
    assert (await told(desk(tmp_path, content, project=project)[0]))["thinking"] == ("high", "project file")
    made, _, _ = desk(tmp_path, content, project=project, PIDURABLE_MODEL="a/environment", PIDURABLE_STORE="sqlite")
    found = await told(made)
    assert (found["model"], found["store"]) == (("a/environment", "environment"), ("sqlite", "environment"))
    made, _, _ = desk(tmp_path, content, project=project, PIDURABLE_MODEL="a/environment", wish=Wish(model="a/option", max_turns=3))
    found = await told(made, Agent(model="a/option", thinking="off", approval="ask"))
    assert (found["model"], found["max_turns"], found["thinking"]) == (("a/option", "option"), ("3", "option"), ("off", "this chat"))


@pytest.mark.rule("CL-4")
async def test_without_a_word_a_new_chat_gets_the_model_of_the_first_key(tmp_path: Path) -> None:
    made, _, _ = desk(tmp_path, {}, ANTHROPIC_API_KEY="k")
    value, source = (await told(made))["model"]
    assert (value.startswith("anthropic/"), source) == (True, "default")


@pytest.mark.rule("CL-4", "EX-2")
async def test_a_change_is_stored_first_and_in_force_at_once(tmp_path: Path) -> None:
    made, running, file = desk(tmp_path, {"theme": "dark"}, wish=Wish(max_turns=3))
    running.limits.max_turns = 3
    for key, typed in (
        ("max_turns", "8"),
        ("max_cost_usd", "2.5"),
        ("restart_limit", "unlimited"),
        ("retry.enabled", "false"),
        ("compaction.keep_tokens", "900"),
        ("steering_mode", "all"),
    ):
        assert (await made.change(key, typed)).overruled_by == ""
    expected = HarnessSettings(restart_limit=math.inf, steering_mode="all")
    expected.limits.max_turns, expected.limits.max_cost_usd, expected.retry.enabled, expected.compaction.keep_tokens = 8, 2.5, False, 900
    assert running == expected
    stored = msgspec.json.decode(file.read_bytes())
    assert stored == {
        "theme": "dark",
        "max_turns": 8,
        "max_cost_usd": 2.5,
        "restart_limit": "unlimited",
        "retry": {"enabled": False},
        "compaction": {"keep_tokens": 900},
        "steering_mode": "all",
    }
    assert (await told(made))["max_turns"] == ("8", "your file"), "a later word of the same person"
    assert settings.load(file.parent, {}).harness() == expected, "and so it is after the next start"
    for key in ("max_turns", "max_cost_usd", "restart_limit", "retry.enabled", "compaction.keep_tokens", "steering_mode"):
        await made.change(key, None)
    assert running == HarnessSettings()
    assert msgspec.json.decode(file.read_bytes()) == {"theme": "dark", "retry": {}, "compaction": {}}


@pytest.mark.rule("CL-4")
async def test_a_change_that_somebody_else_overrules_says_who_and_is_stored(tmp_path: Path) -> None:
    made, _, file = desk(tmp_path, {}, PIDURABLE_MODEL="a/environment")
    changed = await made.change("model", "a/file")
    assert (changed.value, changed.overruled_by) == ("a/environment", "the environment")
    assert msgspec.json.decode(file.read_bytes()) == {"model": "a/file"}


@pytest.mark.rule("CL-4")
async def test_a_value_that_is_not_allowed_and_a_file_that_is_broken_change_nothing(tmp_path: Path) -> None:
    made, running, file = desk(tmp_path, {})
    with pytest.raises(ConfigError, match="not allowed for theme"):
        await made.change("theme", "pink")
    file.write_text("{broken")
    with pytest.raises(ConfigError, match="are not JSON") as caught:
        await made.change("max_turns", "4")
    assert caught.value.message.endswith("Nothing was changed.")
    with pytest.raises(ConfigError, match="are not JSON"):
        await made.all(None)
    assert (file.read_text(), running) == ("{broken", HarnessSettings())


def test_every_key_that_the_harness_goes_by_is_put_in_force() -> None:
    """Which keys change nothing in a running harness is written down here, so that a new one is thought of."""
    elsewhere = {
        "model",
        "thinking",
        "approve",
        "theme",
        "mouse",
        "bell",
        "on_continue",
        "store",
        "models",
        "base_urls",
        "mcp_servers",
        "keyring",
        "sandbox",
        "sandbox_writable",
        "commands.processes",
        "commands.open_files",
        "commands.file_mb",
    }
    for meaning in MEANINGS:
        running = HarnessSettings()
        other = {bool: False, float: 9.5}.get(allowed(meaning.key)[0], "all" if meaning.key.endswith("_mode") else 77)  # type: ignore[call-overload]
        use(running, meaning.key, other)
        assert (running == HarnessSettings()) == (meaning.key in elsewhere), meaning.key


# --------------------------------------------------------------------------------------------------------------- the models


def test_models_that_answer_in_a_chat_are_offered_with_provider_window_and_price() -> None:
    table: dict[str, dict[str, Any]] = {
        "gpt-x": {"litellm_provider": "openai", "mode": "chat", "max_input_tokens": 9, "input_cost_per_token": 2.5e-7, "output_cost_per_token": 2e-6},
        "openai/gpt-y": {"litellm_provider": "openai", "mode": "responses"},
        "groq/free": {"litellm_provider": "groq", "mode": "chat", "input_cost_per_token": 0, "output_cost_per_token": 0},
        "ft:gpt-x": {"litellm_provider": "openai", "mode": "chat"},
        "dall-e": {"litellm_provider": "openai", "mode": "image_generation"},
        "claude": {"litellm_provider": "anthropic", "mode": "chat"},
    }
    assert offers(table, ("openai", "groq")) == (
        Offer(name="groq/free", window_tokens=None, input_usd=None, output_usd=None),
        Offer(name="openai/gpt-x", window_tokens=9, input_usd=0.25, output_usd=2.0),
        Offer(name="openai/gpt-y", window_tokens=None, input_usd=None, output_usd=None),
    )
