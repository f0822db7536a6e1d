"""Decides where data and settings live, and is the command line's door to files (rules CL-1, CL-3, CL-4, SA-16).

One folder per working directory, named by the hash of the directory's real path as bytes, so that no two names meet, whatever
is in them (CASE-H1). A symlink and the path it stands for are the same directory. Inside: `cwd` (the directory's name, as
bytes) and the sessions `session.sqlite`, `session-2.sqlite`, … , or `session-2.jsonl` where it is a folder of lines. Nothing here
reads or writes inside the working directory.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from pi_durable_tui.errors import BadRequest, ConfigError, EnvironmentFailure, Refused
from pi_durable_tui.storage.kind import STORE_KINDS, StoreKind

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600
MAX_SESSIONS = 1_000
_SESSION_NAME = re.compile(r"session(?:-([1-9][0-9]{0,3}))?\.(?:sqlite|jsonl)")


class Folders(Struct, frozen=True, kw_only=True):
    """The two roots. Neither needs to exist yet."""

    data: Path
    config: Path


class Place(Struct, frozen=True, kw_only=True):
    """A working directory and the folder of its sessions.

    Attributes:
        directory: The real path, symlinks resolved.
        folder: Where its sessions are; may not exist yet.
    """

    directory: Path
    folder: Path

    @property
    def cwd_file(self) -> Path:
        """Names the directory, for people and against mix-ups."""
        return self.folder / "cwd"


def folders(environ: Mapping[str, str]) -> Folders:
    """The roots for this user: PIDURABLE_DATA_DIR and PIDURABLE_CONFIG_DIR if set, else the platform's (rule CL-4).

    Raises:
        ConfigError: An override is not an absolute path. It would point elsewhere in every directory.
    """
    import platformdirs  # noqa: PLC0415 - not needed for --version and --help

    return Folders(
        data=_override(environ, "PIDURABLE_DATA_DIR") or platformdirs.user_data_path("pidurable", appauthor=False),
        config=_override(environ, "PIDURABLE_CONFIG_DIR") or platformdirs.user_config_path("pidurable", appauthor=False),
    )


def _override(environ: Mapping[str, str], name: str) -> Path | None:
    text = environ.get(name, "")
    if not text:
        return None
    if not os.path.isabs(text):  # noqa: PTH117 - a str may hold bytes that are no UTF-8
        raise ConfigError(f"{name} is {text!r}, which is not an absolute path. Nothing was started.", hint="Set it to a path that starts with /.")
    return Path(text)


def directory_hash(directory: Path) -> str:
    """The first 24 hex digits of the SHA-256 of the path's bytes (rule CL-1)."""
    return hashlib.sha256(os.fsencode(directory)).hexdigest()[:24]


def place(cwd: str | None, data: Path) -> Place:
    """The place of `cwd` (None: the process's own), symlinks resolved.

    Raises:
        BadRequest: It does not exist or is no directory. Nothing was changed.
    """
    try:
        directory = Path(os.path.realpath(cwd if cwd is not None else Path.cwd(), strict=True))
    except (OSError, ValueError) as error:
        shown = "The current directory" if cwd is None else f"The directory {cwd!r}"
        hint = "Go to a directory that exists, or name one with --cwd."
        raise BadRequest(f"{shown} cannot be used: {_reason(error)}. Nothing was started.", hint=hint) from error
    if not directory.is_dir():
        raise BadRequest(f"{cwd!r} is not a directory. Nothing was started.", hint="Name a directory with --cwd.")
    return Place(directory=directory, folder=data / directory_hash(directory))


def prepare(where: Place) -> None:
    """Make the folder (0700 whatever the umask) and its `cwd` file (0600); called before a session is written there.

    Raises:
        Refused: The folder belongs to another directory or to another user. Nothing was changed.
        EnvironmentFailure: The folder cannot be made or read.
    """
    try:
        _private_folder(where.folder.parent)
        _private_folder(where.folder)
        check(where)
        if not where.cwd_file.exists():
            write_whole(where.cwd_file, os.fsencode(where.directory))
    except OSError as error:
        raise EnvironmentFailure(
            f"The folder {str(where.folder)!r} for the sessions of {str(where.directory)!r} cannot be used: {_reason(error)}. Nothing was started.",
            hint="Make room or rights there, or set PIDURABLE_DATA_DIR to another folder.",
        ) from error


def check(where: Place) -> None:
    """Return if the folder may be read as that of the directory (rule CL-1); one that does not exist may.

    Raises:
        Refused: It names another directory, or belongs to another user.
    """
    try:
        owner = where.folder.lstat().st_uid
        if owner != os.geteuid():
            hint = "Set PIDURABLE_DATA_DIR to a folder of yours."
            raise Refused(f"The folder {str(where.folder)!r} belongs to the user {owner}, not to you. Nothing was changed.", hint=hint)
        named = where.cwd_file.read_bytes()
    except FileNotFoundError:
        return
    if named != os.fsencode(where.directory):
        raise Refused(
            f"The folder {str(where.folder)!r} holds the sessions of {os.fsdecode(named)!r}, not those of {str(where.directory)!r}. Nothing was changed.",
            hint="Move that folder away: its sessions stay readable with --cwd once it is back.",
        )


