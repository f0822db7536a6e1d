"""What each provider refuses in a request as it goes over the wire, in its own form and words. PURE.

`model_strictness.py` judges what all of them refuse in the chat form; here is what only one of them knows: Anthropic's blocks, signatures and ids,
OpenAI's items, and keys of one provider that another has never heard of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tests.support.model_strictness import violation
from tests.support.wire_forms import FormName, Issued

ID = re.compile(r"[A-Za-z0-9_-]+")
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
CHAT_KEYS = frozenset({"role", "content", "tool_calls", "tool_call_id", "name", "refusal"})
MAX_CACHE_MARKS = 4
LONGEST_CHAT_ID, LONGEST_RESPONSES_ID = 40, 64


def wire_violation(form: FormName, body: Any, issued: Sequence[Issued]) -> str | None:
    """The first thing in `body` that the provider of this form refuses with HTTP 400; None when it is valid.

    Args:
        issued: What it has sent before.
    """
    if not isinstance(body, dict):
        return "the body must be an object"
    match form:
        case "chat":
            found: Iterator[str] = _chat(body)
        case "messages":
            found = _messages(body, issued)
        case "responses":
            found = _responses(body, issued)
    return next(found, None)


# ------------------------------------------------------------------------------------------------------------ OpenAI chat


def _chat(body: dict[str, Any]) -> Iterator[str]:
    general = violation(body)
    if general is not None:
        yield general
        return
    for index, message in enumerate(body["messages"]):
        where = f"messages.{index}"
        if unknown := sorted(set(message) - CHAT_KEYS):
            yield f"{where}: additional properties are not allowed: {', '.join(unknown)}"
        content = message.get("content")
        for part in content if isinstance(content, list) else []:
            if part.get("type") not in {"text", "image_url"} or "cache_control" in part:
                yield f"{where}: invalid content part {part.get('type')!r}"
        for call in message.get("tool_calls") or []:
            if len(call["id"]) > LONGEST_CHAT_ID:
                yield f"{where}: string too long. Expected a string with maximum length {LONGEST_CHAT_ID}"
            if not NAME.fullmatch(call["function"]["name"]):
                yield f"{where}: invalid function name"


# ------------------------------------------------------------------------------------------------------ Anthropic messages


def _messages(body: dict[str, Any], issued: Sequence[Issued]) -> Iterator[str]:
    messages = body.get("messages") or []
    if not messages:
        yield "messages: at least one message is required"
        return
    if messages[0].get("role") != "user" or messages[-1].get("role") != "user":
        yield "messages: the first and the last message must use the user role"
    if json.dumps(body).count('"cache_control"') > MAX_CACHE_MARKS:
        yield f"A maximum of {MAX_CACHE_MARKS} blocks with cache_control may be provided"
    system = body.get("system")
    for block in system if isinstance(system, list) else []:
        if not block.get("text", "").strip():
            yield "system: text content blocks must be non-empty"
    if not isinstance(body.get("max_tokens"), int):
        yield "max_tokens: Field required"
    yield from _budget(body)
    ids: set[str] = set()
    due: list[str] = []
    for index, message in enumerate(messages):
        where, blocks = f"messages.{index}", _blocks(message)
        if index and message.get("role") == messages[index - 1].get("role"):
            yield f"{where}: roles must alternate"
        yield from _results_first(where, blocks, due)
        yield from (problem for block in blocks for problem in _block(where, block, ids))
        if not blocks:
            yield f"{where}: messages must have non-empty content"
        due = [block["id"] for block in blocks if block.get("type") == "tool_use"]
    yield from _thoughts(body, messages, issued)


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return content if isinstance(content, list) else [{"type": "text", "text": content or ""}]


def _budget(body: dict[str, Any]) -> Iterator[str]:
    budget = (body.get("thinking") or {}).get("budget_tokens")
    if budget is not None and body.get("max_tokens", 0) <= budget:
        yield "`max_tokens` must be greater than `thinking.budget_tokens`"
    if budget is not None and body.get("temperature", 1) != 1:
        yield "`temperature` may only be set to 1 when thinking is enabled"


def _results_first(where: str, blocks: list[dict[str, Any]], due: list[str]) -> Iterator[str]:
    given = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
    if sorted(map(str, given)) != sorted(due):
        yield f"{where}: `tool_use` ids {due} must be answered right after, by one `tool_result` each; found {given}"
    if any(block.get("type") != "tool_result" for block in blocks[: len(given)]):
        yield f"{where}: `tool_result` blocks must come first"


def _block(where: str, block: dict[str, Any], ids: set[str]) -> Iterator[str]:
    match block:
        case {"type": "text"}:
            if not block.get("text", "").strip():
                yield f"{where}: text content blocks must contain non-whitespace text"
        case {"type": "tool_use"}:
            if not ID.fullmatch(str(block.get("id"))) or not NAME.fullmatch(str(block.get("name"))):
                yield f"{where}: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
            if block["id"] in ids:
                yield f"{where}: `tool_use` ids must be unique"
            ids.add(block["id"])
            if not isinstance(block.get("input"), dict):
                yield f"{where}: tool_use.input: Input should be a valid dictionary"
        case {"type": "tool_result"}:
            content = block.get("content")
            if not content or (isinstance(content, list) and any(part.get("type") == "text" and not part["text"].strip() for part in content)):
                yield f"{where}: tool_result: content must be non-empty"
        case {"type": "thinking" | "redacted_thinking" | "image"}:
            pass
        case _:
            yield f"{where}: unknown block {block.get('type')!r}"


def _thoughts(body: dict[str, Any], messages: list[dict[str, Any]], issued: Sequence[Issued]) -> Iterator[str]:
    """Thoughts come back as they were sent; those of an open tool round all of them, when the request asks for thinking."""
    known = {thought for one in issued for thought in one.thoughts}
    for index, message in enumerate(messages):
        for block in _thinking(message):
            if block not in known:
                yield f"messages.{index}: Invalid `signature` in `thinking` block"
    answers = [message for message in messages if message.get("role") == "assistant"]
    is_open = bool(answers) and any(block.get("type") == "tool_result" for block in _blocks(messages[-1]))
    if not is_open or "thinking" not in body:
        return
    ids = {block["id"] for block in _blocks(answers[-1]) if block.get("type") == "tool_use"}
    if _blocks(answers[-1])[0].get("type") not in {"thinking", "redacted_thinking"}:
        yield "Expected `thinking` or `redacted_thinking`, but found another block. When `thinking` is enabled, a final `assistant` message must start with one"
    sent = next((one for one in issued if set(one.call_ids) == ids), None)
    if sent is not None and _thinking(answers[-1]) != list(sent.thoughts):
        yield "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified"


def _thinking(message: dict[str, Any]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for block in _blocks(message):
        if block.get("type") == "thinking":
            found.append((block.get("thinking", ""), block.get("signature", "")))
        elif block.get("type") == "redacted_thinking":
            found.append(("", block.get("data", "")))
    return found


# -------------------------------------------------------------------------------------------------------- OpenAI responses


def _responses(body: dict[str, Any], issued: Sequence[Issued]) -> Iterator[str]:
    items = body.get("input")
    if not isinstance(items, list) or not items:
        yield "input: at least one item is required"
        return
    called: list[str] = []
    answered: list[str] = []
    known = {signature for one in issued for _, signature in one.thoughts}
    for index, item in enumerate(items):
        where = f"input[{index}]"
        match item:
            case {"type": "message"}:
                yield from _message_item(where, item)
            case {"type": "function_call"}:
                called.append(item["call_id"])
                yield from _call_item(where, item)
            case {"type": "function_call_output"}:
                answered.append(item["call_id"])
                if item["call_id"] not in called:
                    yield f"{where}: No tool call found for function call output with call_id {item['call_id']}"
            case {"type": "reasoning"}:
                if item.get("encrypted_content") not in known:
                    yield f"{where}: The encrypted content could not be verified"
                if index + 1 == len(items) or items[index + 1].get("type") not in {"reasoning", "function_call", "message"}:
                    yield f"{where}: Item of type 'reasoning' was provided without its required following item"
            case _:
                yield f"{where}: unknown item {item.get('type')!r}"
    if sorted(called) != sorted(answered) or len(set(called)) != len(called):
        yield f"No tool output found for function call: {sorted(set(called) - set(answered))}"


def _message_item(where: str, item: dict[str, Any]) -> Iterator[str]:
    allowed = {"output_text"} if item.get("role") == "assistant" else {"input_text", "input_image"}
    content = item.get("content")
    parts = content if isinstance(content, list) else [{"type": next(iter(allowed)), "text": content}]
    if not parts:
        yield f"{where}: content must not be empty"
    for part in parts:
        if part.get("type") not in allowed:
            yield f"{where}: Invalid value: {part.get('type')!r}"
        if "text" in part and not str(part["text"]).strip():
            yield f"{where}: text must not be blank"


def _call_item(where: str, item: dict[str, Any]) -> Iterator[str]:
    if len(item["call_id"]) > LONGEST_RESPONSES_ID or not item["call_id"]:
        yield f"{where}.call_id: string too long"
    if not NAME.fullmatch(str(item.get("name"))):
        yield f"{where}.name: invalid"
    try:
        is_object = isinstance(json.loads(item["arguments"]), dict)
    except (TypeError, ValueError):
        is_object = False
    if not is_object:
        yield f"{where}.arguments: must be a JSON object string"
