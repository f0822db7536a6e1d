"""The files and processes of one conversation: where it stands, what it has seen of files, where long outputs go, how commands run.

Paths are taken as a shell takes them, from the current directory that `cd` moves. What the model knows of a file is remembered as a
digest, so that a stale text is not written over a newer one (CASE-C6); that memory ends with the process, so after a restart a file
counts as unread. It never decides what is allowed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import EnvironmentFailure, InternalError
from pi_durable_tui.harness.ports import Effects, ToolContext
from pi_durable_tui.records.json import clean_text
from pi_durable_tui.records.keys import HidingStream
from pi_durable_tui.tools import files, process, variables
from pi_durable_tui.tools.commands.segments import SegmentWriter
from pi_durable_tui.tools.commands.spec import shell_command
from pi_durable_tui.tools.sandbox.bubblewrap import Wall
from pi_durable_tui.tools.sandbox.sandbox import Sandbox

SPILL_BYTES = 20_000_000  # most that is kept of one command's output
SPILL_FOLDER_BYTES = 200_000_000  # most that is kept of all; the oldest go first
PROBE_TIMEOUT_MS = 10_000
_DIRECTORY_BYTES = 4_096

_T = TypeVar("_T")


class LocalEnvironment:
    """Implements `harness.ports.Environment` on this machine.

    Args:
        cwd: The conversation's directory, absolute.
        state_dir: A folder for this conversation alone, made private (0700): outputs too long for a result, and the directory that
            `cd` led to, so that it survives a restart.
        clock: Measures timeouts and how often a progress line is shown.
        variables: The agent's environment, of which commands get the harmless part.
        keys: Values that are taken out of the output of commands, before anything is done with it (rule SA-17).
        limits: What one command may use.
        sandbox: What commands are put into (rule SA-15); None: nothing.
    """

    def __init__(
        self,
        cwd: str,
        state_dir: Path,
        clock: Clock,
        variables: Mapping[str, str] | None = None,
        *,
        keys: Sequence[str] = (),
        limits: process.CommandLimits = process.CommandLimits(),  # noqa: B008 - frozen
        sandbox: Sandbox | None = None,
    ) -> None:
        self._cwd = cwd
        self._state_dir = state_dir
        self._variables = os.environ if variables is None else variables
        self._keys = tuple(keys)
        self._limits = limits
        self._sandbox = sandbox
        self._current: str | None = None
        self._lost: str | None = None
        self._seen: dict[str, str] = {}
        self.clock = clock

    @property
    def cwd(self) -> str:
        return self._cwd

    # ------------------------------------------------------------------------------------------------------------ places

    def directory(self) -> str:
        """Where commands start and relative paths begin.

        When that directory is gone, it is the nearest folder above that exists (CASE-D7); `take_loss` tells.
        """
        wanted = self._current or self._stored_directory() or self._cwd
        path = Path(wanted)
        while not _can_stand_in(path) and path != path.parent:
            path = path.parent
        self._current = str(path)
        if str(path) != wanted:
            self._lost = wanted
        return str(path)

    def take_loss(self) -> str | None:
        """The directory that was lost since the last call of this, if one was: said once, to the model."""
        self.directory()
        lost, self._lost = self._lost, None
        return lost

    def move_to(self, directory: str) -> bool:
        """Stand in `directory` from now on, also after a restart; False when it is where we stand already or is no directory."""
        if directory == self.directory() or not Path(directory).is_absolute() or not _can_stand_in(Path(directory)):
            return False
        self._current = directory
        with contextlib.suppress(OSError):  # without the note a restart begins at the conversation's directory
            self._private_folder()
            note = self._state_dir / "directory.tmp"
            note.unlink(missing_ok=True)
            descriptor = _create_private(note)
            with os.fdopen(descriptor, "wb") as file:
                file.write(os.fsencode(directory))
            note.replace(self._state_dir / "directory")
        return True

    def resolve(self, path: str) -> str:
        """The absolute path that the model means by `path`; `~` is the home directory. Links and `..` are left to the system.

        Raises:
            EnvironmentFailure: It is empty or holds a NUL.
        """
        path = clean_text(path)
        if not path or "\0" in path:
            raise EnvironmentFailure("The path is empty." if not path else "A path cannot hold a NUL character.")
        if path == "~" or path.startswith("~/"):
            path = self._variables.get("HOME", "~") + path[1:]
        return str(Path(self.directory()) / path)

    def reading(self, path: str) -> Effects:
        """What showing the content of `path`, or of what is below it, touches, links resolved (rule SA-12). A path that cannot be used touches nothing."""
        reads: tuple[str, ...] = ()
        with contextlib.suppress(EnvironmentFailure, ValueError):
            reads = (os.path.realpath(self.resolve(path)),)
        return Effects(root=os.path.realpath(self.cwd), directory=os.path.realpath(self.directory()), reads=reads)

    # ------------------------------------------------------------------------------------------------------------- files

    def saw(self, path: str, digest: str) -> None:
        """The model knows the content of `path` with this digest."""
        self._seen[os.path.realpath(path)] = digest

    def seen(self, path: str) -> str | None:
        """The digest of the content that the model knows of `path`; None when it knows none."""
        return self._seen.get(os.path.realpath(path))

    def forget(self, path: str) -> None:
        """The model no longer knows `path`."""
        self._seen.pop(os.path.realpath(path), None)

    # ---------------------------------------------------------------------------------------------------------- commands

    async def run(
        self,
        command: str,
        *,
        timeout_ms: float,
        on_started: Callable[[process.ProcessFacts], Awaitable[None]],
        on_output: Callable[[bytes], None],
    ) -> process.CommandEnd:
        """Run a shell command where the conversation stands; see `process.run_command`, whose errors and promises hold.

        Raises:
            EnvironmentFailure: It cannot be run at all, or not in the sandbox that it belongs into; nothing ran.
        """
        wall = await self.wall()
        spec = shell_command(command, directory=self.directory(), agent=self._variables, timeout_ms=timeout_ms, limits=self._limits, wall=wall)
        stream = HidingStream(self._keys)
        try:
            return await process.run_command(spec, clock=self.clock, on_started=on_started, on_output=lambda data: on_output(stream.feed(data)))
        except OSError as error:
            raise EnvironmentFailure(f"The command could not be started in {spec.directory}: {error.strerror or error}. Nothing was run.") from error
        finally:
            on_output(stream.finish())

    async def wall(self) -> Wall | None:
        """What stands around commands here, seen to hold; None when nothing is wanted.

        Raises:
            EnvironmentFailure: It is wanted, and does not hold.
        """
        if self._sandbox is None:
            return None
        root, temporary = await in_thread(self._walled_places)
        return await self._sandbox.wall(program=self.program("bwrap"), root=root, temporary=temporary, run=self._printed)

    async def _printed(self, arguments: Sequence[str]) -> str:
        """What one of our own programs printed in a few seconds; "" when it could not be started."""
        output: list[bytes] = []
        with contextlib.suppress(EnvironmentFailure):
            await self.run_program(arguments, timeout_ms=PROBE_TIMEOUT_MS, on_output=output.append)
        return b"".join(output).decode(errors="replace")

    def program(self, name: str) -> str | None:
        """The absolute path of a program of the user's PATH; None when there is none, or only one inside the working directory (CASE-G4)."""
        return process.find_program(name, self._variables.get("PATH", ""), outside=self._cwd)

    async def run_program(self, arguments: Sequence[str], *, timeout_ms: float, on_output: Callable[[bytes], None]) -> process.CommandEnd:
        """Run one of our own programs where the conversation stands, with the environment of commands; see `process.run_command`.

        Raises:
            EnvironmentFailure: It cannot be run at all; nothing ran.
        """

        async def started(_facts: process.ProcessFacts) -> None:
            return None

        spec = process.Command(arguments=arguments, directory=self.directory(), environment=variables.for_commands(self._variables), timeout_ms=timeout_ms)
        try:
            return await process.run_command(spec, clock=self.clock, on_started=started, on_output=on_output)
        except OSError as error:
            raise EnvironmentFailure(f"{arguments[0]} could not be started: {error.strerror or error}.") from error

    def open_spill(self, call_id: str) -> tuple[Path, int]:
        """A new private file for the output of a call, and a descriptor to write it; the oldest ones are removed to keep the folder bounded.

        Raises:
            OSError: It cannot be made; there is then none.
        """
        folder = self._private_folder() / "outputs"
        folder.mkdir(mode=0o700, exist_ok=True)
        outputs = sorted(((entry.stat().st_mtime_ns, entry.stat().st_size, entry) for entry in folder.iterdir()), reverse=True)
        total = SPILL_BYTES
        for _, size, entry in outputs:
            total += size
            if total > SPILL_FOLDER_BYTES:
                entry.unlink()
        path = folder / f"{call_id}.txt"
        path.unlink(missing_ok=True)
        return path, _create_private(path)

    def background_folder(self, number: int) -> Path:
        """Where the output of command `number` of the background lies, if there is any."""
        return self._state_dir / "background" / str(number)

    def segment_writer(self, number: int) -> SegmentWriter:
        """Takes the output of a command of the background. Outputs of ended ones make room, the oldest first, while all are too large."""
        self._sweep_background()
        return SegmentWriter(self.background_folder(number), self._create_segment)

    # ------------------------------------------------------------------------------------------------------------ inside

    def _create_segment(self, path: Path) -> int:
        self._private_folder()
        for folder in (path.parent.parent, path.parent):
            folder.mkdir(mode=0o700, exist_ok=True)
        path.unlink(missing_ok=True)
        return _create_private(path)

    def _sweep_background(self) -> None:
        with contextlib.suppress(OSError):
            folders = sorted((self._state_dir / "background").iterdir(), key=lambda folder: folder.stat().st_mtime_ns, reverse=True)
            total = 0
            for folder in folders:
                outputs = list(folder.iterdir())
                total += sum(output.stat().st_size for output in outputs)
                if total > SPILL_FOLDER_BYTES:
                    for output in outputs:
                        output.unlink(missing_ok=True)
                    folder.rmdir()

    def _private_folder(self) -> Path:
        for folder in (*reversed(self._state_dir.parents), self._state_dir):
            folder.mkdir(mode=0o700, exist_ok=True)  # one by one: mkdir gives this mode to the last one only
        self._state_dir.chmod(0o700)
        return self._state_dir

    def _walled_places(self) -> tuple[str, str]:
        """The work tree and the folder for temporary files, as a sandbox needs them."""
        try:
            temporary = self._private_folder() / "tmp"
            temporary.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise EnvironmentFailure(f"There is no room for the temporary files of the sandbox: {error.strerror or error}. Nothing was run.") from error
        return os.path.realpath(self._cwd), str(temporary)

    def _stored_directory(self) -> str | None:
        with contextlib.suppress(EnvironmentFailure, OSError), files.opened(str(self._state_dir / "directory")) as descriptor:
            return os.fsdecode(os.read(descriptor, _DIRECTORY_BYTES)) or None
        return None


def environment_of(context: ToolContext) -> LocalEnvironment:
    """The environment of a call, as these tools need it.

    Raises:
        InternalError: The harness was put together with another one.
    """
    if not isinstance(context.environment, LocalEnvironment):
        raise InternalError(f"these tools cannot act in a {type(context.environment).__name__}")
    return context.environment


async def in_thread(work: Callable[[], _T]) -> _T:
    """What blocking `work` returns. A cancellation passes once the work has ended, so that none goes on behind an abort."""
    future = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait({future})
        if not future.cancelled():
            future.exception()  # looked at, so that it is not reported as lost
        raise


def _can_stand_in(path: Path) -> bool:
    return os.access(path, os.X_OK) and path.is_dir()


def _create_private(path: Path) -> int:
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
