"""The tool `bash`: runs a shell command, shows its output while it comes, and leaves no process behind (SA-11, TO-4, PR-7)."""

from __future__ import annotations

import contextlib
import math
import os
import signal
from typing import Annotated

import msgspec

from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.harness.ports import Diagnostic, Effects, Tool, ToolContext, ToolResult
from pi_durable_tui.records.json import JsonObject, clean_text
from pi_durable_tui.tools import process
from pi_durable_tui.tools.commands.running import RunningText
from pi_durable_tui.tools.environment import LocalEnvironment, environment_of, in_thread
from pi_durable_tui.tools.output import Collected, OutputCollector
from pi_durable_tui.tools.process import CommandEnd, ProcessFacts
from pi_durable_tui.tools.result import failed, note, succeeded, title

TIMEOUT_S = 120
TIMEOUT_LIMIT_S = 3_600
DESCRIPTION = f"""Run a bash command and get its output (errors included) and exit code.
The working directory stays for the next call when the command changes it with cd; variables, functions and options do not stay.
There is no input and no terminal: whatever asks a question gets an end of file. Give flags that answer it.
When the shell exits, everything it left behind with & is ended; nothing runs on after the call.
What shall run on, such as a server, is started with background true (and without &): the call returns at once with a number, a message
comes when the command ends, and the tool commands shows its output, waits for it or stops it. It ends with the program that you run in.
Output is cut in the middle beyond 50 KiB or 2,000 lines, and kept whole in a file that is named.
After timeout_s ({TIMEOUT_S} by default, none in the background) the command and all it started are ended."""


_Seconds = Annotated[int, msgspec.Meta(ge=1, le=TIMEOUT_LIMIT_S)]


class BashArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `bash` is asked."""

    command: Annotated[str, msgspec.Meta(description="The command; several lines are allowed.", min_length=1)]
    timeout_s: Annotated[_Seconds | None, msgspec.Meta(description="Seconds after which the command is ended.")] = None
    background: Annotated[bool, msgspec.Meta(description="Return at once, and let the command run on.")] = False

    @property
    def limit_s(self) -> float:
        """After how long it is ended."""
        return self.timeout_s or (math.inf if self.background else TIMEOUT_S)


def bash_tool() -> Tool:
    """The tool, ready to be registered. Sequential: calls of one round share the working directory."""
    return Tool(
        name="bash",
        description=DESCRIPTION,
        arguments=BashArguments,
        execute=_execute,
        title=_title,
        access="command",
        replay="unsafe",
        sequential=True,
        preview=_preview,
        effects=_effects,
        background=lambda arguments: arguments.background,
        on_left=_end_what_is_left,
    )


def _title(arguments: BashArguments) -> str:
    return title("bash", arguments.command)


async def _effects(arguments: BashArguments, context: ToolContext) -> Effects:
    environment = environment_of(context)
    root, directory = await in_thread(lambda: (os.path.realpath(environment.cwd), os.path.realpath(environment.directory())))
    return Effects(root=root, directory=directory, command=clean_text(arguments.command))


async def _preview(arguments: BashArguments, context: ToolContext) -> JsonObject:
    """The whole command, which the title may cut, and where it would run: what is allowed is what runs (rule SA-13).

    A sandbox is named only where it was seen to hold; where it does not, the command will be refused (rule SA-15).
    """
    environment = environment_of(context)
    where = clean_text(environment.directory())
    walled: JsonObject = {}
    with contextlib.suppress(EnvironmentFailure):
        wall = await environment.wall()
        walled = {} if wall is None else {"sandbox": wall.mode}
    limit: JsonObject = {"timeoutS": int(arguments.limit_s)} if math.isfinite(arguments.limit_s) else {}
    return {"command": clean_text(arguments.command), "directory": where, **walled, **limit, **({"background": True} if arguments.background else {})}


async def _execute(arguments: BashArguments, context: ToolContext) -> ToolResult:
    if context.in_background is not None:
        return await _run_behind(arguments, context, context.in_background)
    environment = environment_of(context)
    lost_before = environment.take_loss()
    collector = OutputCollector(environment, context.call_id, context.output, environment.clock)

    async def started(facts: ProcessFacts) -> None:
        await context.started(facts.to_json())

    try:
        end = await environment.run(arguments.command, timeout_ms=arguments.limit_s * 1_000, on_started=started, on_output=collector.add)
    except EnvironmentFailure as error:
        return failed(error.message, diagnostics=_lost(lost_before, environment))
    finally:
        collector.close()
    moved = end.directory is not None and environment.move_to(end.directory)
    collector.show_rest()
    output = await in_thread(collector.finish)
    return _result(arguments, end, output, environment, moved=moved, lost=lost_before or environment.take_loss())


def _result(arguments: BashArguments, end: CommandEnd, output: Collected, environment: LocalEnvironment, *, moved: bool, lost: str | None) -> ToolResult:
    directory = environment.directory()
    facts = _how(arguments, end)
    if moved:
        facts.append(f"the working directory is now {directory}")
    elif directory != environment.cwd:
        facts.append(f"working directory: {directory}")
    text = output.text.rstrip("\n") or "(no output)"
    answer = failed if _is_failure(end) else succeeded
    return answer(
        "\n".join([text, *(f"[{fact}]" for fact in facts)]),
        details={**_details(end), "directory": clean_text(directory), "outputBytes": output.total_bytes, "outputPath": output.path},
        diagnostics=(*output.diagnostics, *_lost(lost, environment), *_left(end)),
    )


def _how(arguments: BashArguments, end: CommandEnd) -> list[str]:
    """How it ended, as far as that is worth a word. PURE."""
    if end.timed_out:
        return [f"timed out after {arguments.limit_s} s; the command and everything it started were ended"]
    if end.crowded:
        return ["there were too many processes of it at once; the command and everything it started were ended"]
    if end.signal is not None:
        return [f"ended by signal {_signal_name(end.signal)}"]
    if end.exit_code is None:
        return ["the command was ended from outside; its exit code is unknown"]
    return [f"exit code {end.exit_code}"] if end.exit_code else []


def _details(end: CommandEnd) -> JsonObject:
    return {"exitCode": end.exit_code, "signal": end.signal, "timedOut": end.timed_out}


def _is_failure(end: CommandEnd) -> bool:
    return end.timed_out or end.crowded or end.exit_code != 0


async def _run_behind(arguments: BashArguments, context: ToolContext, number: int) -> ToolResult:
    """Carry the command out while the conversation goes on: it starts where the conversation stands, and does not move it."""
    environment = environment_of(context)
    folder = environment.background_folder(number)
    output = RunningText(await in_thread(lambda: environment.segment_writer(number)), folder, context.output, environment.clock)

    async def started(facts: ProcessFacts) -> None:
        await context.started(facts.to_json())

    try:
        end = await environment.run(arguments.command, timeout_ms=arguments.limit_s * 1_000, on_started=started, on_output=output.add)
    except EnvironmentFailure as error:
        return failed(error.message)
    finally:
        said = output.finish()
    facts = _how(arguments, end) or ["exit code 0"]
    answer = failed if _is_failure(end) else succeeded
    return answer("\n".join([said, *(f"[{fact}]" for fact in facts)]), details=_details(end), diagnostics=_left(end))


async def _end_what_is_left(facts: JsonObject, _context: ToolContext) -> tuple[Diagnostic, ...]:
    """After a kill: a command dies with its reaper, and its reaper with the agent; should something have outlived both, it is ended now."""
    match facts:
        case {"pid": int(pid), "startTime": int(start_time), "bootId": str(boot)}:
            found = await process.end_left_of(ProcessFacts(pid=pid, start_time=start_time, boot_id=boot))
            return note(f"{_processes(len(found))} still at work after the program had died, and ended now.") if found else ()
        case _:
            return ()


def _lost(directory: str | None, environment: LocalEnvironment) -> tuple[Diagnostic, ...]:
    return note(f"The working directory {directory} is gone; {environment.directory()} is used instead.") if directory else ()


def _left(end: CommandEnd) -> tuple[Diagnostic, ...]:
    ended = note(f"{_processes(end.background_ended)} left in the background, now ended.") if end.background_ended else ()
    alive = (Diagnostic("warn", "note", f"{_processes(end.survivors)} could not be ended."),) if end.survivors else ()
    return (*ended, *alive)


def _processes(count: int) -> str:
    return "1 process was" if count == 1 else f"{count} processes were"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
