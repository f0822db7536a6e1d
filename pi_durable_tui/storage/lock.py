"""One writer per store: a lock file beside it, held by flock (rule ST-12).

The kernel decides who owns the store and lets go when the owner dies, however it dies; so a crashed holder never blocks anybody. The
text in the file only says who it is, for messages, and is never believed for more. Paths are resolved first: a link and the
store itself have one lock. The file stays after the release: removing it would let two processes lock two files of one name.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from pi_durable_tui.errors import EnvironmentFailure, StoreLocked

_TEXT_MOST_BYTES = 4096
_NAME_ATTEMPTS = 20
_NAME_PAUSE_S = 0.005


class Holder(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Who holds a store. `start_ticks` and `boot_id` tell a process from a later one with its number; None where the system has none."""

    pid: int
    host: str
    since_ms: int
    boot_id: str | None = None
    start_ticks: int | None = None

    def __str__(self) -> str:
        """As in messages."""
        try:
            since = datetime.fromtimestamp(self.since_ms / 1000, tz=UTC).strftime("since %Y-%m-%d %H:%M UTC")
        except (ValueError, OverflowError, OSError):
            since = "since an unknown time"
        return f"pid {self.pid} on {self.host}, {since}"


class OwnerLock:
    """A lock that is held. Made by `acquire` only."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Others may have the store now. May be called again."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        try:
            os.ftruncate(descriptor, 0)
        finally:
            os.close(descriptor)


def lock_path(store: Path) -> Path:
    """The lock file of a store, the same for every path that leads to it."""
    real = Path(os.path.realpath(store))
    return real.with_name(real.name + ".lock")


def acquire(store: Path, *, since_ms: int) -> OwnerLock:
    """This process owns the store until it releases the lock or ends.

    Args:
        since_ms: Now, in milliseconds since 1970 UTC, for the message that others get.

    Raises:
        StoreLocked: Another owner is alive; named as far as its text can be read. Nothing was changed.
        EnvironmentFailure: The lock file cannot be made or locked. The store was not touched.
    """
    path = lock_path(store)
    try:
        descriptor = _locked(path)
    except BlockingIOError:
        raise StoreLocked(str(store), holder=_holder_text(path)) from None
    except OSError as error:
        text = f"The lock file {path} cannot be used: {error.strerror or error}. The session was not opened."
        raise EnvironmentFailure(text, hint="Make its folder writable. To look at the session needs no lock: pidurable log.") from error
    text = msgspec.json.encode(this_process(since_ms=since_ms))
    # Who holds it is only for messages: a full disk, which makes the write short or fail, must not keep a session from being opened.
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        if os.pwrite(descriptor, text, 0) != len(text):
            os.ftruncate(descriptor, 0)
    return OwnerLock(descriptor)


def holder(store: Path) -> Holder | None:
    """Who holds the store as far as its lock file and the system tell; None: nobody, or one who could not write his name.

    Only reads, and takes no lock itself, so that it keeps nobody out. Whoever wants to own the store must `acquire` it all the same.
    """
    found = _read_holder(lock_path(store))
    return None if found is None or _is_over(found) else found


def this_process(*, since_ms: int) -> Holder:
    """What others are told about this process."""
    return Holder(pid=os.getpid(), host=socket.gethostname(), since_ms=since_ms, boot_id=_boot_id(), start_ticks=_start_ticks(os.getpid()))


def _locked(path: Path) -> int:
    """A descriptor of the file that has that name, locked.

    Raises:
        BlockingIOError: Somebody else has it.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fchmod(descriptor, 0o600)
            # Somebody may have removed or replaced the file in between: a lock on a file without that name keeps nobody out.
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _holder_text(path: Path) -> str:
    """Who holds a lock that was found held. The holder may just be about to write its name over that of a dead one: it gets a moment."""
    for _attempt in range(_NAME_ATTEMPTS):
        found = _read_holder(path)
        if found is not None and not _is_over(found):
            return str(found)
        time.sleep(_NAME_PAUSE_S)
    return "it did not say which"


def _read_holder(path: Path) -> Holder | None:
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_TEXT_MOST_BYTES), type=Holder)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _is_over(holder: Holder) -> bool:
    """True when the named process certainly runs no more; False also where that cannot be told."""
    if holder.host != socket.gethostname() or holder.boot_id is None or holder.start_ticks is None:
        return False
    return holder.boot_id != _boot_id() or holder.start_ticks != _start_ticks(holder.pid)


def _boot_id() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None


def _start_ticks(pid: int) -> int | None:
    """Start of a process in clock ticks since boot: the 22nd field, counted after the name, which may hold anything. None: it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[19])
    except (OSError, ValueError, IndexError):
        return None
