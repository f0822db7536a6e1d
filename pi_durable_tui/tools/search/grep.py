"""The tool `grep`: lines that match a regular expression, in a file or below a folder; bounded in output and time (CASE-C7)."""

from __future__ import annotations

import itertools
from typing import Annotated

import msgspec

from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.harness.ports import Diagnostic, Effects, Tool, ToolContext, ToolResult
from pi_durable_tui.tools import files
from pi_durable_tui.tools.environment import environment_of, in_thread
from pi_durable_tui.tools.result import cut_note, failed, note, succeeded, title
from pi_durable_tui.tools.search.child import Ending, Options
from pi_durable_tui.tools.search.process import TIME_LIMIT_MS, Found, Line, search
from pi_durable_tui.tools.text.names import relative, shown
from pi_durable_tui.tools.text.truncate import RESULT_BYTES, RESULT_LINES, head_within

DESCRIPTION = "Search file contents for a regular expression, line by line. Leaves out binary files and what ignore files name."


class GrepArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `grep` is asked."""

    pattern: Annotated[str, msgspec.Meta(description="Regular expression.", min_length=1, max_length=4_000)]
    path: Annotated[str, msgspec.Meta(description="File or folder.")] = "."
    glob: Annotated[str, msgspec.Meta(description="Only such names, like *.py or src/**/*.{ts,tsx}.", max_length=1_000)] = ""
    ignore_case: bool = False
    with_ignored: Annotated[bool, msgspec.Meta(description="Also search ignored files.")] = False
    context: Annotated[int, msgspec.Meta(description="Lines shown around a match.", ge=0, le=10)] = 0
    limit: Annotated[int, msgspec.Meta(description="Most matches.", ge=1, le=1_000)] = 100


def grep_tool() -> Tool:
    """The tool, ready to be registered."""
    return Tool(name="grep", description=DESCRIPTION, arguments=GrepArguments, execute=_execute, title=_title, access="read", replay="safe", effects=_effects)


def _title(arguments: GrepArguments) -> str:
    where = [f"in {arguments.path}"] if arguments.path != "." else []
    return title("grep", " ".join([arguments.pattern, *where, *([f"({arguments.glob})"] if arguments.glob else [])]))


async def _effects(arguments: GrepArguments, context: ToolContext) -> Effects:
    environment = environment_of(context)
    return await in_thread(lambda: environment.reading(arguments.path))


async def _execute(arguments: GrepArguments, context: ToolContext) -> ToolResult:
    environment = environment_of(context)
    try:
        root = environment.resolve(arguments.path)
        await in_thread(lambda: files.require_readable(root))
        options = Options(
            root=root,
            pattern=arguments.pattern,
            glob=arguments.glob,
            ignore_case=arguments.ignore_case,
            with_ignored=arguments.with_ignored,
            context=arguments.context,
            limit=arguments.limit,
            time_limit_ms=TIME_LIMIT_MS,
        )
        found = await search(options, environment)
    except EnvironmentFailure as error:
        return failed(shown(error.message))
    if found.ending.problem:
        return failed(problem(found.ending.problem))
    return result(found, environment.directory(), arguments.limit)


def result(found: Found, directory: str, limit: int) -> ToolResult:
    """What was found as the model reads it: a path, then its lines. PURE."""
    whole = "\n".join(_block(path, list(lines), directory) for path, lines in itertools.groupby(found.lines, key=lambda line: line.path))
    text = head_within(whole, max_bytes=RESULT_BYTES, max_lines=RESULT_LINES)
    remarks = list(ending_notes(found.ending, f"the first {limit} matches", "Narrow the pattern, path or glob, or raise limit."))
    if len(text) < len(whole):
        remarks += cut_note("The list was cut to the size of a result. Narrow the pattern, path or glob.")
    matches = sum(line.is_match for line in found.lines)
    return succeeded(text or "No match.", details={"matches": matches}, diagnostics=tuple(remarks))


def problem(said: str) -> str:
    """What the search program refused, without advice on options that the tool does not have. PURE."""
    said = said.partition("\n\nConsider enabling")[0]
    what = "glob is not valid" if said.startswith("error parsing glob") else "pattern is not a valid regular expression"
    return f"The {what}: {said}"


def _block(path: str, lines: list[Line], directory: str) -> str:
    numbered: list[str] = []
    last = lines[0].number
    for line in lines:
        numbered += ["…"] if line.number > last + 1 and any(not each.is_match for each in lines) else []
        numbered.append(f"{line.number}{':' if line.is_match else '-'} {line.text}")
        last = line.number
    return "\n".join([shown(relative(path, directory)), *numbered])


def ending_notes(ending: Ending, full: str, advice: str) -> tuple[Diagnostic, ...]:
    """What was left out and how to get it. PURE."""
    notes: tuple[Diagnostic, ...] = ()
    if ending.is_full:
        notes += cut_note(f"Only {full} are shown. {advice}")
    if ending.is_late:
        where = f" Not (wholly) searched: {', '.join(shown(path) for path in ending.unsearched)}." if ending.unsearched else ""
        notes += cut_note(f"The search was stopped when its {TIME_LIMIT_MS / 1_000:g} s were up; there may be more.{where} Narrow it, or use bash.", "warn")
    if ending.is_cut:
        notes += cut_note("The tree has too many names; not all were looked at. Search in a folder of it.", "warn")
    if ending.unreadable:
        notes += note("Some files or folders could not be read, and were left out.")
    return notes
