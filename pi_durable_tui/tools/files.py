"""The door for files that the agent works on: bounded reads of odd files, and replacing a file whole or not at all (CASE-C5, CASE-C7, SA-10).

All functions block and belong on a thread. Each raises EnvironmentFailure with a text for the model; the file is then as before, unless
the text says otherwise.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from pi_durable_tui.errors import EnvironmentFailure

WHOLE_BYTES = 8 * 1024 * 1024  # files up to this size are held whole: hashed, edited, overwritten
CHUNK_BYTES = 1024 * 1024
TEMPORARY = ".pidurable-{token}.tmp"
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY  # NONBLOCK: a fifo without a writer must not hang
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a file too large to be held whole. `text` starts at the wanted place; `more`: the file goes on after it."""

    text: str
    more: bool
    start: bytes  # the first bytes of the file, to tell what kind it is


def digest(data: bytes) -> str:
    """The name of a content: SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


@contextlib.contextmanager
def opened(path: str) -> Generator[int]:
    """A descriptor for reading a regular file; anything else is refused without waiting for it.

    Raises:
        EnvironmentFailure: It is no regular file or cannot be opened.
    """
    with _told(path):
        descriptor = os.open(path, _READ)
    try:
        with _told(path):
            _require_regular(path, os.fstat(descriptor))
            yield descriptor
    finally:
        os.close(descriptor)


def size_bytes(path: str) -> int:
    """The size of a regular file."""
    with opened(path) as descriptor:
        return os.fstat(descriptor).st_size


def exists(path: str) -> bool:
    """Whether anything is at `path`, links followed."""
    with _told(path):
        try:
            os.stat(path)  # noqa: PTH116 - as raised: a loop of links is an error, not an absence
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True


def require_readable(path: str) -> None:
    """Return if it is a folder or a regular file that can be read, links followed; nothing is waited for."""
    with _told(path):
        if stat.S_ISDIR(os.stat(path).st_mode):  # noqa: PTH116 - a path of odd bytes is a text here
            os.scandir(path).close()
            return
    with opened(path):
        pass


def read_whole(path: str) -> bytes:
    """The content of a regular file of at most WHOLE_BYTES.

    Raises:
        EnvironmentFailure: It is larger, odd, absent or unreadable.
    """
    with opened(path) as descriptor:
        parts: list[bytes] = []
        room = WHOLE_BYTES + 1
        while room and (data := os.read(descriptor, min(room, CHUNK_BYTES))):
            parts.append(data)
            room -= len(data)
        if not room:
            raise EnvironmentFailure(f"{path} is larger than {WHOLE_BYTES // 1024 // 1024} MiB, too large to be handled whole. Use bash for it.")
        return b"".join(parts)


def read_part(path: str, *, line: int, column: int, max_chars: int) -> Part | None:
    """A piece of a large UTF-8 file, in bounded memory.

    Args:
        line: Where it starts, from 1.
        column: The character of that line where it starts, from 1.
        max_chars: Most characters returned.

    Returns:
        The piece, line endings as plain newlines; None when there is no such line, or the line has no such column.
    """
    with opened(path) as descriptor:
        start = os.pread(descriptor, CHUNK_BYTES, 0)
        offset = _line_offset(descriptor, line)
        if offset is None:
            return None
        decoder = codecs.getincrementaldecoder("utf-8-sig" if offset == 0 else "utf-8")(errors="replace")
        skip = column - 1
        parts: list[str] = []
        room = max_chars + 2
        while room > 0 and (data := os.pread(descriptor, CHUNK_BYTES, offset)):
            offset += len(data)
            text = decoder.decode(data)
            if skip:
                if "\n" in text[:skip]:
                    return None
                text, skip = text[skip:], max(0, skip - len(text))
            parts.append(text[:room])
            room -= len(text)
        if skip:
            return None
        text = "".join(parts)
        return Part(text=text[:max_chars].replace("\r\n", "\n"), more=len(text) > max_chars, start=start)


def _line_offset(descriptor: int, line: int) -> int | None:
    """Where a line starts, in bytes; None when the file ends before."""
    offset = 0
    wanted = line - 1
    while wanted:
        data = os.pread(descriptor, CHUNK_BYTES, offset)
        if not data:
            return None
        count = data.count(b"\n")
        if count < wanted:
            wanted -= count
            offset += len(data)
            continue
        position = 0
        for _ in range(wanted):
            position = data.index(b"\n", position) + 1
        return offset + position if os.pread(descriptor, 1, offset + position) else None
    return 0


def replace(path: str, data: bytes, *, expected: str | None, token: str) -> None:
    """Make `data` the content of `path`: atomically, or in place where a name, owner or attribute would be lost otherwise.

    Args:
        path: Absolute. Links are followed; missing folders are made.
        expected: The digest that the file has now, None when there is none.
        token: Names the temporary file; the same token finds what an earlier attempt left.

    Raises:
        EnvironmentFailure: The content is not `expected`, or it could not be written; the text says what holds.
    """
    with _told(path):
        target = os.path.realpath(path)
        _make_folder(Path(target).parent)
        found = read_whole(target) if exists(target) else None
        if (None if found is None else digest(found)) != expected:
            raise EnvironmentFailure(f"{path} was changed by someone else in the meantime. Nothing was written. Read it again.")
        if found is None:
            _swap(target, data, None, token)
            return
        status = os.stat(target)  # noqa: PTH116
        if not os.access(target, os.W_OK):
            raise EnvironmentFailure(f"{path} is read-only (mode {stat.S_IMODE(status.st_mode):04o}). Nothing was written.")
        if status.st_nlink > 1 or not _swap(target, data, status, token):
            _overwrite(target, data, found)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:  # mkdir says so of a file that is in the place of the folder
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from error


def remove(path: str) -> None:
    """The file is gone; a link would be removed itself, not what it leads to."""
    with _told(path):
        Path(path).unlink()


def set_mode(path: str, mode: int) -> None:
    """The file has these permission bits, without setuid and setgid."""
    with _told(path):
        Path(path).chmod(mode & 0o1777)


def discard_temporary(path: str, token: str) -> None:
    """Remove what a killed `replace` with this token left beside `path`, if anything."""
    with contextlib.suppress(OSError):
        _temporary(os.path.realpath(path), token).unlink()


def _temporary(target: str, token: str) -> Path:
    return Path(target).with_name(TEMPORARY.format(token=token))


def _swap(target: str, data: bytes, status: os.stat_result | None, token: str, *, unnamed: bool = True) -> bool:
    """Replace by renaming a new file over the old one. False: it would not keep what it must, or may not; nothing changed."""
    temporary = _temporary(target, token)
    discard_temporary(target, token)
    try:
        descriptor, named = _create(temporary, 0o666 if status is None else 0o600, unnamed=unnamed)
    except PermissionError:
        if status is None:
            raise
        return False
    try:
        _write_all(descriptor, data)
        if status is not None and not _keep(target, descriptor, status):
            if named:
                temporary.unlink()
            return False
        os.fsync(descriptor)
        if not named and not _give_name(descriptor, temporary):
            return _swap(target, data, status, token, unnamed=False)
        temporary.replace(target)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    finally:
        os.close(descriptor)
    _sync_folder(temporary.parent)
    return True


def _create(temporary: Path, mode: int, *, unnamed: bool) -> tuple[int, bool]:
    """A new file, without a name where the system can (then a kill leaves nothing), and whether it has one."""
    if unnamed and hasattr(os, "O_TMPFILE"):
        with contextlib.suppress(OSError):
            return os.open(temporary.parent, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, mode), False
    return os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, mode), True


def _give_name(descriptor: int, temporary: Path) -> bool:
    """Link a file without a name into its folder; False where that cannot be done (no /proc, some file systems)."""
    folder = os.open(temporary.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # REMINDER: only with a folder descriptor does os.link follow the link in /proc.
        os.link(f"/proc/self/fd/{descriptor}", temporary.name, dst_dir_fd=folder, follow_symlinks=True)
    except OSError:
        return False
    finally:
        os.close(folder)
    return True


def _keep(target: str, descriptor: int, status: os.stat_result) -> bool:
    """Give the new file the owner, attributes and mode of the old one; False when it cannot have them."""
    try:
        made = os.fstat(descriptor)
        if (made.st_uid, made.st_gid) != (status.st_uid, status.st_gid):
            os.fchown(descriptor, status.st_uid, status.st_gid)
        if hasattr(os, "listxattr"):
            for name in os.listxattr(target):
                if name.startswith(("user.", "system.posix_acl")):
                    os.setxattr(descriptor, name, os.getxattr(target, name))
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))  # last: changing the owner clears bits
    except OSError:
        return False
    return True


def _overwrite(target: str, data: bytes, before: bytes) -> None:
    """Write into the file itself, and put the old content back when that fails."""
    mode = stat.S_IMODE(os.stat(target).st_mode)  # noqa: PTH116
    descriptor = os.open(target, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        try:
            _fill(descriptor, data)
        except OSError:
            _fill(descriptor, before)
            raise
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
            os.fchmod(descriptor, mode)  # writing clears setuid and setgid
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _fill(descriptor: int, data: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    _write_all(descriptor, data)
    os.ftruncate(descriptor, len(data))


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _sync_folder(folder: Path) -> None:
    """Make a rename last; file systems that cannot sync a folder are left as they are."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _require_regular(path: str, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    kind = next((name for test, name in _KINDS if test(status.st_mode)), "no regular file")
    hint = " List it with ls." if stat.S_ISDIR(status.st_mode) else ""
    raise EnvironmentFailure(f"{path} is {kind}, not a file.{hint}")


@contextlib.contextmanager
def _told(path: str) -> Generator[None]:
    """System errors as a text about `path`."""
    try:
        yield
    except FileNotFoundError as error:
        raise EnvironmentFailure(f"{path} does not exist.") from error
    except OSError as error:
        raise EnvironmentFailure(f"{path}: {error.strerror or error}.") from error
    except ValueError as error:
        raise EnvironmentFailure(f"{path!r} is not a valid path: {error}.") from error
