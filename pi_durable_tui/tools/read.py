"""The tool `read`: part of a text file exactly as it is, saying how to go on (CASE-C7); a picture; a notebook as the text of its cells."""

from __future__ import annotations

from typing import Annotated

import msgspec

from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.harness.ports import Diagnostic, Effects, Tool, ToolContext, ToolResult
from pi_durable_tui.records.messages import Text
from pi_durable_tui.records.pictures import IMAGE_BYTES, ImageType, image_type, picture
from pi_durable_tui.tools import files
from pi_durable_tui.tools.environment import LocalEnvironment, environment_of, in_thread
from pi_durable_tui.tools.result import cut_note, failed, note, succeeded, title
from pi_durable_tui.tools.text import text_file
from pi_durable_tui.tools.text.notebook import notebook_text
from pi_durable_tui.tools.text.truncate import RESULT_BYTES, RESULT_LINES, head_within, line_count, size_text

DESCRIPTION = f"""Read a file. Gives a text exactly as it is in the file, without line numbers,
so that it can be copied into edit; shows pictures (PNG, JPEG, GIF, WebP), and notebooks as their cells.
At most {RESULT_LINES:,} lines and {RESULT_BYTES // 1024} KiB at once.
For more, go on with offset (and column, inside a very long line) as the note at the end says.
A relative path starts at the current directory, which cd in bash changes. Directories and other binary files are refused."""


class ReadArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `read` is asked."""

    path: Annotated[str, msgspec.Meta(description="The file, relative to the current directory or absolute.", min_length=1)]
    offset: Annotated[int, msgspec.Meta(description="The line to start at, from 1.", ge=1)] = 1
    limit: Annotated[int, msgspec.Meta(description="How many lines to read at most.", ge=1)] = RESULT_LINES
    column: Annotated[int, msgspec.Meta(description="The character of the first line to start at, from 1. Only to go on inside a very long line.", ge=1)] = 1


def read_tool() -> Tool:
    """The tool, ready to be registered."""
    return Tool(
        name="read",
        description=DESCRIPTION,
        arguments=ReadArguments,
        execute=_execute,
        title=_title,
        access="read",
        replay="safe",
        effects=_effects,
    )


def _title(arguments: ReadArguments) -> str:
    lines = f" from line {arguments.offset}" if arguments.offset > 1 else ""
    return title("read", arguments.path + lines)


async def _effects(arguments: ReadArguments, context: ToolContext) -> Effects:
    environment = environment_of(context)
    return await in_thread(lambda: environment.reading(arguments.path))


async def _execute(arguments: ReadArguments, context: ToolContext) -> ToolResult:
    environment = environment_of(context)
    return await in_thread(lambda: _read(arguments, environment))


def _read(arguments: ReadArguments, environment: LocalEnvironment) -> ToolResult:
    try:
        path = environment.resolve(arguments.path)
        size = files.size_bytes(path)
        if size > files.WHOLE_BYTES:
            return _read_large(arguments, path, size)
        data = files.read_whole(path)
    except EnvironmentFailure as error:
        return failed(error.message)
    if kind := image_type(data):
        return _picture(path, kind, data)
    if kind := text_file.kind_of_binary(data):
        return _binary(path, kind, len(data))
    environment.saw(path, files.digest(data))
    if not data:
        return succeeded("(The file is empty.)")
    if path.endswith(".ipynb") and (cells := notebook_text(data)) is not None:
        remark = note("This is the text of a notebook. The file is JSON, in which each line of a cell is a text of its own.")
        return _from_line(arguments, path, cells, remark)
    file = text_file.decode(data)
    spelled = () if file.encoding.startswith("utf") else note(f"{path} is not UTF-8; it was read as {file.encoding}.")
    return _from_line(arguments, path, text_file.view(file.text).text, spelled)


def _from_line(arguments: ReadArguments, path: str, text: str, remarks: tuple[Diagnostic, ...]) -> ToolResult:
    """The wanted part of a whole text."""
    total = line_count(text)
    start = _start_of_line(text, arguments.offset)
    if start is None:
        return failed(f"{path} has {total} lines; offset {arguments.offset} is past its end.")
    if arguments.column > 1:
        start += arguments.column - 1
        if "\n" in text[start - arguments.column + 1 : start] or start >= len(text):
            return failed(f"Line {arguments.offset} of {path} has fewer than {arguments.column} characters.")
    return _window(arguments, text[start:], more=False, total=f"{total:,}", remarks=remarks)


def _read_large(arguments: ReadArguments, path: str, size: int) -> ToolResult:
    part = files.read_part(path, line=arguments.offset, column=arguments.column, max_chars=RESULT_BYTES + 1)
    if part is None:
        return failed(f"{path} ({size_text(size)}) ends before line {arguments.offset}, column {arguments.column}.")
    if kind := text_file.kind_of_binary(part.start) or ("\0" in part.text and "binary file"):
        return _binary(path, kind, size)
    return _window(arguments, part.text, more=part.more, total=f"many ({size_text(size)})", remarks=())


def _window(arguments: ReadArguments, text: str, *, more: bool, total: str, remarks: tuple[Diagnostic, ...]) -> ToolResult:
    """The part of `text`, which starts where was asked, that fits; and how to go on."""
    shown = head_within(text, max_bytes=RESULT_BYTES, max_lines=min(arguments.limit, RESULT_LINES))
    if len(shown) == len(text) and not more:
        return succeeded(shown, diagnostics=remarks)
    last = arguments.offset + line_count(shown) - 1
    where = f"Lines {arguments.offset:,}-{last:,} of {total} are shown"
    if shown.endswith("\n"):
        return succeeded(shown, diagnostics=(*remarks, *cut_note(f"{where}. Go on with offset={last + 1}.")))
    before = arguments.column if last == arguments.offset else 1
    column = before + len(shown) - (shown.rfind("\n") + 1)
    inside = f"Line {last:,} is very long and is shown up to character {column - 1:,}"
    going_on = f"{inside}. Go on inside it with offset={last} column={column}, or after it with offset={last + 1}."
    return succeeded(shown, diagnostics=(*remarks, *cut_note(f"{where}. {going_on}")))


def _picture(path: str, kind: ImageType, data: bytes) -> ToolResult:
    """A picture as what it is; a model that takes none is told so on the way to it."""
    told = f"{path} is a picture ({kind}, {size_text(len(data))})"
    if len(data) > IMAGE_BYTES:
        return failed(f"{told}, too large to be shown: at most {size_text(IMAGE_BYTES)}. Use bash to make it smaller.")
    return ToolResult(content=(Text(text=f"{told}."), picture(kind, data)))


def _binary(path: str, kind: str, size: int) -> ToolResult:
    article = "an" if kind[0] in "aeiou" else "a"
    return failed(f"{path} is {article} {kind} ({size_text(size)}), not text. Use bash to look into it.")


def _start_of_line(text: str, line: int) -> int | None:
    position = 0
    for _ in range(line - 1):
        position = text.find("\n", position) + 1
        if position == 0 or position == len(text):
            return None
    return position
