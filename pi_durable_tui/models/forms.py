"""What differs between providers in the form of a request: who takes thoughts back and how, cache markers, ids of calls. Pure tables.

The library translates one form into each provider's; what is decided here is what it must not be given, because it hands it on as it is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from pi_durable_tui.models.catalog import provider_of
from pi_durable_tui.records.messages import AssistantMessage, Message

Form: TypeAlias = Literal["chat", "responses", "messages"]
"""OpenAI's chat completions and everything like it, OpenAI's responses, Anthropic's messages."""

ENCRYPTED = "litellm_encrypted_reasoning:"
"""How the signature of a thought begins whose ciphertext only OpenAI's responses form takes back; the library knows it by this."""

CACHE_MARK: Mapping[str, str] = MappingProxyType({"type": "ephemeral"})
"""What stands at the end of a beginning that the provider shall keep for the next request (five minutes, which is the default)."""

_CLAUDE_HOSTS = frozenset({"vertex_ai", "bedrock", "azure_ai"})
_TOLD_THOUGHTS = frozenset({"deepseek", "moonshot"})

_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_NINE = re.compile(r"[A-Za-z0-9]{9}")
_CHECKED_IDS = frozenset({"openai", "azure"})
_NINE_LETTERS = frozenset({"mistral", "codestral"})


def form_of(model: str, entry: Mapping[str, Any] | None) -> Form:
    """Which form a request to `model` is sent in.

    Args:
        entry: What the local table says of it. The library may choose the responses form for further models of OpenAI; they are treated as
            of the chat form, which leaves out more and is valid in both.
    """
    provider, _, name = model.partition("/")
    if provider == "anthropic" or (provider in _CLAUDE_HOSTS and "claude" in name):
        return "messages"
    if provider in {"openai", "azure"} and (name.startswith("responses/") or (entry or {}).get("mode") == "responses"):
        return "responses"
    return "chat"


def wants_cache_marks(model: str) -> bool:
    """True where the provider keeps a beginning only when it is marked: Claude, also behind OpenRouter. The others do it by themselves."""
    return form_of(model, None) == "messages" or model.startswith("openrouter/anthropic/")


def wants_told_thoughts(model: str) -> bool:
    """True where unsigned thoughts of an open tool round go back as text: these providers refuse a round without them."""
    return provider_of(model) in _TOLD_THOUGHTS


def origin_of(model: str) -> str:
    """Who signed a thinking block of `model`: everything before its last slash, so that vendors behind one router are told apart."""
    return model.rpartition("/")[0]


def call_ids(messages: Sequence[Message], *, model: str) -> dict[str, str]:
    """For each id of a call the one that `model`'s provider takes, the same for the call and its result, in this request and in each later one (CASE-B7).

    Providers refuse ids of another shape than their own. An id goes back as it is to where it came from, unless that provider checks ids:
    some read meaning in them (Gemini's hold the signature of a thought).
    """
    ids: dict[str, str] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            is_origin = origin_of(message.model) == origin_of(model)
            ids |= {call.id: _call_id(call.id, model, is_origin=is_origin) for call in message.tool_calls}
    return ids


def _call_id(call_id: str, model: str, *, is_origin: bool) -> str:
    provider = provider_of(model)
    if provider in _NINE_LETTERS:
        return call_id if _NINE.fullmatch(call_id) else hashlib.blake2b(call_id.encode(), digest_size=8).hexdigest()[:9]
    is_checked = provider in _CHECKED_IDS or form_of(model, None) == "messages"
    if (is_origin and not is_checked) or _SAFE_ID.fullmatch(call_id):
        return call_id
    return f"call_{hashlib.blake2b(call_id.encode(), digest_size=12).hexdigest()}"