def tighten(where: Place) -> None:
    """Nobody else may enter the folder, if there is one: it may have been made by hand, or by a copy that lost the mode."""
    with contextlib.suppress(OSError):
        if where.folder.stat().st_mode & 0o077:
            where.folder.chmod(PRIVATE_FOLDER)


def moved_from(where: Place) -> tuple[Path, ...]:
    """Directories of the same last name that had sessions and are gone: this one may be one of them, moved. At most 1,000 are looked at."""
    found: list[Path] = []
    try:
        candidates = sorted(where.folder.parent.iterdir())[:MAX_SESSIONS]
    except OSError:
        return ()
    for folder in candidates:
        try:
            named = Path(os.fsdecode((folder / "cwd").read_bytes()))
        except OSError:
            continue
        if named.name == where.directory.name and named != where.directory and not named.exists():
            found.append(named)
    return tuple(found)


def session_path(where: Place, number: int, kind: StoreKind) -> Path:
    """The store of session `number`, from 1, if it is of that kind."""
    return where.folder / (f"session.{kind}" if number == 1 else f"session-{number}.{kind}")


def session_files(where: Place, number: int) -> Path:
    """The folder beside session `number` that holds full outputs, kept versions of files, logs of servers; a folder for each conversation."""
    return where.folder / f"session-{number}.files"


def session_kinds(where: Place, number: int) -> tuple[StoreKind, ...]:
    """The kinds in which session `number` is there: none, one, or both when its conversion was cut off."""
    return tuple(kind for kind in STORE_KINDS if session_path(where, number, kind).exists())


def session_numbers(where: Place) -> tuple[int, ...]:
    """The numbers of the sessions that exist, growing; empty when there are none.

    Raises:
        Refused: The folder belongs to another directory or user.
    """
    check(where)
    try:
        names = [item.name for item in where.folder.iterdir()]
    except OSError:
        return ()
    matches = (_SESSION_NAME.fullmatch(name) for name in names)
    return tuple(sorted({int(match[1] or 1) for match in matches if match}))


def read_text(path: Path, *, limit_bytes: int) -> str | None:
    """The text of a settings file; None when it does not exist.

    Raises:
        ConfigError: It cannot be read, is no regular file, is longer than `limit_bytes` or is not UTF-8.
    """
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigError(f"The settings {str(path)!r} are not a regular file. Nothing was started.", hint="Put a JSON file there, or remove it.")
            content = file.read(limit_bytes + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        hint = "Make the file readable, or remove it."
        raise ConfigError(f"The settings {str(path)!r} cannot be read: {_reason(error)}. Nothing was started.", hint=hint) from error
    if len(content) > limit_bytes:
        raise ConfigError(f"The settings {str(path)!r} are longer than {limit_bytes} bytes. Nothing was started.", hint="They are a small file.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"The settings {str(path)!r} are not UTF-8 text. Nothing was started.", hint="Save the file as UTF-8.") from error


def write_whole(path: Path, content: bytes) -> None:
    """Replace the file by `content`, private, all of it or nothing. A link stays one: the file that it leads to is replaced."""
    path = Path(os.path.realpath(path))
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(name, PRIVATE_FILE)  # noqa: PTH101
        os.replace(name, path)  # noqa: PTH105
    except BaseException:
        os.unlink(name)  # noqa: PTH108
        raise


def write_out(path: Path, content: bytes) -> None:
    """Write where a person says: whole where a file is or may be, else into the pipe or device that is there, which stays what it is.

    Raises:
        OSError: It could not be written. Of a file nothing is left then.
    """
    if path.is_file() or path.is_dir() or not path.exists():
        write_whole(path, content)
        return
    with open(path, "wb", opener=_open_without_waiting) as file:
        os.set_blocking(file.fileno(), True)
        file.write(content)


def write_setting_file(path: Path, content: bytes) -> None:
    """Replace a file of the user's settings, whole and private, with its folder if that is missing.

    Raises:
        EnvironmentFailure: It could not be written. What was there is there.
    """
    try:
        _private_folder(path.parent)
        write_whole(path, content)
    except OSError as error:
        raise EnvironmentFailure(f"The settings {str(path)!r} could not be written: {_reason(error)}. They are as they were.") from error


def _open_without_waiting(path: str, flags: int) -> int:
    """A named pipe put in the place of a file must not hang the start."""
    return os.open(path, flags | os.O_NONBLOCK)


def _private_folder(folder: Path) -> None:
    """The folder exists; if it had to be made, only its owner may enter, whatever the umask."""
    if folder.is_dir():
        return
    missing = [folder, *folder.parents]
    for item in reversed([item for item in missing if not item.exists()]):
        item.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        item.chmod(PRIVATE_FOLDER)


def _reason(error: OSError | ValueError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
