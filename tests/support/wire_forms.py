"""Three forms in which providers stream an answer, each as a state machine from script steps to server-sent events. PURE.

The steps are those of `tests/support/model_server.py`. A form sends what its provider sends, in that provider's order and words: Anthropic counts
the prompt before the first word and tells calls apart by blocks one after another; OpenAI's responses wrap everything in items; the errors of each
look different.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

Step: TypeAlias = dict[str, Any]
FormName: TypeAlias = Literal["chat", "responses", "messages"]
Refusal: TypeAlias = Literal["overloaded", "rate_limit", "server", "auth", "quota", "overflow", "invalid", "thinking"]

STATUS: dict[Refusal, int] = {
    "overloaded": 529,
    "rate_limit": 429,
    "server": 500,
    "auth": 401,
    "quota": 429,
    "overflow": 400,
    "invalid": 400,
    "thinking": 400,
}
_KINDS: dict[FormName, dict[Refusal, tuple[str, str | None]]] = {
    "messages": {
        "overloaded": ("overloaded_error", None),
        "rate_limit": ("rate_limit_error", None),
        "server": ("api_error", None),
        "auth": ("authentication_error", None),
        "quota": ("billing_error", None),
        "overflow": ("invalid_request_error", None),
        "invalid": ("invalid_request_error", None),
        "thinking": ("invalid_request_error", None),
    },
    "chat": {
        "overloaded": ("server_error", "overloaded"),
        "rate_limit": ("requests", "rate_limit_exceeded"),
        "server": ("server_error", None),
        "auth": ("invalid_request_error", "invalid_api_key"),
        "quota": ("insufficient_quota", "insufficient_quota"),
        "overflow": ("invalid_request_error", "context_length_exceeded"),
        "invalid": ("invalid_request_error", None),
        "thinking": ("invalid_request_error", "invalid_encrypted_content"),
    },
}
_KINDS["responses"] = _KINDS["chat"]


def form_of_path(path: str) -> FormName:
    """Which form a request is in."""
    end = path.partition("?")[0].rstrip("/")
    return "messages" if end.endswith("/messages") else "responses" if end.endswith("/responses") else "chat"


def error_body(form: FormName, refusal: Refusal, message: str) -> Any:
    """The body of a refused request in the provider's words."""
    kind, code = _KINDS[form][refusal]
    if form == "messages":
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


@dataclass(frozen=True, slots=True)
class Issued:
    """Thoughts of an answer as they were sent, in their order, and the ids of its calls: what strict providers want back as it was."""

    call_ids: tuple[str, ...]
    thoughts: tuple[tuple[str, str], ...]  # (text, signature); the text of a redacted one is ""


class Wire(Protocol):
    """One answer."""

    def play(self, step: Step) -> list[str]:
        """The events of a step, as text of the body."""
        ...

    def end(self) -> list[str]:
        """What closes the body after the last step."""
        ...

    def issued(self) -> Issued:
        """What was sent."""
        ...


def wire_for(form: FormName, number: int, body: Any, steps: Sequence[Step]) -> Wire:
    """The form's machine for an answer of `steps`."""
    model = (body or {}).get("model", "")
    counts = next((step["usage"] for step in steps if "usage" in step), {})
    match form:
        case "chat":
            return ChatWire(number, model, has_usage=bool(((body or {}).get("stream_options") or {}).get("include_usage")))
        case "messages":
            return MessagesWire(number, model, counts)
        case "responses":
            return ResponsesWire(number, model, counts)


def _data(value: Any) -> str:
    return f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n"


def _named(value: dict[str, Any]) -> str:
    return f"event: {value['type']}\n{_data(value)}"


# ------------------------------------------------------------------------------------------------------------ OpenAI chat


