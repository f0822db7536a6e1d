"""The tool `commands`: looks after the commands that bash has left running in the background (rule TO-10)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from pi_durable_tui.harness.ports import BackgroundInfo, Tool, ToolContext, ToolResult
from pi_durable_tui.records.json import Json
from pi_durable_tui.tools.commands.segments import read_output
from pi_durable_tui.tools.environment import environment_of, in_thread
from pi_durable_tui.tools.result import failed, succeeded
from pi_durable_tui.tools.text.terminal_text import plain

OUTPUT_BYTES = 24 * 1024
WAIT_S, WAIT_LIMIT_S = 60, 600
DESCRIPTION = f"""\
Look after the commands that you started with bash in the background: list them, read the output of one (its newest {OUTPUT_BYTES // 1024} KiB, \
or from an offset in bytes on), wait for the end of one, or stop one. You need not look again and again: a message comes when one ends."""


_Offset = Annotated[int, msgspec.Meta(ge=0)]


class CommandsArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `commands` is asked."""

    action: Annotated[Literal["list", "output", "wait", "stop"], msgspec.Meta(description="What to do.")]
    number: Annotated[int | None, msgspec.Meta(description="Which one, as its start told it; not for list.")] = None
    offset: Annotated[_Offset | None, msgspec.Meta(description="For output: the first byte wanted; without: its end.")] = None
    limit_s: Annotated[int, msgspec.Meta(description="For wait: return after so many seconds in any case.", ge=1, le=WAIT_LIMIT_S)] = WAIT_S


def commands_tool() -> Tool:
    """The tool, ready to be registered."""
    return Tool(name="commands", description=DESCRIPTION, arguments=CommandsArguments, execute=_execute, title=_title, access="read", replay="safe")


def _title(arguments: CommandsArguments) -> str:
    return " ".join(str(part) for part in ("commands", arguments.action, arguments.number) if part is not None)


async def _execute(arguments: CommandsArguments, context: ToolContext) -> ToolResult:
    known = {info.task_id: info for info in await context.background.list() if info.name == "bash"}
    if arguments.action == "list":
        return succeeded("\n".join(_line(info, context) for info in known.values()) or "No command was started in the background.")
    if arguments.number is None:
        return failed(f"The action {arguments.action} needs the number of a command.")
    if arguments.number not in known:
        return failed(f"There is no command number {arguments.number} in the background of this conversation.")
    match arguments.action:
        case "output":
            return await _output(known[arguments.number], arguments, context)
        case "stop":
            is_stopped = await context.background.stop(arguments.number)
            return succeeded(f"Command {arguments.number} is being stopped.") if is_stopped else failed(f"Command {arguments.number} does not run.")
        case "wait":
            await context.background.wait(arguments.number, limit_ms=arguments.limit_s * 1_000)
            again = {info.task_id: info for info in await context.background.list()}
            return succeeded(_line(again[arguments.number], context))


async def _output(info: BackgroundInfo, arguments: CommandsArguments, context: ToolContext) -> ToolResult:
    folder = environment_of(context).background_folder(info.task_id)
    piece = await in_thread(lambda: read_output(folder, offset=arguments.offset, limit_bytes=OUTPUT_BYTES))
    end = piece.start + len(piece.data)
    facts = [f"bytes {piece.start} to {end} of {piece.total}", _state(info, context)]
    if arguments.offset is not None and piece.start > arguments.offset:
        facts.insert(1, f"what came before byte {piece.start} is not kept")
    if info.is_running or end < piece.total:
        facts.append(f"offset {end} goes on from here")
    return succeeded(f"{plain(piece.data.decode(errors='replace')).rstrip()}\n[{'; '.join(facts)}]".lstrip("\n"))


def _line(info: BackgroundInfo, context: ToolContext) -> str:
    return f"{info.task_id} {info.title}: {_state(info, context)}"


def _state(info: BackgroundInfo, context: ToolContext) -> str:
    if info.is_running:
        clock = environment_of(context).clock
        return f"has been running for {max(0, clock.now_ms() - info.started_at_ms) // 1_000} s"
    if info.details is None:
        return "was ended before its end"
    return f"has ended{_how(info.details.get('exitCode'), info.details.get('timedOut'))}"


def _how(exit_code: Json, timed_out: Json) -> str:
    if timed_out is True:
        return " (timed out)"
    return f" (exit code {exit_code})" if isinstance(exit_code, int) else ""
