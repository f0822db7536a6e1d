"""The tool `bash`: runs a shell command, shows its output while it comes, and leaves no process behind (SA-11, TO-4, PR-7)."""

from __future__ import annotations

import os
import signal
from typing import Annotated

import msgspec

from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.harness.ports import Diagnostic, Effects, Tool, ToolContext, ToolResult
from pi_durable_tui.records.json import JsonObject, clean_text
from pi_durable_tui.tools.environment import LocalEnvironment, environment_of, in_thread
from pi_durable_tui.tools.output import Collected, OutputCollector
from pi_durable_tui.tools.process import CommandEnd, ProcessFacts
from pi_durable_tui.tools.result import failed, note, succeeded, title

TIMEOUT_S = 120
TIMEOUT_LIMIT_S = 3_600
DESCRIPTION = f"""Run a bash command and get its output (errors included) and exit code.
The working directory stays for the next call when the command changes it with cd; variables, functions and options do not stay.
There is no input and no terminal: whatever asks a question gets an end of file. Give flags that answer it.
When the shell exits, everything it left in the background is ended; nothing runs on after the call.
Output is cut in the middle beyond 50 KiB or 2,000 lines, and kept whole in a file that is named.
After timeout_s ({TIMEOUT_S} by default) the command and all it started are ended."""


class BashArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `bash` is asked."""

    command: Annotated[str, msgspec.Meta(description="The command; several lines are allowed.", min_length=1)]
    timeout_s: Annotated[int, msgspec.Meta(description="Seconds after which the command is ended.", ge=1, le=TIMEOUT_LIMIT_S)] = TIMEOUT_S


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
    )


def _title(arguments: BashArguments) -> str:
    return title("bash", arguments.command)


async def _effects(arguments: BashArguments, context: ToolContext) -> Effects:
    environment = environment_of(context)
    root, directory = await in_thread(lambda: (os.path.realpath(environment.cwd), os.path.realpath(environment.directory())))
    return Effects(root=root, directory=directory, command=clean_text(arguments.command))


async def _preview(arguments: BashArguments, context: ToolContext) -> JsonObject:
    """The whole command, which the title may cut, and where it would run: what is allowed is what runs (rule SA-13)."""
    return {"command": clean_text(arguments.command), "directory": clean_text(environment_of(context).directory()), "timeoutS": arguments.timeout_s}


async def _execute(arguments: BashArguments, context: ToolContext) -> ToolResult:
    environment = environment_of(context)
    lost_before = environment.take_loss()
    collector = OutputCollector(environment, context.call_id, context.output, environment.clock)

    async def started(facts: ProcessFacts) -> None:
        await context.started(facts.to_json())

    try:
        end = await environment.run(arguments.command, timeout_ms=arguments.timeout_s * 1_000, on_started=started, on_output=collector.add)
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
    facts: list[str] = []
    if end.timed_out:
        facts.append(f"timed out after {arguments.timeout_s} s; the command and everything it started were ended")
    elif end.signal is not None:
        facts.append(f"ended by signal {_signal_name(end.signal)}")
    elif end.exit_code is None:
        facts.append("the command was ended from outside; its exit code is unknown")
    elif end.exit_code:
        facts.append(f"exit code {end.exit_code}")
    if moved:
        facts.append(f"the working directory is now {directory}")
    elif directory != environment.cwd:
        facts.append(f"working directory: {directory}")
    text = output.text.rstrip("\n") or "(no output)"
    details: JsonObject = {
        "exitCode": end.exit_code,
        "signal": end.signal,
        "timedOut": end.timed_out,
        "directory": clean_text(directory),
        "outputBytes": output.total_bytes,
        "outputPath": output.path,
    }
    answer = failed if end.timed_out or end.exit_code != 0 else succeeded
    return answer(
        "\n".join([text, *(f"[{fact}]" for fact in facts)]),
        details=details,
        diagnostics=(*output.diagnostics, *_lost(lost, environment), *_left(end)),
    )


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
