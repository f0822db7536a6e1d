"""The tool `find`: files by name, without what ignore files name; bounded in output and time (rule SA-10)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.harness.ports import Tool, ToolContext, ToolResult
from pi_durable_tui.tools import files
from pi_durable_tui.tools.environment import environment_of, in_thread
from pi_durable_tui.tools.result import cut_note, failed, succeeded, title
from pi_durable_tui.tools.search.child import Options
from pi_durable_tui.tools.search.grep import ending_notes
from pi_durable_tui.tools.search.process import TIME_LIMIT_MS, search
from pi_durable_tui.tools.text.names import relative, shown
from pi_durable_tui.tools.text.truncate import RESULT_BYTES, RESULT_LINES, head_within

DESCRIPTION = "Find files by name. Leaves out what ignore files name."


class FindArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `find` is asked."""

    glob: Annotated[str, msgspec.Meta(description="Like *.py (a name anywhere) or src/**/test_*.{ts,tsx} (a path).", min_length=1, max_length=1_000)]
    path: Annotated[str, msgspec.Meta(description="The folder to look in.")] = "."
    with_ignored: Annotated[bool, msgspec.Meta(description="Also give ignored files.")] = False
    limit: Annotated[int, msgspec.Meta(description="Most names.", ge=1, le=2_000)] = 500


def find_tool() -> Tool:
    """The tool, ready to be registered."""
    return Tool(name="find", description=DESCRIPTION, arguments=FindArguments, execute=_execute, title=_title, access="read", replay="safe")


def _title(arguments: FindArguments) -> str:
    return title("find", arguments.glob if arguments.path == "." else f"{arguments.glob} in {arguments.path}")


async def _execute(arguments: FindArguments, context: ToolContext) -> ToolResult:
    environment = environment_of(context)
    try:
        root = environment.resolve(arguments.path)
        await in_thread(lambda: files.require_readable(root))
        options = Options(root=root, glob=arguments.glob, with_ignored=arguments.with_ignored, folders=True, limit=arguments.limit, time_limit_ms=TIME_LIMIT_MS)
        found = await search(options, environment)
    except EnvironmentFailure as error:
        return failed(shown(error.message))
    directory = environment.directory()
    whole = "\n".join(shown(relative(name, directory)) for name in found.names)
    text = head_within(whole, max_bytes=RESULT_BYTES, max_lines=RESULT_LINES)
    remarks = list(ending_notes(found.ending, f"the first {arguments.limit} names", "Narrow glob or path, or raise limit."))
    if len(text) < len(whole):
        remarks += cut_note("The list was cut to the size of a result. Narrow glob or path.")
    return succeeded(text or "No such name.", details={"names": len(found.names)}, diagnostics=tuple(remarks))
