"""What to do with a call, before it and after a cut-off, and the words of its results (rules TO-1 to TO-5, GE-8). PURE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec

from pi_durable_tui.harness.ports import Diagnostic, Replay, Tool, ToolResult
from pi_durable_tui.harness.tool.checkpoint import CallInput
from pi_durable_tui.records.json import Json, JsonObject
from pi_durable_tui.records.keys import MARK, has_mark
from pi_durable_tui.records.messages import Content, Text, ToolResultMessage


@dataclass(frozen=True, slots=True)
class Refusal:
    """The call is not carried out; the model gets this as an error result and the run goes on."""

    code: str
    message: str

    @property
    def result(self) -> ToolResult:
        """As a result."""
        return ToolResult(is_error=True, diagnostics=(Diagnostic("error", self.code, self.message),))


UNANSWERED = Refusal("blocked", "The call was not run: the question about it was stopped before anybody answered it.")
NO_ROOM = Refusal("no_space", "The disk is full: there is no room to record what the call would do, so it was not run.")


@dataclass(frozen=True, slots=True)
class Admitted:
    """The call fits a tool; `arguments` is what the tool gets."""

    tool: Tool
    arguments: Any


def admit(tools: Mapping[str, Tool], call: CallInput, arguments: JsonObject) -> Admitted | Refusal:
    """Whether a call can be carried out at all (rule GE-8).

    Args:
        arguments: Those of the call, or what a hook made of them.
    """
    if call.is_cut:
        text = "The answer was cut at the output limit in the middle of its tool calls, so none of them was run. Send smaller parts."
        return Refusal("invalid_arguments", text)
    tool = tools.get(call.name)
    if tool is None:
        return Refusal("tool_unavailable", f"There is no tool {call.name!r}. The tools are: {', '.join(sorted(tools)) or 'none'}.")
    if tool.access != "read" and has_mark(arguments):
        text = f"The arguments of {call.name} hold {MARK}, which stands for a key that is not shown, so it was not run. Let a program read the key itself."
        return Refusal("invalid_arguments", text)
    if call.malformed is not None:
        return Refusal("invalid_arguments", f"The arguments of {call.name} are not a JSON object, so it was not run.")
    try:
        converted = _fitted(arguments, tool)
        unfit = tool.check(converted) if tool.check is not None else None
    except msgspec.ValidationError as error:
        unfit = str(error)
    else:
        if unfit is None:
            return Admitted(tool, converted)
    return Refusal("invalid_arguments", f"The arguments of {call.name} do not fit, so it was not run: {unfit}.")


def _fitted(arguments: JsonObject, tool: Tool) -> Any:  # noqa: ANN401 - what it is only the tool knows
    """The arguments as the tool takes them. Some models write 2.0 for 2, and null for what they leave out; both mean one thing, and are taken for it.

    Raises:
        ValidationError: They do not fit, as they were written.
    """
    try:
        return msgspec.convert(arguments, type=tool.arguments)
    except msgspec.ValidationError:
        meant = {name: int(value) if isinstance(value, float) and value.is_integer() else value for name, value in arguments.items() if value is not None}
        with suppress(msgspec.ValidationError):
            return msgspec.convert(meant, type=tool.arguments)
        raise


def denied(by: str, note: str) -> Refusal:
    """The result of a person's no."""
    return Refusal("blocked", f"The call was not run: {by} did not allow it{f' ({note})' if note else ''}.")


Rerun: TypeAlias = Literal["run", "ask_world", "interrupted"]


def rerun(stored: Replay, current: Replay | None) -> Rerun:
    """What to do with a call that was cut off after its intent; `current` is None when the tool is gone (rules TO-2, TO-8)."""
    if stored == current == "safe":
        return "run"
    return "ask_world" if stored == current == "reconcile" else "interrupted"


def interrupted(name: str) -> Diagnostic:
    """Cut off by a kill after the intent: it may have done something."""
    return Diagnostic("error", "interrupted", f"Tool {name} was interrupted and may have partially run")


def restart_limit(name: str) -> Diagnostic:
    """Cut off again and again."""
    return Diagnostic("error", "restart_limit", f"Tool {name} was interrupted too many times in a row and may have partially run")


def aborted(name: str, *, has_started: bool, why: str = "by the user") -> Diagnostic:
    """Stopped by a person or a limit, before or after the intent."""
    text = f"Tool {name} was stopped {why} and may have partially run" if has_started else f"Tool {name} was stopped {why} before it started"
    return Diagnostic("error", "aborted", text)


def faulted(name: str, message: str) -> Diagnostic:
    """The tool itself broke."""
    return Diagnostic("error", "tool_error", f"Tool {name} failed: {message}")


def message(call: CallInput, result: ToolResult) -> ToolResultMessage:
    """A result as the model sees it: the content, then the harness's remarks in a block of their own (rule TO-5)."""
    content: tuple[Content, ...] = result.content
    if result.diagnostics:
        lines = "\n".join(f"[{remark.level}] {remark.message}" for remark in result.diagnostics)
        content = (*content, Text(text=f"<harness>\n{lines}\n</harness>"))
    return ToolResultMessage(tool_call_id=call.call_id, tool_name=call.name, content=content, is_error=result.is_error)


def remarks(diagnostics: Sequence[Diagnostic]) -> list[Json]:
    """The remarks as data of the entry."""
    return [{"level": remark.level, "code": remark.code, "message": remark.message} for remark in diagnostics]


def cut_short(output: str, *remarks: Diagnostic) -> ToolResult:
    """The result of a call that did not come to its end: what it had said, then why it ended."""
    return ToolResult(content=(Text(text=output),) if output else (), is_error=True, diagnostics=remarks)
