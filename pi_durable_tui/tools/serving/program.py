"""Programs that are talked to over their input and output for as long as they live, each under a reaper of its own (rules SA-11, PR-7).

What holds for commands holds here: an own session, no terminal, no descriptors of ours, nothing left behind when the agent dies. It
never decides what may be started, and knows nothing of what is said.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.records.keys import HidingStream
from pi_durable_tui.tools import process, variables

READ_BYTES = 65_536
STOP_GRACE_S = 1.0  # from the end of its input until it is ended
LOG_BYTES = 1_000_000
FOREVER_MS = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to start.

    Attributes:
        name: As the user wrote it: a path, or a name of the search path.
        extra: Variables besides those that every command gets; they win.
        agent: The environment of the agent, of which the harmless part is passed on.
    """

    name: str
    arguments: Sequence[str]
    directory: str
    extra: Mapping[str, str]
    agent: Mapping[str, str]

    def command(self) -> process.Command:
        """What is executed.

        Raises:
            EnvironmentFailure: There is no such program.
        """
        environment = {**variables.for_commands(self.agent), **self.extra}
        path = self._path(environment)
        if path is None:
            raise EnvironmentFailure(f"There is no program {self.name!r}.", hint="Give its absolute path, or install it.")
        return process.Command(arguments=[path, *self.arguments], directory=self.directory, environment=environment, timeout_ms=FOREVER_MS)

    def is_there(self) -> bool:
        """Whether there is something to start."""
        path = self._path({**variables.for_commands(self.agent), **self.extra})
        return path is not None and os.access(path, os.X_OK)

    def _path(self, environment: Mapping[str, str]) -> str | None:
        if self.name.startswith("~/"):
            return environment.get("HOME", "~") + self.name[1:]
        if "/" in self.name:
            return self.name if self.name.startswith("/") else f"{self.directory.rstrip('/')}/{self.name}"
        return process.find_program(self.name, environment["PATH"], outside=self.directory)


class ServerProcess:
    """One such program; made by `start`, and ended by `stop`."""

    def __init__(self, running: process.Running, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, closing: contextlib.ExitStack) -> None:
        self._running = running
        self._reader, self._writer = reader, writer
        self._closing = closing

    @classmethod
    async def start(cls, program: Program, *, on_errors: Callable[[bytes], None]) -> ServerProcess:
        """The program, running.

        Args:
            on_errors: Gets what it writes to its error output; called on the event loop, must be quick.

        Raises:
            EnvironmentFailure: It could not be started.
        """
        command = program.command()
        with contextlib.ExitStack() as stack:
            ours_in, theirs_in = _pair(stack)
            ours_out, theirs_out = _pair(stack)
            try:
                running = process.Running(command, on_errors, pipes=(theirs_in.fileno(), theirs_out.fileno()))
            except OSError as error:
                raise EnvironmentFailure(f"{program.name} could not be started in {program.directory}: {error.strerror or error}.") from error
            stack.callback(running.close)
            theirs_in.close()
            theirs_out.close()
            await running.started
            reader, one = await asyncio.open_unix_connection(sock=ours_out)
            stack.callback(one.close)
            _, writer = await asyncio.open_unix_connection(sock=ours_in)
            stack.callback(writer.close)
            running.send(b"g")
            return cls(running, reader, writer, stack.pop_all())

    async def read(self) -> bytes:
        """Some of its output as it comes; b"" once it has ended or closed it."""
        try:
            return await self._reader.read(READ_BYTES)
        except ConnectionError:
            return b""

    async def write(self, data: bytes) -> None:
        """Give it input; waits while it does not read.

        Raises:
            OSError: It has ended.
        """
        self._writer.write(data)
        await self._writer.drain()

    async def stop(self) -> None:
        """Close its input, give it a moment to end by itself, then end it and everything it has started."""
        self._writer.close()
        await asyncio.wait({self._running.exited}, timeout=STOP_GRACE_S)
        self._running.send(b"k")
        await self._running.join()
        self._closing.close()


class ServerLog:
    """Takes what a program writes to its error output into a private file of bounded size. Never raises: a log is not worth a call.

    Args:
        keys: Values that do not get into it (rule SA-17).
    """

    def __init__(self, path: Path, keys: Sequence[str]) -> None:
        self._path = path
        self._stream = HidingStream(keys)

    def __call__(self, data: bytes) -> None:
        """Add some more; a file that is full is begun anew."""
        data = self._stream.feed(data)
        with contextlib.suppress(OSError):
            self._path.parent.parent.mkdir(mode=0o700, exist_ok=True)
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            descriptor = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                if os.fstat(descriptor).st_size + len(data) > LOG_BYTES:
                    os.ftruncate(descriptor, 0)
                os.write(descriptor, data[-LOG_BYTES:])
            finally:
                os.close(descriptor)


def _pair(stack: contextlib.ExitStack) -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    stack.callback(ours.close)
    stack.callback(theirs.close)
    return ours, theirs
