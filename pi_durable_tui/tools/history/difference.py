"""What changes to files came to, from the contents that were kept: each file before the first of them and after the last (rule TU-18)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pi_durable_tui.tools.history.log import NOT_KEPT, Content, FileChange, real_path
from pi_durable_tui.tools.text import text_file
from pi_durable_tui.tools.text.diff import Diff, unified

NO_DIFF = Diff(text="", added=0, removed=0, cut=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDifference:
    """One file. `diff` is from then to what the changes left; `remark` says what else became of it, "" for nothing."""

    path: str
    diff: Diff
    remark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """All of them, by path.

    Attributes:
        is_whole: False: the directory is too large to be looked at whole, so commands may have changed more than is known.
        is_from_start: False: of so many changes that the oldest were forgotten; files are compared with what they were after those.
    """

    files: tuple[FileDifference, ...]
    is_whole: bool
    is_from_start: bool


def file_differences(changes: Sequence[FileChange], get: Callable[[str], bytes | None]) -> tuple[FileDifference, ...]:
    """What these changes, oldest first, came to; files that are as they were before are left out.

    Args:
        get: A content by its name; None: it is not kept any more.
    """
    first: dict[str, FileChange] = {}
    last: dict[str, FileChange] = {}
    for change in changes:
        first.setdefault(change.path, change)
        last[change.path] = change
    found = [_difference(real_path(path), change.before, last[path].after, get) for path, change in first.items() if change.before != last[path].after]
    return tuple(sorted(found, key=lambda each: each.path))


def _difference(path: str, before: Content, after: Content, get: Callable[[str], bytes | None]) -> FileDifference:
    remark = "new" if before is None else "removed" if after is None else ""
    old, new = (_kept(content, get) for content in (before, after))
    if old is None or new is None:
        return FileDifference(path=path, diff=NO_DIFF, remark=", ".join(part for part in (remark, "what it held is not kept") if part))
    if text_file.kind_of_binary(old) or text_file.kind_of_binary(new):
        return FileDifference(path=path, diff=NO_DIFF, remark=", ".join(part for part in (remark, "no text") if part))
    return FileDifference(path=path, diff=unified(text_file.decode(old).text, text_file.decode(new).text), remark=remark)


def _kept(content: Content, get: Callable[[str], bytes | None]) -> bytes | None:
    """The bytes of a content, none of a file that is not there; None: they are not kept."""
    if content is None:
        return b""
    return None if content == NOT_KEPT else get(content)