@dataclass(slots=True)
class ChatWire:
    """Chunks with deltas; the usage comes last, when it is asked for."""

    number: int
    model: str
    has_usage: bool = True
    _ids: list[str] = field(default_factory=list)

    def play(self, step: Step) -> list[str]:
        match step:
            case {"piece": str(piece)}:
                return self._delta({"content": piece})
            case {"text": str(piece)}:
                return self._delta({"role": "assistant", "content": piece})
            case {"reason": str(piece)}:
                return self._delta({"role": "assistant", "reasoning_content": piece})
            case {"redacted": _}:
                return []
            case {"call": dict(piece)}:
                self._ids += [piece["id"]] if piece.get("id") else []
                return self._delta({"role": "assistant", "tool_calls": [_tool_call(piece)]})
            case {"finish": str(why)}:
                return self._delta({}, why)
            case {"usage": dict(counts)}:
                return [_data({**self._chunk([]), "usage": _chat_usage(counts)})] if self.has_usage else []
            case {"fail": str(refusal)}:
                return [_data(error_body("chat", refusal, step["message"]))]  # type: ignore[arg-type]
            case _:
                raise ValueError(f"unknown step {step!r}")

    def end(self) -> list[str]:
        return [_data("[DONE]")]

    def issued(self) -> Issued:
        return Issued(tuple(self._ids), ())

    def _delta(self, delta: dict[str, Any], finish_reason: str | None = None) -> list[str]:
        return [_data(self._chunk([{"index": 0, "delta": delta, "finish_reason": finish_reason}]))]

    def _chunk(self, choices: list[Any]) -> dict[str, Any]:
        return {"id": f"chatcmpl-{self.number}", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": self.model, "choices": choices}


def _tool_call(piece: dict[str, Any]) -> dict[str, Any]:
    function = {key: piece[key] for key in ("name", "arguments") if key in piece}
    return {**{key: piece[key] for key in ("index", "id") if key in piece}, "type": "function", "function": function}


def _chat_usage(counts: dict[str, int]) -> dict[str, Any]:
    prompt, completion = counts.get("prompt", 0), counts.get("completion", 0)
    details = {"prompt_tokens_details": {"cached_tokens": counts.get("cached", 0)}}
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **details}


# ------------------------------------------------------------------------------------------------------ Anthropic messages


