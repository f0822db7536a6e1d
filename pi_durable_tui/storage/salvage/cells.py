"""The pages and cells of an SQLite file, read from their bytes (sqlite.org/fileformat2.html). PURE: bytes in, values out.

SQLite refuses a table as a whole when one of its pages is damaged; the cells of the other pages are as good as ever. Nothing in a damaged
page is believed: whatever does not fit raises Unreadable, and what does fit is for the caller to verify.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from pi_durable_tui.storage.sqlite.row import Column

INTERIOR_INDEX: Final = 2
INTERIOR_TABLE: Final = 5
LEAF_INDEX: Final = 10
LEAF_TABLE: Final = 13
_TABLES = (INTERIOR_TABLE, LEAF_TABLE)
_INTERIORS = (INTERIOR_TABLE, INTERIOR_INDEX)
_INTEGER_BYTES = (0, 1, 2, 3, 4, 6, 8)
_REAL = 7
_CONSTANTS = {8: 0, 9: 1}
_TEXTS_FROM = 13
_LONGEST_BYTES = 2**30
_MOST_COLUMNS = 100


class Unreadable(Exception):
    """Bytes that are no page, no cell or no record."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One entry of a tree. `key`: the rowid in a table, 0 in an index. Text is a str whose odd bytes are surrogates."""

    key: int
    values: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a tree. `first`: where its header begins, 100 on page 1."""

    data: bytes
    first: int
    kind: int
    starts: tuple[int, ...]

    @property
    def is_table(self) -> bool:
        return self.kind in _TABLES

    @property
    def is_interior(self) -> bool:
        return self.kind in _INTERIORS


def tree_page(data: bytes, number: int) -> Page:
    """The page, if these bytes can be one of a tree.

    Raises:
        Unreadable: They cannot.
    """
    first = 100 if number == 1 else 0
    kind = data[first]
    if kind not in (*_TABLES, LEAF_INDEX, INTERIOR_INDEX):
        raise Unreadable(f"page {number} is no page of a tree")
    count = int.from_bytes(data[first + 3 : first + 5], "big")
    array = first + (12 if kind in _INTERIORS else 8)
    if array + 2 * count > len(data):
        raise Unreadable(f"page {number} has no room for {count} cells")
    return Page(data, first, kind, struct.unpack_from(f">{count}H", data, array))


def children(page: Page) -> list[int]:
    """The numbers of the pages below an interior page."""
    found = [int.from_bytes(page.data[start : start + 4], "big") for start in page.starts]
    return [*found, int.from_bytes(page.data[page.first + 8 : page.first + 12], "big")]


def cells(page: Page, fetch: Callable[[int], bytes]) -> Iterator[Cell | Unreadable]:
    """The entries of a leaf page, and those between the children of an index page; what cannot be read in their place.

    Args:
        fetch: The bytes of a page by number, for long entries; raises Unreadable.
    """
    if page.kind == INTERIOR_TABLE:
        return
    for start in page.starts:
        try:
            yield _cell(page, start, fetch)
        except (Unreadable, IndexError, struct.error) as error:
            yield Unreadable(str(error))


def _cell(page: Page, start: int, fetch: Callable[[int], bytes]) -> Cell:
    at = start + (4 if page.kind == INTERIOR_INDEX else 0)
    size_bytes, at = _varint(page.data, at)
    key = 0
    if page.kind == LEAF_TABLE:
        key, at = _varint(page.data, at)
    if size_bytes > _LONGEST_BYTES:
        raise Unreadable("an entry of impossible length")
    return Cell(_signed(key), _record(_payload(page, at, size_bytes, fetch)))


def _payload(page: Page, at: int, size_bytes: int, fetch: Callable[[int], bytes]) -> bytes:
    """The bytes of an entry, those on overflow pages too."""
    usable = len(page.data)
    most = usable - 35 if page.is_table else (usable - 12) * 64 // 255 - 23
    if size_bytes <= most:
        return _exactly(page.data[at : at + size_bytes], size_bytes)
    least = (usable - 12) * 32 // 255 - 23
    local = least + (size_bytes - least) % (usable - 4)
    local = local if local <= most else least
    found = bytearray(_exactly(page.data[at : at + local], local))
    following = int.from_bytes(page.data[at + local : at + local + 4], "big")
    while len(found) < size_bytes:
        more = fetch(following)
        following = int.from_bytes(more[:4], "big")
        found += more[4 : 4 + size_bytes - len(found)]
    return bytes(found)


def _record(payload: bytes) -> tuple[Column, ...]:
    header_bytes, at = _varint(payload, 0)
    types: list[int] = []
    while at < header_bytes and len(types) <= _MOST_COLUMNS:
        serial, at = _varint(payload, at)
        types.append(serial)
    if at != header_bytes:
        raise Unreadable("an entry whose header does not fit")
    values: list[Column] = []
    for serial in types:
        value, at = _value(payload, at, serial)
        values.append(value)
    return tuple(values)


def _value(payload: bytes, at: int, serial: int) -> tuple[Column, int]:
    if serial == 0:
        return None, at
    if serial in _CONSTANTS:
        return _CONSTANTS[serial], at
    if serial < _REAL:
        end = at + _INTEGER_BYTES[serial]
        return int.from_bytes(_exactly(payload[at:end], end - at), "big", signed=True), end
    if serial < _TEXTS_FROM - 1:
        raise Unreadable("a number of a kind that is never stored")
    end = at + (serial - 12) // 2
    data = _exactly(payload[at:end], end - at)
    return (data.decode("utf-8", "surrogateescape") if serial % 2 else data), end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(8):
        byte = data[at + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    return value << 8 | data[at + 8], at + 9


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _exactly(data: bytes, size_bytes: int) -> bytes:
    if len(data) != size_bytes:
        raise Unreadable("an entry that does not end")
    return data
