"""Our records as the OpenAI form that LiteLLM takes for every provider. Pure.

What providers refuse never leaves here (CASE-B2, CASE-B6): blank text blocks, an assistant message with neither text nor calls, names that are
no names, ids that are no ids, an empty tool result. Order and pairing of calls and results are the context derivation's work (rule CX-1);
nothing is added to it. What differs between providers is looked up in `forms.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import assert_never

import msgspec

from pi_durable_tui.harness.ports import ToolSpec
from pi_durable_tui.models.catalog import provider_of
from pi_durable_tui.models.forms import CACHE_MARK, ENCRYPTED, Form, call_ids, form_of, origin_of, wants_cache_marks, wants_told_thoughts
from pi_durable_tui.records.json import Json, JsonObject
from pi_durable_tui.records.messages import AssistantMessage, Content, Image, Message, SystemMessage, Text, Thinking, ToolCall, ToolResultMessage, UserMessage

NO_OUTPUT = "(no output)"
LATE_SYSTEM_PROVIDERS = frozenset({"openai", "azure"})
"""Providers that take a system message in the middle. Elsewhere it becomes a marked user message: hoisted to the top it would change, with
every new one, the beginning that prompt caches rely on, and chat templates of local models refuse it."""

_NAME = re.compile(r"[^A-Za-z0-9_-]")


def openai_messages(messages: Sequence[Message], *, model: str, form: Form | None = None) -> list[JsonObject]:
    """The conversation for `model`.

    Args:
        model: "provider/name"; thinking blocks go back only where they came from (CASE-B9).
        form: What the request is sent in; None: as far as the name tells.

    Returns:
        New objects. System messages at the beginning are one message; neighbouring user messages are one. An assistant message that has
        nothing a provider takes is left out. Where the provider wants to be told what to keep, the system message and the last ones of this
        request and of the one before are marked.
    """
    form = form or form_of(model, None)
    ids = call_ids(messages, model=model)
    head = 0
    while head < len(messages) and isinstance(messages[head], SystemMessage):
        head += 1
    result: list[JsonObject] = []
    instructions = _joined([text for message in messages[:head] for text in _texts(message.content)])
    if instructions:
        result.append({"role": "system", "content": instructions})
    pictures: list[Json] = []
    for message in messages[head:]:
        if pictures and not isinstance(message, ToolResultMessage):
            _add_user(result, pictures)
            pictures = []
        match message:
            case SystemMessage():
                _add_system(result, _joined(_texts(message.content)), provider_of(model))
            case UserMessage():
                _add_user(result, _parts(message.content))
            case AssistantMessage():
                answer = _assistant(message, model, form, ids)
                if answer is not None:
                    result.append(answer)
            case ToolResultMessage():
                call_id = ids.get(message.tool_call_id, message.tool_call_id)
                result.append({"role": "tool", "tool_call_id": call_id, "content": _result_text(message)})
                pictures.extend(_part(part) for part in message.content if isinstance(part, Image))
            case _:
                assert_never(message)
    if pictures:
        _add_user(result, pictures)
    plain = [_with_plain_text(message) for message in result]
    return _with_cache_marks(plain) if wants_cache_marks(model) else plain


def without_pictures(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The conversation for a model that takes no pictures: where one stood, it reads that there is one which it cannot see."""
    return tuple(msgspec.structs.replace(message, content=tuple(map(_told, message.content))) if _has_picture(message) else message for message in messages)


def _has_picture(message: Message) -> bool:
    return isinstance(message, UserMessage | ToolResultMessage) and any(isinstance(part, Image) for part in message.content)


def _told(part: object) -> object:
    return Text(text=f"(A picture stands here, {part.mime_type}. This model takes none.)") if isinstance(part, Image) else part


