"""The settings file and the choice of a model: CL-4, CL-5, SA-6, CASE-H2."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path

import pytest

from pi_durable_tui.cli import providers, settings
from pi_durable_tui.errors import ConfigError
from pi_durable_tui.harness.settings import Compaction, Limits, Retry
from pi_durable_tui.harness.settings import Settings as HarnessSettings
from pi_durable_tui.mcp.config import McpServer
from pi_durable_tui.models.catalog import PROVIDERS, table_entry
from pi_durable_tui.models.overrides import ModelOverride
from pi_durable_tui.tools.process import CommandLimits


def _load(folder: Path, content: object, **environ: str) -> settings.UserSettings:
    (folder / "settings.json").write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return settings.load(folder, environ)


@pytest.mark.rule("CL-4")
def test_without_a_file_everything_has_its_default(tmp_path: Path) -> None:
    assert settings.load(tmp_path, {}) == settings.UserSettings()
    assert settings.UserSettings().harness() == HarnessSettings()


@pytest.mark.rule("CL-4")
def test_every_key_of_the_file_takes_effect(tmp_path: Path) -> None:
    content = {
        "model": "a/b",
        "approve": "edits",
        "thinking": "low",
        "theme": "dark",
        "mouse": False,
        "bell": False,
        "on_continue": "ask",
        "max_turns": 30,
        "max_cost_usd": 1.5,
        "max_time_s": 600,
        "steering_mode": "all",
        "follow_up_mode": "all",
        "restart_limit": "unlimited",
        "store": "jsonl",
        "models": {"a/b": {"context_window_tokens": 9, "thinking_levels": ["off", "low"], "input_usd_per_million": 0.5}},
        "base_urls": {"openai": "http://127.0.0.1:9/v1"},
        "keyring": ["ANTHROPIC_API_KEY"],
        "sandbox": "full",
        "sandbox_writable": ["~/.cache", "/srv/shared"],
        "mcp_servers": {"docs": {"command": "docs-server", "args": ["-v"]}, "far": {"url": "https://example.org/mcp", "headers": {"X-Key": "$FAR_KEY"}}},
        "retry": {"max_retries": 7, "enabled": False},
        "compaction": {"keep_tokens": 900},
        "commands": {"background": 3, "processes": 500, "file_mb": 2},
        "$schema": "settings.schema.json",
    }
    found = _load(tmp_path, content)
    assert (found.model, found.approve, found.thinking, found.theme, found.store) == ("a/b", "edits", "low", "dark", "jsonl")
    assert found.harness() == HarnessSettings(
        restart_limit=math.inf,
        retry=Retry(max_retries=7, enabled=False),
        compaction=Compaction(keep_tokens=900),
        limits=Limits(max_turns=30, max_cost_usd=1.5, max_time_ms=600_000, background_calls=3),
        steering_mode="all",
        follow_up_mode="all",
    )
    assert found.command_limits() == CommandLimits(processes=500, file_bytes=2_000_000)
    assert (found.mouse, found.bell) == (False, False)
    assert (found.sandbox, found.sandbox_writable) == ("full", ("~/.cache", "/srv/shared"))
    assert found.models == {"a/b": ModelOverride(context_window_tokens=9, thinking_levels=("off", "low"), input_usd_per_million=0.5)}
    assert found.base_urls == content["base_urls"]
    assert found.mcp_servers == {
        "docs": McpServer(command="docs-server", args=("-v",)),
        "far": McpServer(url="https://example.org/mcp", headers={"X-Key": "$FAR_KEY"}),
    }
    assert set(content) == set(settings.ALLOWED)


@pytest.mark.rule("CL-4")
def test_a_settings_file_that_is_a_link_stays_one(tmp_path: Path) -> None:
    kept = tmp_path / "kept elsewhere.json"
    kept.write_text('{"theme": "light"}')
    (tmp_path / "settings.json").symlink_to(kept)
    settings.remember(tmp_path, "theme", "dark")
    assert (tmp_path / "settings.json").readlink() == kept
    assert json.loads(kept.read_text()) == {"theme": "dark"}


@pytest.mark.rule("CL-4", "SA-16")
def test_a_remembered_value_leaves_the_others_as_they_are_and_a_wrong_file_untouched(tmp_path: Path) -> None:
    config = tmp_path / "made"
    settings.remember(config, "theme", "light")
    assert settings.load(config, {}).theme == "light"
    assert ((config / "settings.json").stat().st_mode & 0o777, config.stat().st_mode & 0o777) == (0o600, 0o700)
    before = _load(config, {"restart_limit": "unlimited", "theme": "light"})
    settings.remember(config, "theme", "ansi")
    assert settings.load(config, {}) == settings.UserSettings(restart_limit=before.restart_limit, theme="ansi")
    with pytest.raises(ConfigError, match="'theme'"):
        settings.remember(config, "theme", "pink")
    assert settings.load(config, {}).theme == "ansi"
    (config / "settings.json").write_text("{broken", encoding="utf-8")
    with pytest.raises(ConfigError, match="not JSON"):
        settings.remember(config, "theme", "dark")
    assert (config / "settings.json").read_text(encoding="utf-8") == "{broken"


@pytest.mark.rule("CL-4")
def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    assert _load(tmp_path, {"model": "a/b"}, PIDURABLE_MODEL="c/d").model == "c/d"
    assert _load(tmp_path, {"model": "a/b"}, PIDURABLE_MODEL="").model == "a/b"
    assert _load(tmp_path, {"store": "sqlite"}, PIDURABLE_STORE="jsonl").store == "jsonl"
    assert _load(tmp_path, {"store": "jsonl"}, PIDURABLE_STORE="").store == "jsonl"


@pytest.mark.rule("CL-4")
def test_a_kind_of_store_that_is_none_is_refused_wherever_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="PIDURABLE_STORE is 'postgres'") as caught:
        settings.load(tmp_path, {"PIDURABLE_STORE": "postgres"})
    assert caught.value.hint == 'Allowed: "sqlite" or "jsonl".'
    with pytest.raises(ConfigError, match="value \"postgres\" for 'store'"):
        _load(tmp_path, {"store": "postgres"})


@pytest.mark.rule("CL-4")
@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        ('{"model": ', "are not JSON", "Correct the file"),
        ([], "must be a JSON object", "Allowed keys: model,"),
        ({"modle": "x"}, "unknown key 'modle'", "Allowed keys: model, approve"),
        (
            {"mcp_servers": {"docs": {"command": "docs"}, "web": {"url": "https://example.org", "headers": {"A": "plain"}}}},
            'value {"url":"https://example.org","headers":{"A":"plain"}} for \'mcp_servers\' (\'web\')',
            "Allowed: an object: name ->",
        ),
        ({"base_urls": {"openai": "x" * 200}}, f"value \"{'x' * 118}… for 'base_urls' ('openai')", "Allowed: an object: provider ->"),
        ({"approve": "yes"}, "value \"yes\" for 'approve'", 'Allowed: "ask", "edits", "all" or "plan".'),
        ({"restart_limit": 0}, "value 0 for 'restart_limit'", 'a whole number from 1, or "unlimited"'),
        ({"retry": {"tries": 1}}, "unknown key 'retry.tries'", "retry.max_retries"),
        ({"retry": {"max_retries": -1}}, "value -1 for 'retry.max_retries'", "from 0 to 1000"),
        ({"retry": 3}, "value 3 for 'retry'", "an object with enabled"),
        ({"models": {"a/b": {"window": 1}}}, "for 'models'", "context_window_tokens"),
        ({"model": ""}, "value \"\" for 'model'", "a model id such as"),
    ],
)
def test_a_wrong_setting_is_named_with_its_file_its_key_and_what_is_allowed(tmp_path: Path, content: object, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, content)
    assert message in caught.value.message
    assert str(tmp_path / "settings.json") in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.rule("SA-6", "SA-17")
@pytest.mark.parametrize("key", ["api_key", "base_url", "data_dir", "headers"])
def test_secrets_and_addresses_have_no_key_in_the_settings(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown key '{key}'"):
        _load(tmp_path, {key: "x"})


@pytest.mark.rule("CL-5", "CASE-H2")
def test_the_default_model_is_that_of_the_first_key_that_is_set() -> None:
    assert providers.default_model({"OPENAI_API_KEY": "k", "GROQ_API_KEY": "k"}) == "openai/gpt-5.6"
    assert providers.default_model({"OPENAI_API_KEY": " \n", "GROQ_API_KEY": "k"}) == "groq/openai/gpt-oss-120b"
    assert providers.default_model({"OPENROUTER_API_KEY": "k"}) is None
    assert providers.default_model({}) is None


@pytest.mark.rule("CL-5", "CASE-H2")
def test_a_missing_key_names_provider_and_variable() -> None:
    error = providers.unreachable("anthropic/any", {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": ""}, {})
    assert error is not None
    assert error.message == "No key for anthropic: set ANTHROPIC_API_KEY in the environment. Nothing was sent."


@pytest.mark.rule("CL-5")
def test_a_model_without_a_provider_is_held_back() -> None:
    error = providers.unreachable("some-model", {"OPENAI_API_KEY": "k"}, {})
    assert error is not None
    assert "'some-model' names no provider" in error.message


@pytest.mark.parametrize(
    ("model", "environ"),
    [
        ("anthropic/any", {"ANTHROPIC_API_KEY": "k"}),
        ("openai/local", {"OPENAI_API_BASE": "http://127.0.0.1:1"}),
        ("gemini/any", {"GOOGLE_API_KEY": "k"}),
        ("unknown/any", {}),
        ("playback/01-hello", {}),
    ],
)
def test_a_model_that_may_work_is_not_held_back(model: str, environ: dict[str, str]) -> None:
    assert providers.unreachable(model, environ, {}) is None


@pytest.mark.rule("CL-5")
def test_no_model_names_every_variable_that_was_looked_for() -> None:
    text = providers.no_model().hint
    assert [name for name in providers.DEFAULTS if PROVIDERS[name].keys[0] not in text] == []


def test_every_default_model_is_in_the_table_of_the_model_library() -> None:
    spec = importlib.util.find_spec("litellm")
    assert spec is not None
    assert spec.origin is not None
    known = json.loads((Path(spec.origin).parent / "model_prices_and_context_window_backup.json").read_text(encoding="utf-8"))
    assert [model for model in providers.DEFAULTS.values() if table_entry(known, model) is None] == []


@pytest.mark.rule("SA-6", "AG-5")
def test_base_urls_are_http_and_win_over_a_missing_key() -> None:
    values = settings.parse('{"base_urls": {"openai": "http://127.0.0.1:9/v1"}}', "s")
    assert providers.unreachable("openai/x", {}, values["base_urls"]) is None
    assert providers.unreachable("openai/x", {}, {}) is not None
    for wrong in ('"file:///etc"', '"ftp://x"', "7", '"http://"'):
        with pytest.raises(ConfigError, match="'base_urls'"):
            settings.parse(f'{{"base_urls": {{"openai": {wrong}}}}}', "s")
