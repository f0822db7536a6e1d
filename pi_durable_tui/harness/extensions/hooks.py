"""The moments at which an extension may look at a run and change it (durable.md, section 11).

Hooks run outside the line and may wait. They run in order of installation; a hook that fails is reported and the next one runs,
except before a tool, where a failure blocks the call. After a kill the step they belong to runs again, and they with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import TypeAlias, TypeVar

from pi_durable_tui.harness.ports import ModelRequest, ToolResult
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.messages import AssistantMessage

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedCall:
    """A tool call as a hook sees it. `in_background`: it goes on behind its result, beside whatever else is done."""

    conversation_id: int
    task_id: int
    name: str
    arguments: JsonObject
    in_background: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedCompaction:
    """A compaction about to begin."""

    conversation_id: int
    reason: str
    focus: str


@dataclass(frozen=True, slots=True)
class Blocked:
    """A hook's no; the message goes to the model and the screen."""

    message: str


BeforeTool: TypeAlias = Callable[[HookedCall], Awaitable[Blocked | JsonObject | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """What an extension hangs into a run; each may be None. Returning None changes nothing.

    Attributes:
        before_request: (conversation id, request) -> another request.
        after_response: (conversation id, whole answer) -> the answer to store instead.
        on_yield: (conversation id, final answer) -> a text that goes on with the run instead of ending it.
        after_tools: (conversation id, result entries of the round) -> a text for the model to read after them.
        before_tool: (call) -> other arguments (validated again), or Blocked. An exception blocks the call.
        on_start: (call) once its intent is stored, right before it is carried out; also when it is carried out again.
        after_tool: (call, result) -> another result.
        on_abort: (call) after a running call was stopped.
        before_compact: (compaction) -> another focus, or Blocked.
    """

    before_request: Callable[[int, ModelRequest], Awaitable[ModelRequest | None]] | None = None
    after_response: Callable[[int, AssistantMessage], Awaitable[AssistantMessage | None]] | None = None
    on_yield: Callable[[int, AssistantMessage], Awaitable[str | None]] | None = None
    after_tools: Callable[[int, Sequence[Entry]], Awaitable[str | None]] | None = None
    before_tool: BeforeTool | None = None
    on_start: Callable[[HookedCall], Awaitable[None]] | None = None
    after_tool: Callable[[HookedCall, ToolResult], Awaitable[ToolResult | None]] | None = None
    on_abort: Callable[[HookedCall], Awaitable[None]] | None = None
    before_compact: Callable[[HookedCompaction], Awaitable[Blocked | str | None]] | None = None


async def asked(
    name: str, calls: Sequence[Callable[[], Awaitable[T | None]]], failed: Callable[[str, str], None], *, of: type[object] | UnionType = object
) -> list[T]:
    """What the hooks answered, in order, without the Nones.

    Args:
        failed: Told (name, what went wrong) of each hook that raised, or whose answer is none; the others run all the same.
        of: What an answer is.
    """
    answers: list[T] = []
    for call in calls:
        try:
            answer = _checked(await call(), of)
        except BaseException as error:  # foreign code: its failure is reported and must not end the run
            if must_pass(error):
                raise
            failed(name, f"{type(error).__name__}: {error}")
            continue
        if answer is not None:
            answers.append(answer)
    return answers


async def changed(name: str, value: T, calls: Sequence[Callable[[T], Awaitable[T | None]]], failed: Callable[[str, str], None]) -> T:
    """The value after each hook has had its say on what the one before made of it; failures as in `asked`."""
    for call in calls:
        try:
            answer = _checked(await call(value), type(value))
        except BaseException as error:  # foreign code: its failure is reported and must not end the run
            if must_pass(error):
                raise
            failed(name, f"{type(error).__name__}: {error}")
            continue
        value = value if answer is None else answer
    return value


def _checked(answer: T | None, of: type[object] | UnionType) -> T | None:
    if answer is not None and not isinstance(answer, of):
        raise TypeError(f"it gave {type(answer).__name__} where {of.__name__ if isinstance(of, type) else of} is wanted")
    return answer


def must_pass(error: BaseException) -> bool:
    """Whether what came out of code of others is no error of theirs, but ends whoever called it, and has to go on its way.

    A cancellation counts only when somebody asked for it: code that awaits what was cancelled elsewhere raises the same, and a task that took
    that for its own end would stand still for ever. Whatever else is no `Exception` (`SystemExit`, a panic of a compiled library) is an
    error like all others.
    """
    if isinstance(error, asyncio.CancelledError):
        caller = asyncio.current_task()
        return caller is None or caller.cancelling() > 0
    return isinstance(error, KeyboardInterrupt | GeneratorExit)
