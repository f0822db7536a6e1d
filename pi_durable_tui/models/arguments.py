"""A ModelRequest as the keyword arguments of one LiteLLM call, and its options as limits. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pi_durable_tui.harness.ports import ModelFailed, ModelRequest
from pi_durable_tui.models.catalog import Access, model_info, provider_of
from pi_durable_tui.models.conversion import ends_without_thinking, openai_messages, openai_tools, without_pictures
from pi_durable_tui.models.forms import form_of
from pi_durable_tui.models.overrides import NOTHING, ModelOverride
from pi_durable_tui.records.json import Json, JsonObject
from pi_durable_tui.records.modes import ThinkingLevel

IDLE_TIMEOUT_MS = 120_000
"""A stream that says nothing for this long is given up (CASE-B4); `idle_timeout_ms` changes it."""

OPTIONS: Mapping[str, type | tuple[type, ...]] = {
    "timeout_ms": (int, float),
    "idle_timeout_ms": (int, float),
    "max_output_tokens": int,
    "temperature": (int, float),
    "headers": dict,
}
"""Every option of a request and its type. `timeout_ms` bounds the whole request; without it only silence does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a request may take; `total_ms` None: as long as something comes."""

    idle_ms: float = IDLE_TIMEOUT_MS
    total_ms: float | None = None


def limits(options: JsonObject) -> Limits | ModelFailed:
    """The limits in `options`.

    Returns:
        ModelFailed `invalid_request` for an option that does not exist or has another type: nothing would say so otherwise.
    """
    for name, value in options.items():
        kinds = OPTIONS.get(name)
        if kinds is None:
            return _invalid(f"Unknown model option {name!r}. Known are {', '.join(OPTIONS)}.")
        if isinstance(value, bool) or not isinstance(value, kinds):
            return _invalid(f"The model option {name!r} has the value {value!r}, which is of the wrong type.")
        if isinstance(value, int | float) and name != "temperature" and value <= 0:
            return _invalid(f"The model option {name!r} is {value}; it must be more than 0.")
    return Limits(idle_ms=_number(options.get("idle_timeout_ms")) or IDLE_TIMEOUT_MS, total_ms=_number(options.get("timeout_ms")))


def call_arguments(request: ModelRequest, entry: Mapping[str, Any] | None, access: Access, bounds: Limits, override: ModelOverride = NOTHING) -> dict[str, Any]:
    """What LiteLLM is called with: one request, streamed, without any retry but the harness's own (CASE-B3).

    Args:
        entry: What is known of the model, `override` laid over it; None: nothing.
        override: What the person says of it.

    Returns:
        Keyword arguments. The library's own timeout lies behind ours, so that ours is the one that tells what happened.
    """
    form = form_of(request.model, entry)
    messages = request.messages if model_info(entry).takes_images is not False else without_pictures(request.messages)
    arguments: dict[str, Any] = {
        "model": request.model,
        "messages": openai_messages(messages, model=request.model, form=form),
        "stream": True,
        "stream_options": {"include_usage": True},
        "num_retries": 0,
        "max_retries": 0,
        "timeout": (bounds.total_ms if bounds.total_ms is not None else bounds.idle_ms) / 1000 + 5,
        "drop_params": True,  # what a provider has no word for (such as stream_options) is left out instead of refused
    }
    if request.tools:
        arguments["tools"] = openai_tools(request.tools)
    effort = reasoning_effort(request, entry)
    if effort is not None:
        arguments["reasoning_effort"] = effort
        if override.thinking_levels is not None:
            arguments["allowed_openai_params"] = ["reasoning_effort"]  # the person knows better than the library, which would leave it out
    if override.max_output_tokens is not None:
        arguments["max_tokens"] = override.max_output_tokens
    for name, option in (("max_tokens", "max_output_tokens"), ("temperature", "temperature"), ("extra_headers", "headers")):
        if option in request.options:
            arguments[name] = request.options[option]
    if form == "responses":  # nothing is kept there for us, so the thoughts of an answer come along, encrypted, and go back with it
        arguments |= {"include": ["reasoning.encrypted_content"], "store": False}
    if request.session_id and provider_of(request.model) == "openai" and access.base_url is None:
        arguments["prompt_cache_key"] = request.session_id  # other servers of this form may refuse what they do not know
    if access.api_key is not None:
        arguments["api_key"] = access.api_key
    if access.base_url is not None:
        arguments["api_base"] = access.base_url
    return arguments


def reasoning_effort(request: ModelRequest, entry: Mapping[str, Any] | None) -> str | None:
    """What to ask for; None: nothing, because the model does not think, or would refuse to in this place."""
    if request.thinking == "off":
        return "none" if entry is not None and entry.get("supports_none_reasoning_effort") else None
    levels = model_info(entry).thinking_levels
    if request.thinking not in levels or ("claude" in request.model and ends_without_thinking(request.messages, model=request.model)):
        return None
    effort: ThinkingLevel = request.thinking
    return effort


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _invalid(message: str) -> ModelFailed:
    return ModelFailed(reason="invalid_request", message=message, retryable=False)
