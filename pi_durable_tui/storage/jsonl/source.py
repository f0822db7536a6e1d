"""Where reads find their contents: the owner's own, or those of files that another process may be writing.

A follower never writes and leaves nothing behind (rule ST-11). It reads `main.jsonl` first and the sidecars after it, so a writer may
reclaim a sidecar in between; but then it has written to `main.jsonl` too, and the follower reads once more.
"""

from __future__ import annotations

from typing import TypeAlias

from pi_durable_tui.errors import EnvironmentFailure, StoreCorrupt
from pi_durable_tui.storage.jsonl.folder import Folder
from pi_durable_tui.storage.jsonl.lines import MAIN, file_name
from pi_durable_tui.storage.jsonl.recovery import Recovered
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.port import PutAside

_ATTEMPTS = 20

_Mark: TypeAlias = tuple[int | None, int | None]


class Source:
    """The contents of a store, and what to tell about its files.

    Attributes:
        memory: For reading; replaced when a follower reads again.
        put_aside: What was cut off from the files and is kept beside them; an owner's only.
    """

    def __init__(self, folder: Folder, found: Recovered, notices: tuple[str, ...], put_aside: tuple[PutAside, ...] = ()) -> None:
        self.memory = MemoryStorage(found.contents)
        self.notices = notices
        self.put_aside = put_aside
        self._folder = folder
        self._mark: _Mark | None = None

    @classmethod
    def following(cls, folder: Folder) -> Source:
        """The contents of files that somebody else may be writing.

        Raises:
            NotFound, SchemaTooNew, StoreCorrupt, EnvironmentFailure: Nothing was changed.
        """
        source = cls(folder, Recovered(), ())
        source.refresh()
        return source

    def refresh(self) -> None:
        """The contents are those of the files.

        Raises:
            NotFound, SchemaTooNew, StoreCorrupt, EnvironmentFailure: The contents are as before.
        """
        for attempt in range(_ATTEMPTS):
            mark = self._look()
            if mark == self._mark:
                return
            try:
                found = self._folder.recover()
            except StoreCorrupt:
                if attempt + 1 < _ATTEMPTS and mark != self._look():
                    continue
                raise
            except OSError as error:
                raise EnvironmentFailure(f"The session {self._folder.path} cannot be read: {error.strerror or error}. Nothing was changed.") from error
            self._mark = mark
            self.memory = MemoryStorage(found.contents)
            self.notices = tuple(
                f"{cut.size_bytes} bytes at the end of {file_name(cut.name)} are of an unfinished commit and were left out." for cut in found.cuts
            )
            return

    def verify(self) -> None:
        """The files were read and are sound.

        Raises:
            StoreCorrupt: They are not.
        """
        self._folder.recover()

    def _look(self) -> _Mark:
        """Another value whenever somebody may have written."""
        main = self._folder.file(MAIN)
        return self._folder.files.changed_at_ns(main), self._folder.files.size_bytes(main)
