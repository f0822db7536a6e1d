"""What real providers refuse in a chat request, as one pure function in their words."""

from __future__ import annotations

import json
from typing import Any


def violation(body: Any) -> str | None:
    """The first thing in `body` that a provider refuses with HTTP 400; None when it is valid."""
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list) or not messages:
        return "messages: at least one message is required"
    wanted: list[str] = []  # call ids of the last assistant message that have no result yet
    for index, message in enumerate(messages):
        role, where = message.get("role"), f"messages.{index}"
        if role == "tool":
            if message.get("tool_call_id") not in wanted:
                return f"{where}: messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            wanted.remove(message["tool_call_id"])
        elif wanted:
            return f"{where}: an assistant message with 'tool_calls' must be followed by tool messages responding to each tool_call_id: {', '.join(wanted)}"
        found = _blank(message, where)
        if found is None and role == "assistant":
            found = _assistant(message, where)
            wanted = [tool_call.get("id") for tool_call in message.get("tool_calls") or []]
        if found is not None:
            return found
    if wanted:
        return f"messages: tool_call_ids did not have response messages: {', '.join(wanted)}"
    if messages[-1].get("role") == "assistant":
        return "messages: the last message must be of role user or tool"
    return None


def _blank(message: dict[str, Any], where: str) -> str | None:
    content = message.get("content")
    if content is None:
        return None if message.get("role") == "assistant" else f"{where}: content is required"
    if isinstance(content, str):
        return None if content.strip() else f"{where}: text content blocks must contain non-whitespace text"
    if not content:
        return f"{where}: content must not be empty"
    for part in content:
        if part.get("type") == "text" and not part.get("text", "").strip():
            return f"{where}: text content blocks must contain non-whitespace text"
    return None


def _assistant(message: dict[str, Any], where: str) -> str | None:
    calls = message.get("tool_calls") or []
    if not message.get("content") and not calls:
        return f"{where}: an assistant message must have content or tool_calls"
    ids = [tool_call.get("id") for tool_call in calls]
    if len(set(ids)) != len(ids) or not all(ids):
        return f"{where}: tool_calls must have unique, non-empty ids"
    for tool_call in calls:
        function = tool_call.get("function") or {}
        if not function.get("name"):
            return f"{where}: tool_calls must have a function name"
        try:
            arguments = json.loads(function.get("arguments", ""))
        except (TypeError, ValueError):
            return f"{where}: function.arguments must be a JSON object string"
        if not isinstance(arguments, dict):
            return f"{where}: function.arguments must be a JSON object string"
    return None
