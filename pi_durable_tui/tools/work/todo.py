"""The tool `todo`: the agent's list of steps, a document of the conversation that people see and that a fork takes along.

The list is replaced whole, in the commit that stores the call's result, so that a repeated call changes nothing (rule TO-2).
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from pi_durable_tui.harness.ports import Tool, ToolContext, ToolResult
from pi_durable_tui.records.document import Definition
from pi_durable_tui.records.json import JsonObject, clean_text
from pi_durable_tui.tools.result import succeeded, title

TODO = Definition(kind="pidurable.todo", scope="conversation", history="rewindable", fork="asOf")
DESCRIPTION = "Keep a list of the steps of a longer task, for yourself and for the user to see. Gives the list; items replace it whole."
_MARKS = {"open": "[ ]", "doing": "[>]", "done": "[x]"}


class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
    state: Literal["open", "doing", "done"] = "open"


class TodoArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `todo` is asked."""

    items: Annotated[Annotated[tuple[Item, ...], msgspec.Meta(max_length=200)] | None, msgspec.Meta(description="The whole new list; without: only look.")] = (
        None
    )


def todo_tool() -> Tool:
    """The tool, ready to be registered."""
    return Tool(name="todo", description=DESCRIPTION, arguments=TodoArguments, execute=_execute, title=_title, access="read", replay="safe", sequential=True)


def _title(arguments: TodoArguments) -> str:
    if arguments.items is None:
        return "todo"
    done = sum(item.state == "done" for item in arguments.items)
    doing = next((f": {item.text}" for item in arguments.items if item.state == "doing"), "")
    return title("todo", f"{done}/{len(arguments.items)}{doing}")


async def _execute(arguments: TodoArguments, context: ToolContext) -> ToolResult:
    if arguments.items is None:
        items = read_items(await context.document(TODO))
        return succeeded(_text(items))
    value: JsonObject = {"items": [{"text": clean_text(item.text), "state": item.state} for item in arguments.items]}
    told = succeeded(_text(arguments.items), details=value)
    return ToolResult(content=told.content, details=told.details, documents=((TODO, lambda _before: value),))


def read_items(value: JsonObject) -> tuple[Item, ...]:
    """The steps that a stored list holds. PURE."""
    return msgspec.convert(value.get("items", []), tuple[Item, ...])


def _text(items: tuple[Item, ...]) -> str:
    return "\n".join(f"{_MARKS[item.state]} {' '.join(item.text.split())}" for item in items) or "(The list is empty.)"
