"""The tool `edit`: replaces named texts of a file exactly, all or none, and leaves every other byte alone (CASE-C1, CASE-C3, CASE-C4)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.harness.ports import Tool, ToolResult
from pi_durable_tui.records.json import clean_text
from pi_durable_tui.tools import files
from pi_durable_tui.tools.change import Change, Intent, changing_tool
from pi_durable_tui.tools.environment import LocalEnvironment
from pi_durable_tui.tools.result import failed, title
from pi_durable_tui.tools.text import edit_match, text_file

DESCRIPTION = """Change parts of a text file. Each edit replaces old by new. old must be in the file exactly as given, blanks included, and exactly once;
add lines around it to make it unique, or set replace_all to replace it everywhere. All edits look at the file as it is before the call, must not overlap, and
are made all or not at all. Line endings, encoding and everything not named stay as they are (write line endings as plain newlines).
A relative path starts at the current directory, which cd in bash changes."""


class Replace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One replacement."""

    old: Annotated[str, msgspec.Meta(description="The text to replace, exactly as it is in the file.")]
    new: Annotated[str, msgspec.Meta(description="The text to put in its place; empty to delete.")]
    replace_all: Annotated[bool, msgspec.Meta(description="Replace every occurrence instead of exactly one.")] = False


class EditArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `edit` is asked."""

    path: Annotated[str, msgspec.Meta(description="The file, relative to the current directory or absolute.", min_length=1)]
    edits: Annotated[tuple[Replace, ...], msgspec.Meta(description="The replacements, in any order.", min_length=1, max_length=200)]


def edit_tool() -> Tool:
    """The tool, ready to be registered."""
    return changing_tool("edit", DESCRIPTION, EditArguments, title=_title, plan=_plan, verb="Edited")


def _title(arguments: EditArguments) -> str:
    count = len(arguments.edits)
    return title("edit", arguments.path + (f" ({count} edits)" if count > 1 else ""))


def _plan(arguments: EditArguments, environment: LocalEnvironment, intent: Intent | None) -> Change | ToolResult:
    """The change to make; a refusal when any edit does not apply."""
    try:
        path = environment.resolve(arguments.path) if intent is None else intent.path
        before = files.read_whole(path)
    except EnvironmentFailure as error:
        return failed(f"{error.message} Nothing was changed.")
    if kind := text_file.kind_of_binary(before):
        return failed(f"{path} is not text ({kind}). Nothing was changed.")
    file = text_file.decode(before)
    view = text_file.view(file.text)
    wanted = tuple(edit_match.Wanted(old=_plain(edit.old), new=_plain(edit.new), everywhere=edit.replace_all) for edit in arguments.edits)
    found = edit_match.plan(view.text, wanted)
    if isinstance(found, edit_match.Mismatch):
        return failed(f"{path}: nothing was changed. {found.message}")
    try:
        after = file.encode(edit_match.apply(file.text, tuple(_original(replacement, view, file) for replacement in found)))
    except UnicodeEncodeError as error:
        return failed(f"{path} is in {file.encoding}, which has no {error.object[error.start]!r}. Nothing was changed.")
    return Change(path=path, before=before, after=after)


def _plain(text: str) -> str:
    return clean_text(text).replace("\r\n", "\n")


def _original(replacement: edit_match.Replacement, view: text_file.LineView, file: text_file.TextFile) -> edit_match.Replacement:
    """The same replacement in the positions and line endings of the file."""
    start, end = view.original(replacement.start), view.original(replacement.end)
    return edit_match.Replacement(start=start, end=end, new=text_file.respell(file.text[start:end], replacement.new, file.newline))