@dataclass(slots=True)
class MessagesWire:
    """Blocks one after another; what the prompt cost is said before them, cached tokens beside the others."""

    number: int
    model: str
    counts: dict[str, int]
    _started: bool = False
    _index: int = -1
    _open: tuple[str, Any] | None = None  # the kind of the open block, and the index of its call
    _signature: str | None = None
    _text: str = ""
    _ids: list[str] = field(default_factory=list)
    _thoughts: list[tuple[str, str]] = field(default_factory=list)

    def play(self, step: Step) -> list[str]:
        match step:
            case {"text": str(piece)} | {"piece": str(piece)}:
                return [*self._begin(), *self._block("text", {"type": "text", "text": ""}), self._delta({"type": "text_delta", "text": piece})]
            case {"reason": str(piece)}:
                return [*self._begin(), *self._think(piece, step.get("signature"))]
            case {"redacted": str(data)}:
                self._thoughts.append(("", data))
                return [*self._begin(), *self._block("redacted", {"type": "redacted_thinking", "data": data}, is_new=True)]
            case {"call": dict(piece)}:
                return [*self._begin(), *self._call(piece)]
            case {"finish": str(why)}:
                return [*self._begin(), *self._finish({"tool_calls": "tool_use", "length": "max_tokens", "stop": "end_turn"}.get(why, why))]
            case {"usage": _}:
                return []  # said where this form says it
            case {"fail": str(refusal)}:
                return [_named(error_body("messages", refusal, step["message"]))]  # type: ignore[arg-type]
            case _:
                raise ValueError(f"unknown step {step!r}")

    def end(self) -> list[str]:
        return []

    def issued(self) -> Issued:
        return Issued(tuple(self._ids), tuple(self._thoughts))

    def _begin(self) -> list[str]:
        if self._started:
            return []
        self._started = True
        cached = self.counts.get("cached", 0)
        usage = {"input_tokens": self.counts.get("prompt", 0) - cached, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0, "output_tokens": 1}
        message = {"id": f"msg_{self.number}", "type": "message", "role": "assistant", "model": self.model, "content": [], "usage": usage}
        return [_named({"type": "message_start", "message": message}), _named({"type": "ping"})]

    def _think(self, piece: str, signature: str | None) -> list[str]:
        events = [*self._block("thinking", {"type": "thinking", "thinking": "", "signature": ""}), self._delta({"type": "thinking_delta", "thinking": piece})]
        self._text += piece
        self._signature = signature or self._signature
        return [*events, *self._close()] if signature else events

    def _call(self, piece: dict[str, Any]) -> list[str]:
        key = piece.get("index")
        events: list[str] = []
        if self._open != ("tool", key):
            if not piece.get("id"):
                raise ValueError("this form never goes back to a block that was closed, and never leaves out an id")
            self._ids.append(piece["id"])
            block = {"type": "tool_use", "id": piece["id"], "name": piece.get("name", ""), "input": {}}
            events += self._block("tool", block, key=key, is_new=True)
        return [*events, *([self._delta({"type": "input_json_delta", "partial_json": piece["arguments"]})] if "arguments" in piece else [])]

    def _block(self, kind: str, start: dict[str, Any], *, key: Any = None, is_new: bool = False) -> list[str]:
        if self._open == (kind, key) and not is_new:
            return []
        events = self._close()
        self._open, self._index = (kind, key), self._index + 1
        return [*events, _named({"type": "content_block_start", "index": self._index, "content_block": start})]

    def _close(self) -> list[str]:
        if self._open is None:
            return []
        events: list[str] = []
        if self._open[0] == "thinking" and self._signature:
            self._thoughts.append((self._text, self._signature))
            events.append(self._delta({"type": "signature_delta", "signature": self._signature}))
        self._open, self._signature, self._text = None, None, ""
        return [*events, _named({"type": "content_block_stop", "index": self._index})]

    def _delta(self, delta: dict[str, Any]) -> str:
        return _named({"type": "content_block_delta", "index": self._index, "delta": delta})

    def _finish(self, why: str) -> list[str]:
        usage = {"output_tokens": self.counts.get("completion", 0)}
        delta = {"type": "message_delta", "delta": {"stop_reason": why, "stop_sequence": None}, "usage": usage}
        return [*self._close(), _named(delta), _named({"type": "message_stop"})]


# -------------------------------------------------------------------------------------------------------- OpenAI responses


