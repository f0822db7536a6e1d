"""The door to the files of this package: bounded reads of regular files, whatever lies at the path (rule SA-10).

Nothing here follows a link out of a boundary it was given, waits for a pipe, reads more than it was allowed, or writes into a project.
"""

from __future__ import annotations

import itertools
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pi_durable_tui.errors import EnvironmentFailure

PRIVATE_FOLDER = 0o700
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY  # NONBLOCK: a pipe without a writer must not hang the start
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True, slots=True)
class Stamp:
    """Changes whenever a file or folder is replaced or written."""

    device: int
    inode: int
    size_bytes: int
    changed_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a file holds.

    Attributes:
        real: Its path with links resolved.
        data: The first bytes of it, as many as were allowed.
        size_bytes: Of the whole file.
    """

    real: Path
    data: bytes
    size_bytes: int

    @property
    def is_cut(self) -> bool:
        """Whether there is more than `data`."""
        return self.size_bytes > len(self.data)


def stamp(path: Path) -> Stamp | None:
    """The stamp of what is at `path`, links followed; None when nothing readable is there."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def is_there(path: Path) -> bool:
    """Whether the name exists, whatever it is; a link that leads nowhere counts."""
    return os.path.lexists(path)


def is_folder(path: Path) -> bool:
    """Whether a directory is at `path`, links followed."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def is_within(path: Path, folder: Path | None) -> bool:
    """Whether a path stays in a folder with links resolved; None: there is no boundary. A path that does not exist stays."""
    return folder is None or Path(os.path.realpath(path)).is_relative_to(folder)


def owner(path: Path) -> int | None:
    """The user a file or folder belongs to; None when nothing readable is there."""
    try:
        return path.stat().st_uid
    except (OSError, ValueError):
        return None


def read(path: Path, *, limit_bytes: int, inside: Path | None = None) -> Read | None:
    """The beginning of a regular file; None when nothing of that name exists.

    Args:
        limit_bytes: Most bytes read.
        inside: A folder, links resolved, that the file with its links resolved must be in; None: it may be anywhere.

    Raises:
        EnvironmentFailure: It is no regular file, leads out of `inside`, or cannot be read. The message tells why, without the name.
    """
    if not is_there(path):
        return None
    try:
        real = Path(os.path.realpath(path, strict=True))
        if inside is not None and not real.is_relative_to(inside):
            raise EnvironmentFailure("is a link that leads out of the project")
        # What the check saw is what is opened: a link put in its place meanwhile is refused.
        with open(real, "rb", opener=lambda name, _flags: os.open(name, _READ | os.O_NOFOLLOW)) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                kind = next((words for fits, words in _KINDS if fits(found.st_mode)), "no regular file")
                raise EnvironmentFailure(f"is {kind}")
            return Read(real=real, data=file.read(limit_bytes), size_bytes=found.st_size)
    except IsADirectoryError as error:
        raise EnvironmentFailure("is a directory") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise EnvironmentFailure(f"cannot be read ({(reason or 'unknown reason').lower()})") from error


def names(folder: Path, *, limit: int) -> tuple[tuple[str, ...], bool]:
    """The first `limit` names in a folder as the system gives them, sorted, and whether there are more; none when it cannot be listed."""
    try:
        with os.scandir(folder) as found:
            listed = [entry.name for entry in itertools.islice(found, limit + 1)]
    except (OSError, ValueError):
        return (), False
    return tuple(sorted(listed[:limit])), len(listed) > limit


def write_private(path: Path, data: bytes) -> None:
    """Replace a file of ours by `data`, all of it or nothing; only the user may read it, whatever the umask (rule SA-16).

    Raises:
        EnvironmentFailure: It could not be written; what was there is still there.
    """
    try:
        path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")  # 0600 by itself
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            temporary.replace(path)
        except BaseException:
            temporary.unlink()
            raise
    except OSError as error:
        raise EnvironmentFailure(f"{str(path)!r} could not be written: {error.strerror}. Nothing was changed.") from error
