"""The door for files of the store: create, append, read, sync, cut, rename, remove, and how much space is left.

Everything made here is private whatever the umask (rule ST-14), and bytes are counted: a write that stored less than it was given is
an error and is cut back (rule ST-18). Calls block; they belong on the writer's thread. Errors of the system pass as OSError: the
caller knows what they mean for the store.

REMINDER: never read, append or sync a store's file that SQLite has open in this process: closing the descriptor drops SQLite's locks.
(Its locks lie on the file itself and on the index of its log, not on the log.)
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pi_durable_tui.errors import Refused

MOUNTS = Path("/proc/self/mountinfo")
REMOTE = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "9p", "virtiofs", "vboxsf", "prl_fs", "fuse", "ceph", "glusterfs", "afs", "beegfs", "lustre"}
)
"""Kinds of file system that other machines may have a hand in; what is mounted by a program (`fuse.sshfs`) counts among them."""

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
_ROOT = 0


class FileOps(Protocol):
    """What a backend does with files besides SQLite's own work. Fakes fail at the operation they are told to."""

    def create(self, path: Path) -> None:
        """A new, empty file of mode 0600 stands there.

        Raises:
            FileExistsError: Something already has that name. It was not touched.
        """
        ...

    def create_folder(self, path: Path) -> None:
        """The folder exists; those that were made here, parents too, have mode 0700 and are synced with their parents."""
        ...

    def size_bytes(self, path: Path) -> int | None:
        """Length of a file; None when there is none. Follows links."""
        ...

    def changed_at_ns(self, path: Path) -> int | None:
        """When the content of a file was last changed, nanoseconds since 1970 UTC; None when there is none."""
        ...

    def append(self, path: Path, data: bytes) -> None:
        """All of `data` stands at the end of the existing file.

        Raises:
            OSError: Nothing was appended: a part that was written has been cut back.
        """
        ...

    def read(self, path: Path) -> bytes:
        """The whole file."""
        ...

    def start(self, path: Path, size_bytes: int) -> bytes:
        """The first bytes of a file, fewer when it is shorter; none when there is no file."""
        ...

    def sync(self, path: Path) -> None:
        """What was written to the file is on the disk."""
        ...

    def sync_folder(self, path: Path) -> None:
        """The names in the folder are on the disk."""
        ...

    def cut(self, path: Path, size_bytes: int) -> None:
        """The file ends there."""
        ...

    def rename(self, old: Path, new: Path) -> None:
        """What was `old` is now `new`, in the place of whatever had that name."""
        ...

    def remove(self, path: Path) -> None:
        """No file has that name; also when there was none."""
        ...

    def remove_folder(self, path: Path) -> None:
        """No folder has that name, and what was in it is gone."""
        ...

    def names(self, folder: Path) -> list[str]:
        """What is in the folder, sorted."""
        ...

    def reserve(self, path: Path, size_bytes: int) -> None:
        """A new private file of that length stands there, its blocks really allocated.

        Raises:
            OSError: There is no such space. No file was left.
        """
        ...

    def free_bytes(self, folder: Path) -> int:
        """Bytes that this user may still write to the disk of `folder`."""
        ...

    def file_system(self, folder: Path) -> str | None:
        """The kind of the file system of `folder`: "ext4", "nfs", … ; None where the system does not tell, as on macOS."""
        ...


