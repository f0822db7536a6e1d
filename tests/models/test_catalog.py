"""What is known of providers and models before anybody is asked."""

from __future__ import annotations

import asyncio
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from pi_durable_tui.harness.ports import ModelFailed, ModelInfo, ModelRequest
from pi_durable_tui.models.arguments import IDLE_TIMEOUT_MS, Limits, call_arguments, limits, reasoning_effort
from pi_durable_tui.models.catalog import PROVIDERS, Access, access, configured, has_price, loaded_keys, model_info, table_entry
from pi_durable_tui.models.usage import usage_of
from pi_durable_tui.records.messages import AssistantMessage, Text, ToolCall, ToolResultMessage, Usage, UserMessage
from pi_durable_tui.records.modes import ThinkingLevel

ROOT = pathlib.Path(__file__).parents[2]
HI = (UserMessage(content=(Text(text="hi"),)),)


@pytest.mark.parametrize(
    ("model", "environ", "base_urls", "expected"),
    [
        ("openai/x", {"OPENAI_API_KEY": "k1"}, {}, Access(api_key="k1")),
        ("openai/x", {"OPENAI_API_KEY": " k1\n"}, {}, Access(api_key="k1")),
        ("gemini/x", {"GOOGLE_API_KEY": "k2"}, {}, Access(api_key="k2")),
        ("gemini/x", {"GEMINI_API_KEY": "", "GOOGLE_API_KEY": "k2"}, {}, Access(api_key="k2")),
        ("anthropic/x", {"ANTHROPIC_AUTH_TOKEN": "t"}, {}, Access()),
        ("openai/x", {"OPENAI_BASE_URL": "http://a"}, {}, Access(api_key="none", base_url="http://a")),
        ("openai/x", {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": "http://a"}, {"openai": "http://b"}, Access(api_key="k", base_url="http://b")),
        ("ollama_chat/x", {}, {}, Access()),
        ("bedrock/x", {}, {}, Access()),
        ("bedrock/x", {}, {"bedrock": "http://b"}, Access(base_url="http://b")),
    ],
)
@pytest.mark.rule("AG-5", "SA-6")
def test_keys_and_base_urls_come_from_the_given_environment_and_settings(
    model: str, environ: dict[str, str], base_urls: dict[str, str], expected: Access
) -> None:
    assert access(model, environ, base_urls) == expected


@pytest.mark.parametrize("name", sorted(name for name, provider in PROVIDERS.items() if provider.keys))
@pytest.mark.parametrize("value", [None, "", " \n"])
@pytest.mark.rule("CASE-H2", "CL-5")
def test_a_missing_key_names_the_provider_and_its_variable(name: str, value: str | None) -> None:
    environ = {} if value is None else dict.fromkeys(PROVIDERS[name].keys, value)
    failed = access(f"{name}/x", environ, {})

    expected = f"No key for {name}: set {' or '.join(PROVIDERS[name].keys)} in the environment. Nothing was sent."
    assert failed == ModelFailed(reason="auth", message=expected, retryable=False)


@pytest.mark.parametrize("model", ["", "gpt-4o", "openai/"])
def test_a_model_without_provider_or_name_says_how_to_write_one(model: str) -> None:
    failed = access(model, {}, {})

    assert isinstance(failed, ModelFailed)
    assert (failed.reason, failed.retryable) == ("no_model", False)
    assert "Write provider/name, such as" in failed.message


@pytest.mark.rule("CL-5", "SA-17")
def test_what_is_set_is_listed_by_name_and_its_values_are_known_as_secrets() -> None:
    environ = {"OPENAI_API_KEY": "k1", "ANTHROPIC_AUTH_TOKEN": "t1", "GROQ_API_KEY": " ", "PATH": "/bin"}

    assert configured(environ) == ("anthropic", "openai")
    assert set(loaded_keys(environ)) == {"k1", "t1"}


TABLE: dict[str, dict[str, Any]] = {
    "gpt-x": {"litellm_provider": "openai", "max_input_tokens": 100, "max_output_tokens": 10, "input_cost_per_token": 1e-6},
    "xai/deep": {"litellm_provider": "xai", "supports_reasoning": True, "reasoning_effort_levels": ["low", "high"], "input_cost_per_token": 0},
}


@pytest.mark.rule("AG-5")
def test_a_model_is_found_in_the_table_only_under_its_provider() -> None:
    assert table_entry(TABLE, "openai/gpt-x") is TABLE["gpt-x"]
    assert table_entry(TABLE, "xai/deep") is TABLE["xai/deep"]
    assert table_entry(TABLE, "groq/gpt-x") is None
    assert table_entry(TABLE, "openai/none") is None


@pytest.mark.rule("AG-5")
def test_what_the_table_does_not_say_is_unknown() -> None:
    assert model_info(TABLE["gpt-x"]) == ModelInfo(context_window_tokens=100, max_output_tokens=10, takes_images=False)
    assert model_info(TABLE["xai/deep"]) == ModelInfo(thinking_levels=("off", "low", "high"), takes_images=False)
    assert model_info(None) == ModelInfo()
    assert [has_price(TABLE["gpt-x"]), has_price(TABLE["xai/deep"]), has_price(None)] == [True, False, False]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Limits(idle_ms=IDLE_TIMEOUT_MS)),
        ({"idle_timeout_ms": 10, "timeout_ms": 2.5, "max_output_tokens": 5, "headers": {}, "temperature": 0}, Limits(idle_ms=10, total_ms=2.5)),
    ],
)
def test_limits_come_from_the_options(options: dict[str, Any], expected: Limits) -> None:
    assert limits(options) == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"timeout": 5}, "Unknown model option 'timeout'. Known are timeout_ms,"),
        ({"timeout_ms": "5"}, "of the wrong type"),
        ({"max_output_tokens": True}, "of the wrong type"),
        ({"idle_timeout_ms": 0}, "must be more than 0"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(options: dict[str, Any], words: str) -> None:
    failed = limits(options)

    assert isinstance(failed, ModelFailed)
    assert (failed.reason, failed.retryable) == ("invalid_request", False)
    assert words in failed.message


@pytest.mark.rule("CASE-B3", "GE-9")
def test_a_call_has_no_retries_below_ours_and_the_key_of_its_conversation_where_it_is_understood() -> None:
    request = ModelRequest(model="openai/gpt-x", messages=HI, session_id="s1")
    official = call_arguments(request, None, Access(api_key="k"), Limits())
    other = call_arguments(request, None, Access(api_key="k", base_url="http://a"), Limits(total_ms=1_000))

    expected: dict[str, Any] = {
        "model": "openai/gpt-x",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "num_retries": 0,
        "max_retries": 0,
        "drop_params": True,
        "api_key": "k",
    }
    assert official == {**expected, "timeout": 125.0, "prompt_cache_key": "s1"}
    assert other == {**expected, "timeout": 6.0, "api_base": "http://a"}


UNSIGNED_ROUND = (
    *HI,
    AssistantMessage(content=(ToolCall(id="a", name="read", arguments={}),), model="openai/x", stop_reason="toolUse"),
    ToolResultMessage(tool_call_id="a", tool_name="read", content=()),
)


@pytest.mark.parametrize(
    ("model", "messages", "entry", "level", "effort"),
    [
        ("xai/deep", HI, TABLE["xai/deep"], "low", "low"),
        ("xai/deep", HI, TABLE["xai/deep"], "medium", None),
        ("xai/deep", HI, TABLE["xai/deep"], "off", None),
        ("openai/gpt-y", HI, {"supports_reasoning": True, "supports_none_reasoning_effort": True}, "off", "none"),
        ("openai/gpt-x", HI, TABLE["gpt-x"], "high", None),
        ("openai/local", HI, None, "high", None),
        ("anthropic/claude-x", HI, {"supports_reasoning": True}, "high", "high"),
        ("anthropic/claude-x", UNSIGNED_ROUND, {"supports_reasoning": True}, "high", None),
        ("xai/deep", UNSIGNED_ROUND, TABLE["xai/deep"], "high", "high"),
    ],
)
@pytest.mark.rule("AG-5", "CASE-B9")
def test_thinking_is_asked_for_only_where_the_model_can(
    model: str, messages: tuple[Any, ...], entry: dict[str, Any] | None, level: ThinkingLevel, effort: str | None
) -> None:
    assert reasoning_effort(ModelRequest(model=model, messages=messages, thinking=level), entry) == effort


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (
            {"prompt_tokens": 100_000, "completion_tokens": 500, "prompt_tokens_details": {"cached_tokens": 90_000}},
            Usage(input_tokens=100_000, output_tokens=500, cache_read_tokens=90_000),
        ),
        (
            {"prompt_tokens": 10_000, "completion_tokens": 500, "cache_read_input_tokens": 90_000},
            Usage(input_tokens=100_000, output_tokens=500, cache_read_tokens=90_000),
        ),
        (
            {"prompt_tokens": 70, "prompt_tokens_details": {"cached_tokens": 40}, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 20},
            Usage(input_tokens=70, cache_read_tokens=40, cache_write_tokens=20),
        ),
        ({"prompt_tokens": None, "prompt_tokens_details": None}, Usage()),
        ({}, Usage()),
    ],
)
@pytest.mark.rule("CASE-F5")
def test_each_token_is_counted_once_in_either_form(counts: dict[str, Any], expected: Usage) -> None:
    assert usage_of(counts, cost_usd=None) == expected


