"""A transcript as the blocks that a reader of a document wants: prompts, answers, tool calls with their results, remarks. PURE.

Every text in a block is foreign and has been cleaned: no control characters, no keys (rules SA-1, SA-17). It is not escaped yet; that
is for whoever writes a format.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from pi_durable_tui.cli.export.talk import Talk
from pi_durable_tui.records.entry import COMPACTION, LOST, REPAIRED, RESET, Entry
from pi_durable_tui.records.json import Json, JsonObject
from pi_durable_tui.records.messages import AssistantMessage, Content, Image, SystemMessage, Text, Thinking, ToolCall, ToolResultMessage, UserMessage

Clean: TypeAlias = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a person said; `images` hold a kind and base64 each."""

    entry_id: int
    at_ms: int
    text: str
    images: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model said. `problem`: why it is not whole."""

    entry_id: int
    at_ms: int
    model: str
    text: str
    thinking: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call and its result. `diff` is unified, without file names; `work` is that of the subagent that it called."""

    entry_id: int
    at_ms: int
    title: str
    arguments: str
    output: str
    diff: str = ""
    is_error: bool = False
    duration_ms: int | None = None
    images: tuple[tuple[str, str], ...] = ()
    work: Work | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The conversation of a subagent, by itself where its call has no result."""

    name: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """What is no part of the talk: instructions, a summary that stands for older entries, a new start."""

    entry_id: int
    at_ms: int
    title: str
    text: str


Block: TypeAlias = Prompt | Answer | Call | Work | Remark


def blocks_of(talk: Talk, clean: Clean) -> list[Block]:
    """The blocks of a transcript, in order; a subagent's work stands with its call, or at the end while that has no result.

    Args:
        clean: Makes foreign text harmless.
    """
    calls: dict[str, ToolCall] = {}
    blocks: list[Block] = []
    works = {task_id: Work(name=clean(below.name), blocks=tuple(blocks_of(below, clean))) for task_id, below in talk.subagents.items()}
    for entry in talk.entries:
        match entry.message:
            case AssistantMessage() as message:
                calls |= {call.id: call for call in message.tool_calls}
                if (answer := _answer(entry, message, clean)) is not None:
                    blocks.append(answer)
            case ToolResultMessage() as message:
                work = works.pop(_subagent(entry), None)
                blocks.append(_call(entry, message, calls.get(message.tool_call_id), clean, work))
            case UserMessage(content=content) if entry.kind not in (COMPACTION, LOST, RESET):
                blocks.append(Prompt(entry_id=entry.id, at_ms=entry.at_ms, text=_text(content, clean), images=_images(content, clean)))
            case UserMessage(content=content) | SystemMessage(content=content):
                blocks.append(Remark(entry_id=entry.id, at_ms=entry.at_ms, title=clean(_title(entry.kind)), text=_text(content, clean)))
            case None:
                blocks.append(Remark(entry_id=entry.id, at_ms=entry.at_ms, title=clean(_title(entry.kind)), text=clean(_string(entry.data, "message"))))
    return [*blocks, *works.values()]


def _subagent(entry: Entry) -> int:
    """The task of the subagent that a result is about; 0: of none."""
    details = (entry.data or {}).get("details")
    found = details.get("subagent") if isinstance(details, dict) else None
    return found if isinstance(found, int) else 0


def _answer(entry: Entry, message: AssistantMessage, clean: Clean) -> Answer | None:
    """None for an answer that is nothing but calls: those follow."""
    thinking = "\n\n".join(part.text for part in message.content if isinstance(part, Thinking) and not part.redacted)
    is_cut = message.stop_reason in ("aborted", "error", "length")
    reason = message.problem.reason if message.problem is not None else message.stop_reason
    if not (message.text.strip() or thinking.strip() or is_cut):
        return None
    return Answer(
        entry_id=entry.id,
        at_ms=entry.at_ms,
        model=clean(message.model),
        text=clean(message.text),
        thinking=clean(thinking),
        problem=clean(f"{reason}: this answer was cut off here") if is_cut else "",
    )


def _call(entry: Entry, message: ToolResultMessage, call: ToolCall | None, clean: Clean, work: Work | None) -> Call:
    data = entry.data or {}
    details = data.get("details")
    title, duration_ms = data.get("title"), data.get("durationMs")
    return Call(
        entry_id=entry.id,
        at_ms=entry.at_ms,
        title=clean(title if isinstance(title, str) else message.tool_name),
        arguments=clean(_arguments(call.arguments)) if call is not None else "",
        output=_text(message.content, clean),
        diff=clean(_string(details, "diff")),
        is_error=message.is_error,
        duration_ms=duration_ms if isinstance(duration_ms, int) else None,
        images=_images(message.content, clean),
        work=work,
    )


def _arguments(arguments: JsonObject) -> str:
    """One line per argument; texts as they are."""
    return "\n".join(f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())


def _string(value: Json, key: str) -> str:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def _text(content: Iterable[Content], clean: Clean) -> str:
    return clean("\n".join(part.text for part in content if isinstance(part, Text)))


def _images(content: Iterable[Content], clean: Clean) -> tuple[tuple[str, str], ...]:
    return tuple((clean(part.mime_type), part.data) for part in content if isinstance(part, Image))


def _title(kind: str) -> str:
    known = {
        COMPACTION: "Summary of what came before",
        RESET: "The context starts anew here",
        REPAIRED: "Repaired at opening",
        LOST: "Lost",
        "pi.system": "Instructions",
    }
    return known.get(kind, kind)
