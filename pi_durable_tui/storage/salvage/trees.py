"""Walks through the trees of an SQLite file as far as their pages hold, and finds the pages that a broken tree has lost. PURE."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from pi_durable_tui.storage.salvage.cells import LEAF_TABLE, Cell, Page, Unreadable, cells, children, tree_page
from pi_durable_tui.storage.salvage.pages import Image, Pages

SCHEMA = "sqlite_schema"


@dataclass(slots=True)
class Tree:
    """What a walk found: each entry, and the page it was on. `is_whole`: every page and entry of it could be read."""

    entries: list[tuple[Cell, Image]] = field(default_factory=list[tuple[Cell, Image]])
    is_whole: bool = True


class Forest:
    """All trees of a file.

    Args:
        tables, indexes: The names of those that are wanted.

    Attributes:
        places: What is damaged, for people.
    """

    def __init__(self, pages: Pages, *, tables: Collection[str], indexes: Collection[str]) -> None:
        self.places = list(pages.places)
        self._pages = pages
        self._tables = tables
        self._seen: set[int] = set()  # pages that belong to something
        roots = self._roots()
        self._trees = {name: self._walk(roots[name], is_table=name in tables) for name in (*tables, *indexes) if name in roots}
        if len(self._trees) < len(tables) + len(indexes):
            self.note("page 1")

    def tree(self, name: str) -> Tree:
        """What was found of one; an empty one that is not whole when even its beginning is unknown."""
        return self._trees.get(name) or Tree(is_whole=False)

    def strays(self) -> Iterator[tuple[Cell, Image]]:
        """The entries of table pages that belong to no tree, when one is broken, and of the doubtful pages of a damaged log."""
        self._skip_free_pages()
        is_broken = not all(self.tree(name).is_whole for name in self._tables)
        lost = [image for number, image in self._pages.images.items() if number not in self._seen] if is_broken else []
        for image in (*lost, *self._pages.doubtful):
            try:
                page = tree_page(image.data, image.number)
            except (Unreadable, IndexError):
                continue
            if page.kind == LEAF_TABLE:
                yield from ((cell, image) for cell in cells(page, self._fetch) if isinstance(cell, Cell))

    def note(self, place: str) -> None:
        """The place is damaged."""
        if place not in self.places:
            self.places.append(place)

    def _roots(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for cell, _image in self._walk(1, is_table=True).entries:
            match cell.values:
                case (str(), str(name), str(), int(root), *_):
                    found[name] = root
                case _:
                    self.note("page 1")
        return found

    def _walk(self, root: int, *, is_table: bool) -> Tree:
        tree, waiting = Tree(), [root]
        while waiting:
            number = waiting.pop()
            page = self._page(number, is_table=is_table)
            if page is None:
                tree.is_whole = False
                self.note(f"page {number}")
                continue
            if page.is_interior:
                waiting += reversed(children(page))
            for cell in cells(page, self._fetch):
                if isinstance(cell, Cell):
                    tree.entries.append((cell, self._pages.images[number]))
                else:
                    tree.is_whole = False
                    self.note(f"page {number}")
        return tree

    def _page(self, number: int, *, is_table: bool) -> Page | None:
        """A page of a tree of that kind that no other tree has; None when it is none."""
        try:
            page = tree_page(self._pages.data(number), number)
        except (Unreadable, IndexError):
            return None
        if page.is_table is not is_table or number in self._seen:
            return None
        self._seen.add(number)
        return page

    def _fetch(self, number: int) -> bytes:
        data = self._pages.data(number)
        self._seen.add(number)
        return data

    def _skip_free_pages(self) -> None:
        """Pages that SQLite has set aside hold what was deleted."""
        trunk = int.from_bytes(self._pages.images[1].data[32:36], "big") if 1 in self._pages.images else 0
        while trunk in self._pages.images and trunk not in self._seen:
            data = self._pages.data(trunk)
            count = min(int.from_bytes(data[4:8], "big"), len(data) // 4 - 2)
            self._seen.add(trunk)
            self._seen.update(int.from_bytes(data[8 + 4 * index : 12 + 4 * index], "big") for index in range(count))
            trunk = int.from_bytes(data[:4], "big")