ASK_WITHOUT_KEY = """
import asyncio, sys
from pi_durable_tui.clock import SystemClock
from pi_durable_tui.entropy import SystemEntropy
from pi_durable_tui.harness.ports import ModelRequest
from pi_durable_tui.models.litellm_gateway import LiteLlmGateway

async def main():
    gateway = LiteLlmGateway(clock=SystemClock(), entropy=SystemEntropy(), environ={})
    events = [event async for event in gateway.stream(ModelRequest(model="openai/x", messages=()))]
    await gateway.close()
    print(len(events), events[0].reason, "litellm" in sys.modules)

asyncio.run(main())
"""

LOAD_IN_A_HOSTILE_FOLDER = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[1])
before = dict(os.environ)
def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen"):
        os.write(1, f"{event} {arguments}\\n".encode())
sys.addaudithook(refuse)
from pi_durable_tui.clock import SystemClock
from pi_durable_tui.entropy import SystemEntropy
from pi_durable_tui.models.litellm_gateway import LiteLlmGateway

async def main():
    gateway = LiteLlmGateway(clock=SystemClock(), entropy=SystemEntropy(), environ={})
    assert "litellm" not in sys.modules
    await gateway.warm_up()
    assert "litellm" in sys.modules
    await gateway.close()

asyncio.run(main())
print(sorted(name for name, value in os.environ.items() if before.get(name) != value))
"""


async def run(program: str, *arguments: str, cwd: pathlib.Path) -> tuple[str, str]:
    # Whatever the library has set in this process by now must not be in place already.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("LITELLM_", "TIKTOKEN_"))}
    environ = {**inherited, "PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-c", program, *arguments, cwd=cwd, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    output, errors = await process.communicate()
    return output.decode(), errors.decode()


@pytest.mark.slow
@pytest.mark.rule("CASE-H2")
async def test_a_missing_key_is_told_without_loading_the_library(tmp_path: pathlib.Path) -> None:
    assert await run(ASK_WITHOUT_KEY, cwd=tmp_path) == ("1 auth False\n", "")


@pytest.mark.slow
@pytest.mark.rule("SA-7", "CASE-B11", "CASE-G4")
async def test_loading_the_library_reads_no_env_file_opens_no_connection_and_prints_nothing(tmp_path: pathlib.Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=http://127.0.0.1:9\nHTTPS_PROXY=http://127.0.0.1:9\nLITELLM_LOG=DEBUG\n")

    changed = "['LITELLM_LOCAL_MODEL_COST_MAP', 'LITELLM_MODE', 'TIKTOKEN_CACHE_DIR']\n"  # the last one is the library's own, a folder of it
    assert await run(LOAD_IN_A_HOSTILE_FOLDER, str(ROOT), cwd=tmp_path) == (changed, "")
