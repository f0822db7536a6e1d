"""The tool `ls`: what a folder holds, sorted, with kinds and sizes; bounded for any folder (rule SA-10)."""

from __future__ import annotations

import itertools
import os
import stat
from typing import Annotated

import msgspec

from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.harness.ports import Tool, ToolContext, ToolResult
from pi_durable_tui.tools.environment import environment_of, in_thread
from pi_durable_tui.tools.result import cut_note, failed, succeeded, title
from pi_durable_tui.tools.text.names import shown
from pi_durable_tui.tools.text.truncate import RESULT_BYTES, RESULT_LINES, head_within, size_text

DESCRIPTION = "List a folder: names in order, sizes of files, ignored and hidden ones too."
FOLDER_NAMES = 100_000  # of a folder with more names, that many are looked at
_KINDS = ((stat.S_ISFIFO, "named pipe"), (stat.S_ISSOCK, "socket"), (stat.S_ISCHR, "device"), (stat.S_ISBLK, "device"))


class LsArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `ls` is asked."""

    path: Annotated[str, msgspec.Meta(description="The folder.")] = "."
    limit: Annotated[int, msgspec.Meta(description="Most names.", ge=1, le=2_000)] = 500


def ls_tool() -> Tool:
    """The tool, ready to be registered."""
    return Tool(name="ls", description=DESCRIPTION, arguments=LsArguments, execute=_execute, title=_title, access="read", replay="safe")


def _title(arguments: LsArguments) -> str:
    return title("ls", arguments.path)


async def _execute(arguments: LsArguments, context: ToolContext) -> ToolResult:
    environment = environment_of(context)
    try:
        path = environment.resolve(arguments.path)
    except EnvironmentFailure as error:
        return failed(error.message)
    return await in_thread(lambda: _list(path, arguments.limit))


def _list(path: str, limit: int) -> ToolResult:
    try:
        with os.scandir(path) as found:
            entries = list(itertools.islice(found, FOLDER_NAMES + 1))
    except NotADirectoryError:
        return failed(f"{shown(path)} is not a folder.")
    except FileNotFoundError:
        return failed(f"{shown(path)} does not exist.")
    except OSError as error:
        return failed(f"{shown(path)}: {error.strerror or error}.")
    is_cut = len(entries) > FOLDER_NAMES
    names = sorted(entries[:FOLDER_NAMES], key=lambda entry: entry.name)
    whole = "\n".join(_line(entry) for entry in names[:limit])
    text = head_within(whole, max_bytes=RESULT_BYTES, max_lines=RESULT_LINES)
    count = f"more than {FOLDER_NAMES:,}" if is_cut else f"{len(names):,}"
    remarks = cut_note(f"Only a part of the {count} names is shown. Use find with a glob.") if is_cut or len(names) > limit or len(text) < len(whole) else ()
    return succeeded(text or "(The folder is empty.)", details={"names": len(names)}, diagnostics=remarks)


def _line(entry: os.DirEntry[str]) -> str:
    """One name with its kind or size; a link shows where it leads."""
    name = shown(entry.name)
    try:
        if entry.is_symlink():
            return f"{name} -> {shown(os.readlink(entry.path))}"  # noqa: PTH115 - a name of odd bytes is a text here
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return f"{name} (unreadable)"
    if stat.S_ISDIR(status.st_mode):
        return f"{name}/"
    kind = next((kind for test, kind in _KINDS if test(status.st_mode)), None)
    return f"{name} ({kind or size_text(status.st_size)})"