@dataclass(slots=True)
class ResponsesWire:
    """Items with their own numbers, calls among them interleaved at will; the end repeats them whole and counts."""

    number: int
    model: str
    counts: dict[str, int]
    _started: bool = False
    _items: list[dict[str, Any]] = field(default_factory=list)
    _calls: dict[Any, int] = field(default_factory=dict)
    _open: int | None = None  # the reasoning or message item that is growing

    def play(self, step: Step) -> list[str]:
        match step:
            case {"text": str(piece)} | {"piece": str(piece)}:
                return [*self._begin(), *self._say(piece)]
            case {"reason": str(piece)}:
                return [*self._begin(), *self._think(piece, step.get("signature"))]
            case {"redacted": str(data)}:
                return [*self._begin(), *self._think("", data)]
            case {"call": dict(piece)}:
                return [*self._begin(), *self._call(piece)]
            case {"finish": str(why)}:
                return [*self._begin(), *self._finish(why)]
            case {"usage": _}:
                return []  # said at the end
            case {"fail": str(refusal)}:
                error = error_body("responses", refusal, step["message"])["error"]  # type: ignore[arg-type]
                failed = {**self._response("failed"), "error": {"code": error["code"] or error["type"], "message": error["message"]}}
                return [*self._begin(), _named({"type": "response.failed", "response": failed})]
            case _:
                raise ValueError(f"unknown step {step!r}")

    def end(self) -> list[str]:
        return []

    def issued(self) -> Issued:
        thoughts = [("", item["encrypted_content"]) for item in self._items if item["type"] == "reasoning" and item["encrypted_content"]]
        return Issued(tuple(item["call_id"] for item in self._items if item["type"] == "function_call"), tuple(thoughts))

    def _begin(self) -> list[str]:
        if self._started:
            return []
        self._started = True
        return [_named({"type": "response.created", "response": self._response("in_progress")})]

    def _response(self, status: str) -> dict[str, Any]:
        more = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        return {"id": f"resp_{self.number}", "object": "response", "created_at": 1, "model": self.model, "output": [], "status": status, **more}

    def _add(self, item: dict[str, Any]) -> str:
        self._items.append(item)
        return _named({"type": "response.output_item.added", "output_index": len(self._items) - 1, "item": {**item, "status": "in_progress"}})

    def _say(self, piece: str) -> list[str]:
        events: list[str] = []
        if self._open is None or self._items[self._open]["type"] != "message":
            part = {"type": "output_text", "text": "", "annotations": []}
            events.append(self._add({"type": "message", "id": f"msg_{len(self._items)}", "role": "assistant", "content": [part]}))
            self._open = len(self._items) - 1
        item = self._items[self._open]  # type: ignore[index]
        item["content"][0]["text"] += piece
        place = {"item_id": item["id"], "output_index": self._open, "content_index": 0}
        return [*events, _named({"type": "response.output_text.delta", **place, "delta": piece})]

    def _think(self, piece: str, signature: str | None) -> list[str]:
        events: list[str] = []
        if self._open is None or self._items[self._open]["type"] != "reasoning":
            events.append(self._add({"type": "reasoning", "id": f"rs_{len(self._items)}", "summary": [], "encrypted_content": None}))
            self._open = len(self._items) - 1
        index = self._open
        assert index is not None  # just made, if it was not there
        item = self._items[index]
        if piece:
            item["summary"] = [{"type": "summary_text", "text": "".join(part["text"] for part in item["summary"]) + piece}]
            place = {"item_id": item["id"], "output_index": index, "summary_index": 0}
            events.append(_named({"type": "response.reasoning_summary_text.delta", **place, "delta": piece}))
        if signature:
            item["encrypted_content"] = signature
            events.append(_named({"type": "response.output_item.done", "output_index": index, "item": {**item, "status": "completed"}}))
            self._open = None
        return events

    def _call(self, piece: dict[str, Any]) -> list[str]:
        self._open = None
        key, events = piece.get("index"), list[str]()
        if piece.get("id"):
            item = {"type": "function_call", "id": f"fc_{len(self._items)}", "call_id": piece["id"], "name": piece.get("name", ""), "arguments": ""}
            events.append(self._add(item))
            self._calls[key] = len(self._items) - 1
        index = self._calls[key]
        if piece.get("arguments"):
            self._items[index]["arguments"] += piece["arguments"]
            place = {"item_id": self._items[index]["id"], "output_index": index}
            events.append(_named({"type": "response.function_call_arguments.delta", **place, "delta": piece["arguments"]}))
        return events

    def _finish(self, why: str) -> list[str]:
        done = [
            _named({"type": "response.output_item.done", "output_index": index, "item": {**item, "status": "completed"}})
            for index, item in enumerate(self._items)
            if item["type"] != "reasoning"
        ]
        status = "incomplete" if why == "length" else "completed"
        prompt, completion = self.counts.get("prompt", 0), self.counts.get("completion", 0)
        usage = {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": self.counts.get("cached", 0)},
            "output_tokens": completion,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt + completion,
        }
        response = {**self._response(status), "output": [{**item, "status": "completed"} for item in self._items], "usage": usage}
        if why == "length":
            response["incomplete_details"] = {"reason": "max_output_tokens"}
        return [*done, _named({"type": f"response.{status}", "response": response})]
