"""The pages of an SQLite file as of its newest commit: those of the file, over them those of its log or its journal. PURE.

A log is a row of frames, each a page with a checksum that starts from the one before. SQLite stops at the first frame that does not fit,
and leaves out what was committed after it; here the frames after it count, since each can be checked against its own neighbour. The page of
a damaged frame is kept beside, as `doubtful`: its rows carry checksums of their own.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from pi_durable_tui.storage.salvage.cells import Unreadable
from pi_durable_tui.storage.sqlite.connection import JOURNAL_MAGIC, WAL_HEADER_BYTES, WAL_MAGICS

DEFAULT_PAGE_BYTES = 4096
_SIZES = frozenset(2**power for power in range(9, 16))
_FRAME_BYTES = 24
_MASK = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Image:
    """The bytes of a page. `age`: 0 for the file, else which frame of the log; a higher one is newer."""

    number: int
    age: int
    data: bytes


@dataclass(slots=True)
class Pages:
    """All pages of a store.

    Attributes:
        images: The newest one of each page.
        doubtful: Those of damaged frames, and of what was written behind the last one that says that it is a commit.
        places: What is damaged, for people.
        is_unsure: Pages in `images` may be older than they should be.
    """

    size_bytes: int = DEFAULT_PAGE_BYTES
    images: dict[int, Image] = field(default_factory=dict[int, Image])
    doubtful: list[Image] = field(default_factory=list[Image])
    places: list[str] = field(default_factory=list[str])
    is_unsure: bool = False

    def data(self, number: int) -> bytes:
        """The bytes of a page.

        Raises:
            Unreadable: There is no such page.
        """
        image = self.images.get(number)
        if image is None:
            raise Unreadable(f"there is no page {number}")
        return image.data


@dataclass(frozen=True, slots=True)
class _Frame:
    page: Image
    pages_after: int  # how many pages there are then; 0: it does not end a commit
    is_sound: bool


def pages_of(file: bytes, log: bytes, journal: bytes) -> Pages:
    """The pages as of the newest commit.

    Args:
        file, log, journal: The bytes of the session file and of what SQLite keeps beside it; empty where there is none.
    """
    pages = Pages(_page_bytes(file, log))
    size = pages.size_bytes
    for number, start in enumerate(range(0, len(file), size), 1):
        data = file[start : start + size]
        if len(data) == size:
            pages.images[number] = Image(number, 0, data)
    if len(file) % size:
        pages.places.append("the end of the file")
        pages.is_unsure = True
    if len(log) > WAL_HEADER_BYTES:
        _use_log(pages, log)
    elif journal.startswith(JOURNAL_MAGIC):
        _use_journal(pages, journal)
    return pages


def _page_bytes(file: bytes, log: bytes) -> int:
    named = int.from_bytes(file[16:18], "big")
    if named in _SIZES and not len(file) % named:
        return named
    in_log = int.from_bytes(log[8:12], "big")
    return in_log if in_log in _SIZES else DEFAULT_PAGE_BYTES


def _use_log(pages: Pages, log: bytes) -> None:
    is_headed = log[:4] in WAL_MAGICS and _checksum((0, 0), log[:24], _order(log)) == struct.unpack_from(">II", log, 24)
    frames = _frames(log, pages.size_bytes, salt=log[16:24] if is_headed else log[WAL_HEADER_BYTES + 8 : WAL_HEADER_BYTES + 16])
    if frames and not is_headed:
        pages.places.append("the header of the log")
    commits = [index for index, frame in enumerate(frames) if frame.is_sound and frame.pages_after]
    end = commits[-1] + 1 if commits else 0
    tail = frames[end:]
    sound_upto = frames[end - 1].page.age if end else 0
    # What stands behind the last commit was cut off in the middle, unless the frame that ends it is the damaged one.
    counted = tail if any(not frame.is_sound for frame in tail) else []
    for frame in (*frames[:end], *counted):
        if frame.is_sound and frame.page.age <= sound_upto:
            pages.images[frame.page.number] = frame.page
        else:
            pages.doubtful.append(frame.page)
            pages.is_unsure = True
        if not frame.is_sound:
            pages.places.append(f"frame {frame.page.age} of the log")
    if end:
        pages.images = {number: image for number, image in pages.images.items() if number <= frames[end - 1].pages_after}


def _frames(log: bytes, size_bytes: int, *, salt: bytes) -> list[_Frame]:
    """The frames of the log's present use; what an earlier use left behind them has another salt."""
    step = _FRAME_BYTES + size_bytes
    starts = range(WAL_HEADER_BYTES, len(log) - step + 1, step)
    order = _order(log)
    seed = log[24:32]
    found: list[_Frame] = []
    for age, start in enumerate(starts, 1):
        header, data = log[start : start + _FRAME_BYTES], log[start + _FRAME_BYTES : start + step]
        if header[8:16] == salt:
            number, size_after = struct.unpack_from(">II", header)
            is_sound = _checksum(_checksum(struct.unpack(">II", seed), header[:8], order), data, order) == struct.unpack(">II", header[16:24])
            found.append(_Frame(Image(number, age, data), size_after, is_sound))
        seed = header[16:24]
    return found


def _order(log: bytes) -> str:
    return "<" if log[3:4] == b"\x82" else ">"


def _checksum(seed: tuple[int, ...], data: bytes, order: str) -> tuple[int, int]:
    first, second = seed
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for left, right in zip(words[::2], words[1::2], strict=True):
        first = first + left + second & _MASK
        second = second + right + first & _MASK
    return first, second


def _use_journal(pages: Pages, journal: bytes) -> None:
    """A journal holds the pages as they were before a commit that was cut off."""
    count, _nonce, pages_before, sector_bytes, size_bytes = struct.unpack_from(">5I", journal, len(JOURNAL_MAGIC))
    if size_bytes != pages.size_bytes or sector_bytes not in {*_SIZES, 2**16}:
        return
    step = size_bytes + 8
    for start in range(sector_bytes, min(len(journal) - step + 1, sector_bytes + count * step), step):
        number = int.from_bytes(journal[start : start + 4], "big")
        pages.images[number] = Image(number, 0, journal[start + 4 : start + 4 + size_bytes])
    pages.images = {number: image for number, image in pages.images.items() if number <= pages_before}