def openai_tools(tools: Sequence[ToolSpec]) -> list[JsonObject]:
    """The tools in the OpenAI form, in order."""
    return [{"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters}} for tool in tools]


def ends_without_thinking(messages: Sequence[Message], *, model: str) -> bool:
    """True when the newest answer made calls without a signed thought for `model`, whether or not a user has spoken since.

    Anthropic refuses a request that asks for thinking behind such results, as after a switch of the model in the middle of a run.
    """
    last = next((message for message in reversed(messages) if isinstance(message, AssistantMessage)), None)
    if last is None or not last.tool_calls:
        return False
    return not any(isinstance(part, Thinking) and part.signature for part in last.content) or origin_of(last.model) != origin_of(model)


def _assistant(message: AssistantMessage, model: str, form: Form, ids: Mapping[str, str]) -> JsonObject | None:
    is_origin = origin_of(message.model) == origin_of(model)
    content: list[Json] = []
    for part in message.content:
        match part:
            case Text() if part.text.strip():
                content.append({"type": "text", "text": part.text})
            case Thinking(signature=str(signature)) if is_origin and _goes_back(signature, form):
                content.append(_thinking_block(part, signature))
            case _:
                pass  # blank text, and thoughts that nobody signed or somebody else did
    calls: list[Json] = [_call(part, ids) for part in message.content if isinstance(part, ToolCall)]
    blocks = [block for block in content if isinstance(block, dict) and block["type"] != "text"]
    texts = [str(block["text"]) for block in content if isinstance(block, dict) and block["type"] == "text"]
    if not texts and not calls:
        return None
    # Only Anthropic's form has a place for thoughts between texts; elsewhere they would be taken for texts.
    answer: JsonObject = {"role": "assistant", "content": content if blocks and form == "messages" else _joined(texts) or None}
    if blocks:
        answer["thinking_blocks"] = list(blocks)
    if calls:
        answer["tool_calls"] = calls
        told = "".join(part.text for part in message.content if isinstance(part, Thinking))
        if is_origin and told.strip() and wants_told_thoughts(model):
            answer["reasoning_content"] = told
    return answer


def _goes_back(signature: str, form: Form) -> bool:
    match form:
        case "messages":
            return bool(signature) and not signature.startswith(ENCRYPTED)
        case "responses":
            return signature.startswith(ENCRYPTED)
        case "chat":
            return False


def _thinking_block(part: Thinking, signature: str) -> JsonObject:
    if part.redacted:
        return {"type": "redacted_thinking", "data": signature}
    return {"type": "thinking", "thinking": part.text, "signature": signature}


def _call(call: ToolCall, ids: Mapping[str, str]) -> JsonObject:
    arguments = json.dumps(call.arguments, ensure_ascii=False, separators=(",", ":"))
    name = _NAME.sub("_", call.name)[:64] or "unknown_tool"
    return {"id": ids[call.id], "type": "function", "function": {"name": name, "arguments": arguments}}


def _add_system(result: list[JsonObject], text: str, provider: str) -> None:
    if not text:
        return
    if provider in LATE_SYSTEM_PROVIDERS:
        result.append({"role": "system", "content": text})
    else:
        _add_user(result, [{"type": "text", "text": f"<system>\n{text}\n</system>"}])


def _add_user(result: list[JsonObject], parts: Sequence[Json]) -> None:
    """Adds to the user message before, so that roles alternate for providers that insist on it."""
    if not parts:
        return
    before = result[-1] if result else None
    if before is not None and before["role"] == "user" and isinstance(before["content"], list):
        before["content"].extend(parts)
    else:
        result.append({"role": "user", "content": list(parts)})


def _with_cache_marks(messages: list[JsonObject]) -> list[JsonObject]:
    """Marked are the instructions, the newest message, and the one before the last answer: up to there the provider knows it all already."""
    answers = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    places = {0, len(messages) - 1, *(place - 1 for place in answers[-1:])}
    return [_marked(message) if place in places and message["role"] != "assistant" else message for place, message in enumerate(messages)]


def _marked(message: JsonObject) -> JsonObject:
    mark: JsonObject = {"cache_control": dict(CACHE_MARK)}
    content = message["content"]
    if not isinstance(content, list):
        return message | mark
    *before, last = content
    assert isinstance(last, dict)  # a part of a message
    return {**message, "content": [*before, last | mark]}


def _with_plain_text(message: JsonObject) -> JsonObject:
    """A user message of texts only as one text: the form that every compatible server takes."""
    content = message["content"]
    if message["role"] != "user" or not isinstance(content, list):
        return message
    texts = [str(part["text"]) for part in content if isinstance(part, dict) and part["type"] == "text"]
    return {**message, "content": _joined(texts)} if len(texts) == len(content) else message


def _parts(content: Sequence[Content]) -> list[Json]:
    return [_part(part) for part in content if not isinstance(part, Text) or part.text.strip()]


def _part(part: Content) -> JsonObject:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Image():
            return {"type": "image_url", "image_url": {"url": f"data:{part.mime_type};base64,{part.data}"}}
        case _:
            assert_never(part)


def _result_text(message: ToolResultMessage) -> str:
    """One text, because that is all the form allows; pictures follow in a user message after the round."""
    text = "\n".join(_texts(message.content))
    pictures = sum(isinstance(part, Image) for part in message.content)
    if pictures:
        note = f"({pictures} image{'s' if pictures > 1 else ''} of this result: see the next user message)"
        return f"{text}\n{note}" if text else note
    return text or NO_OUTPUT


def _texts(content: Sequence[object]) -> list[str]:
    return [part.text for part in content if isinstance(part, Text) and part.text.strip()]


def _joined(texts: Sequence[str]) -> str:
    return "\n\n".join(texts)
