"""The tool `write`: a whole file, new or replaced; never over content that the model has not seen (CASE-C6)."""

from __future__ import annotations

import codecs
from typing import Annotated

import msgspec

from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.harness.ports import Tool, ToolResult
from pi_durable_tui.records.json import clean_text
from pi_durable_tui.tools import files
from pi_durable_tui.tools.change import Change, Intent, changing_tool
from pi_durable_tui.tools.environment import LocalEnvironment
from pi_durable_tui.tools.result import failed, title
from pi_durable_tui.tools.text import text_file
from pi_durable_tui.tools.text.truncate import line_count

DESCRIPTION = """Write a whole text file: a new one (its folders are made), or in place of an old one that was read before and has not changed since.
To change a part of a file use edit. A byte order mark and Windows line endings of the old file are kept.
A relative path starts at the current directory, which cd in bash changes."""


class WriteArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `write` is asked."""

    path: Annotated[str, msgspec.Meta(description="The file, relative to the current directory or absolute.", min_length=1)]
    content: Annotated[str, msgspec.Meta(description="The whole new text of the file.")]


def write_tool() -> Tool:
    """The tool, ready to be registered."""
    return changing_tool("write", DESCRIPTION, WriteArguments, title=_title, plan=_plan, verb="Wrote")


def _title(arguments: WriteArguments) -> str:
    lines = line_count(arguments.content)
    return title("write", f"{arguments.path} ({lines} {'line' if lines == 1 else 'lines'})")


def _plan(arguments: WriteArguments, environment: LocalEnvironment, intent: Intent | None) -> Change | ToolResult:
    """The change to make; a refusal when the file holds what the model has not seen."""
    try:
        path = environment.resolve(arguments.path) if intent is None else intent.path
        before = files.read_whole(path) if files.exists(path) else None
    except EnvironmentFailure as error:
        return failed(f"{error.message} Nothing was written.")
    content = clean_text(arguments.content)
    if not before:
        return Change(path=path, before=before, after=content.encode())
    planned = _like(before, content, path)
    now = files.digest(before)
    if intent is not None or environment.seen(path) == now or now == planned.intent.after:
        return planned
    if environment.seen(path) is None:
        return failed(f"{path} exists and was not read yet. Nothing was written. Read it first, or change a part of it with edit.")
    return failed(f"{path} has changed since it was read. Nothing was written. Read it again, then write with the newer text in mind.")


def _like(before: bytes, content: str, path: str) -> Change:
    """The new content with the mark, declared encoding and, where all of the old file has them, Windows line endings."""
    old = text_file.decode(before)
    remarks: list[str] = []
    text = content.removeprefix("\ufeff")
    pairs = old.text.count("\r\n")
    if pairs and pairs == old.text.count("\n") and "\r" not in text and "\n" in text:
        text = text.replace("\n", "\r\n")
        remarks.append("Windows line endings")
    if old.mark:
        remarks.append("byte order mark")
        return Change(path=path, before=before, after=old.encode(text), remark=f" Kept its {' and '.join(remarks)}.")
    mark = codecs.BOM_UTF8 if content.startswith("\ufeff") else b""
    return Change(path=path, before=before, after=mark + text.encode(), remark=f" Kept its {remarks[0]}." if remarks else "")
