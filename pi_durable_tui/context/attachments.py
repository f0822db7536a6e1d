"""What a prompt brings along: `@file` and `@"file with blanks"` become parts of the message, stored as they were sent (rule AG-1).

Finding the mentions and making the parts are PURE; between the two, `gather` reads the files, and never more than the bounds allow. The
typed text stays the first part, word for word; each attachment is one part after it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pi_durable_tui.context import files
from pi_durable_tui.context.text import decoded, fenced, shown_name
from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.records.json import clean_text
from pi_durable_tui.records.messages import ATTACHED, Content, Image, Text
from pi_durable_tui.records.pictures import IMAGE_BYTES, image_type, picture

MOST = 20
TEXT_BYTES = 64 * 1024
TOTAL_BYTES = 256 * 1024
MOST_NAMES = 200

_MENTION = re.compile(r'(?<![^\s(\[{"\'])@(?:"([^"\n]+)"|([^\s"@][^\s]*))')
_TRAILING = ".,;:!?)]}'\""


@dataclass(frozen=True, slots=True)
class Mention:
    """One `@name` in a text; `spellings` are the names it may stand for, the longest first."""

    spellings: tuple[str, ...]

    @property
    def looks_like_a_path(self) -> bool:
        """Whether a person would miss the file; `@name` alone may be anybody's name."""
        name = self.spellings[-1]
        return "/" in name or re.search(r"\w\.\w", name) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """The parts to send after the text, and one line for each thing that a person should know."""

    parts: tuple[Content, ...]
    remarks: tuple[str, ...]


def mentions(text: str) -> tuple[Mention, ...]:
    """The mentions in a text, each name once. PURE."""
    found: dict[str, Mention] = {}
    for match in _MENTION.finditer(text):
        quoted, bare = match[1], match[2]
        spellings = (quoted,) if quoted is not None else tuple(dict.fromkeys((bare, bare.rstrip(_TRAILING))))
        if spellings[-1]:
            found.setdefault(spellings[-1], Mention(spellings))
    return tuple(found.values())


def gather(text: str, *, directory: Path, home: Path | None, takes_images: bool) -> Attached:
    """What the mentions of a text bring along. Blocks: belongs on a thread. Never raises for what lies there.

    Args:
        directory: What relative names start from.
        home: What `~` stands for.
        takes_images: Whether the model can be shown pictures.
    """
    parts: list[Content] = []
    remarks: list[str] = []
    room = TOTAL_BYTES
    found = mentions(text)
    for mention in found[:MOST]:
        path = _path(mention, directory, home)
        if path is None:
            if mention.looks_like_a_path:
                remarks.append(f"There is no file {shown_name(mention.spellings[-1])!r}; it was not attached.")
            continue
        shown = shown_name(mention.spellings[-1])
        try:
            part = _directory(path, shown) if files.is_folder(path) else _file(path, shown, room=room, takes_images=takes_images)
        except EnvironmentFailure as error:
            remarks.append(f"{shown} {error.message}; it was not attached.")
            continue
        if isinstance(part, Text):
            room -= len(part.text.encode())
        parts.append(part)
        if isinstance(part, Image):
            parts.append(Text(text=f"{ATTACHED}{shown} ({part.mime_type})."))
    if len(found) > MOST:
        remarks.append(f"Only the first {MOST} files were attached.")
    return Attached(parts=tuple(parts), remarks=tuple(remarks))


def text_part(shown: str, data: bytes, size_bytes: int) -> Text:
    """A text file as a part: its name, what was cut, and its text as a code block. PURE."""
    is_cut = size_bytes > len(data)
    made = decoded(data, is_cut=is_cut)
    notes = [f"the first {len(data):,} of {size_bytes:,} bytes; read the file for the rest"] if is_cut else []
    notes += [made.oddity] if made.oddity else []
    said = f" ({'; '.join(notes)})" if notes else ""
    return Text(text=clean_text(f"{ATTACHED}{shown}{said}:\n{fenced(made.text)}"))


def names_part(shown: str, names: Sequence[str], *, has_more: bool) -> Text:
    """A directory as a part: the names in it. PURE."""
    more = f"\n… and more than {MOST_NAMES}" if has_more else ""
    return Text(text=clean_text(f"{ATTACHED}{shown} (a directory):\n{fenced(chr(10).join(shown_name(name) for name in names) + more)}"))


def _path(mention: Mention, directory: Path, home: Path | None) -> Path | None:
    for name in mention.spellings:
        if "\0" in name:
            continue
        full = home / name[2:] if home is not None and name.startswith("~/") else directory / name
        if files.is_there(full):
            return full
    return None


def _file(path: Path, shown: str, *, room: int, takes_images: bool) -> Content:
    start = files.read(path, limit_bytes=IMAGE_BYTES)
    if start is None:
        raise EnvironmentFailure("is gone")
    kind = image_type(start.data)
    if kind is not None:
        if start.is_cut:
            raise EnvironmentFailure(f"is a picture of {start.size_bytes:,} bytes, more than the {IMAGE_BYTES:,} that can be sent")
        if not takes_images:
            raise EnvironmentFailure("is a picture, and this model takes none")
        return picture(kind, start.data)
    if b"\0" in start.data[:TEXT_BYTES]:
        raise EnvironmentFailure("is not a text")
    if room <= 0:
        raise EnvironmentFailure(f"would be more than {TOTAL_BYTES // 1024} KiB in one message")
    return text_part(shown, start.data[: min(TEXT_BYTES, room)], start.size_bytes)


def _directory(path: Path, shown: str) -> Text:
    names, has_more = files.names(path, limit=MOST_NAMES)
    marked = [f"{name}/" if files.is_folder(Path(os.path.join(path, name))) else name for name in names]  # noqa: PTH118 - names with dots stay as they are
    return names_part(shown, marked, has_more=has_more)