class RealFiles:
    """The machine's files."""

    def create(self, path: Path) -> None:
        os.close(_new_file(path))

    def create_folder(self, path: Path) -> None:
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(PRIVATE_FOLDER, exist_ok=True)
            folder.chmod(PRIVATE_FOLDER)
            self.sync_folder(folder.parent)

    def size_bytes(self, path: Path) -> int | None:
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return None

    def changed_at_ns(self, path: Path) -> int | None:
        try:
            return path.stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def append(self, path: Path, data: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            before_bytes = os.fstat(descriptor).st_size
            written_bytes = os.write(descriptor, data)
            if written_bytes != len(data):
                os.ftruncate(descriptor, before_bytes)
                raise OSError(errno.ENOSPC, f"only {written_bytes} of {len(data)} bytes could be written", str(path))
        finally:
            os.close(descriptor)

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def start(self, path: Path, size_bytes: int) -> bytes:
        try:
            with path.open("rb") as file:
                return file.read(size_bytes)
        except FileNotFoundError:
            return b""

    def sync(self, path: Path) -> None:
        _sync(path, os.O_RDONLY)

    def sync_folder(self, path: Path) -> None:
        _sync(path, os.O_RDONLY | os.O_DIRECTORY)

    def cut(self, path: Path, size_bytes: int) -> None:
        os.truncate(path, size_bytes)

    def rename(self, old: Path, new: Path) -> None:
        old.replace(new)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def remove_folder(self, path: Path) -> None:
        shutil.rmtree(path)

    def names(self, folder: Path) -> list[str]:
        return sorted(item.name for item in folder.iterdir())

    def reserve(self, path: Path, size_bytes: int) -> None:
        descriptor = _new_file(path)
        try:
            os.posix_fallocate(descriptor, 0, size_bytes)
        except OSError:
            path.unlink()
            raise
        finally:
            os.close(descriptor)

    def free_bytes(self, folder: Path) -> int:
        disk = os.statvfs(folder)
        return disk.f_bavail * disk.f_frsize

    def file_system(self, folder: Path) -> str | None:
        try:
            mount = mount_of(self.read(MOUNTS).decode("utf-8", "surrogateescape"), os.path.realpath(folder))
        except OSError:
            return None
        return mount.kind if mount is not None else None


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system: its kind, and the options of the mount and of the file system itself."""

    kind: str
    options: frozenset[str]


def mount_of(mounts: str, path: str) -> Mount | None:
    """The file system that a real path is on; None when nothing is mounted above it. PURE.

    Args:
        mounts: As in /proc/self/mountinfo: the point is the fifth field, in which odd bytes are octal; kind, source and options follow a lone dash.
    """
    found: tuple[int, Mount] | None = None
    for line in mounts.splitlines():
        fields = line.split(" ")
        if "-" not in fields[6:-3]:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
        covers = point in {"/", path} or path.startswith(f"{point}/")
        if covers and (found is None or len(point) >= found[0]):  # the later one lies over the earlier one
            kind, _source, options = fields[fields.index("-", 6) + 1 :][:3]
            found = (len(point), Mount(kind, frozenset((*fields[5].split(","), *options.split(",")))))
    return found[1] if found is not None else None


def is_remote(kind: str | None) -> bool:
    """True for a file system that another machine, or a program, has a hand in: its locks and its shared memory are not those of a disk. PURE."""
    return kind is not None and (kind in REMOTE or kind.startswith("fuse."))


def _new_file(path: Path) -> int:
    """A descriptor of a new private file; the mode is set again because a umask may have taken bits away."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
    os.fchmod(descriptor, PRIVATE_FILE)
    return descriptor


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def keep_aside(files: FileOps, path: Path, data: bytes) -> Path:
    """A copy of what is about to be cut off a file lies beside it under a free name, `NAME.cut-1` and so on: whole, or not at all (rule ST-18).

    Raises:
        OSError: There is none.
    """
    number = 1
    while files.size_bytes(copy := path.with_name(f"{path.name}.cut-{number}")) is not None:
        number += 1
    unfinished = copy.with_name(copy.name + ".new")
    files.remove(unfinished)
    files.create(unfinished)
    files.append(unfinished, data)
    files.sync(unfinished)
    files.rename(unfinished, copy)
    return copy


def check_own(path: Path) -> None:
    """Return if the store at `path` is this user's, or there is none yet (rule SA-16). Looks only.

    Links of the system's own (root's) and of this user are followed, others are not: whoever owns a link decides where it leads.

    Raises:
        Refused: It, or a link on the way to it, belongs to somebody else. Nothing was touched.
    """
    user = os.geteuid()
    for part in (*reversed(path.absolute().parents), path.absolute()):
        status = _status(part, follow=False)
        if status is None:
            return
        if stat.S_ISLNK(status.st_mode) and status.st_uid not in {_ROOT, user}:
            raise _refused(path, f"the link {part} on the way to it belongs to the user {status.st_uid}")
    status = _status(path, follow=True)
    if status is not None and status.st_uid != user:
        raise _refused(path, f"it belongs to the user {status.st_uid}")


def _status(path: Path, *, follow: bool) -> os.stat_result | None:
    try:
        return path.stat(follow_symlinks=follow)
    except OSError:
        return None  # what cannot be looked at cannot be opened either, and opening it says why


def _refused(path: Path, why: str) -> Refused:
    return Refused(f"The session {path} was not opened: {why}, not to you. Nothing was touched.", hint="Use a session of your own.")
