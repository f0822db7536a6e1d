"""The door for processes: starts one command under its reaper, streams its output, and leaves nothing of it behind (SA-11, PR-7).

A command starts in its own session, without terminal, input or our descriptors, and only after the facts about it were stored. It
never decides what may run; it never returns, or lets a cancellation pass, while a descendant of the command is known to live.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import EnvironmentFailure, InternalError
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.tools import reaper

READ_BYTES = 65_536
JOIN_LIMIT_S = 4.0  # longer than the reaper's own limits together
DRAIN_LIMIT_S = 0.25  # what a foreign holder of the output pipe may cost
KILL_CHECKS, KILL_CHECK_S = 100, 0.01
COMMAND_LIMIT_BYTES = 120_000  # one argument of a process holds 128 KiB on Linux

# Runs the command text, and reports the directory it ends in on a descriptor that what it starts does not get. `unset` comes before
# the command so that no variable of ours is seen by it. All of it is one line: errors name the lines of the command itself.
SHELL_SCRIPT = (
    f"trap '{{ pwd -P >&{reaper.DIRECTORY_FD}; }} 2>/dev/null' EXIT; __command=$1; shift; eval \"unset __command; $__command\" {reaper.DIRECTORY_FD}>&-"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFacts:
    """Which process it was, for one who looks after a crash. The start time is in the kernel's ticks; None where it is unknown."""

    pid: int
    start_time: int | None
    boot_id: str | None

    def to_json(self) -> JsonObject:
        """The form that is stored beside an intent (rule TO-8)."""
        return {"pid": self.pid, "startTime": self.start_time, "bootId": self.boot_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLimits:
    """What one command may use (rules SA-11, SA-14): far more than builds and tests need, and less than would take the machine down.

    Attributes:
        processes: At once, all that it started together; more than that end it.
        file_bytes: In one file that it writes.
        open_files: In one process.
    """

    processes: int = 4_096
    file_bytes: int = 100_000_000_000
    open_files: int = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run. `arguments[0]` is an absolute path; `environment` is all that the command gets; `timeout_ms` may be infinite."""

    arguments: Sequence[str]
    directory: str
    environment: Mapping[str, str]
    timeout_ms: float
    limits: CommandLimits = CommandLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnd:
    """How a command ended.

    Attributes:
        exit_code: None when a signal ended it, or when its reaper was killed.
        signal: The number of that signal.
        timed_out: It was ended because its time was up.
        crowded: It was ended because there were too many processes of it.
        directory: The working directory of the shell at its end; None when it did not say.
        background_ended: How many processes it left behind; they were ended.
        survivors: How many of them could not be ended (another user's, or stuck in the kernel).
    """

    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    crowded: bool = False
    directory: str | None = None
    background_ended: int = 0
    survivors: int = 0


def shell_arguments(shell: str, command: str) -> list[str]:
    """What to execute so that `shell` runs `command` and reports the directory it ends in."""
    options = ["--noprofile", "--norc"] if Path(shell).name == "bash" else []
    return [shell, *options, "-c", SHELL_SCRIPT, Path(shell).name, command]


def find_program(name: str, path: str, *, outside: str) -> str | None:
    """The absolute path of a program of the search path `path`; None when there is none, or only one that lies in the folder `outside` (CASE-G4).

    Links are left in it: some programs do what the name says by which they are called.
    """
    avoided = os.path.realpath(outside)
    for folder in path.split(os.pathsep):
        found = Path(folder, name)
        is_foreign = os.path.commonpath([avoided, os.path.realpath(found)]) != avoided
        if found.is_absolute() and is_foreign and os.access(found, os.X_OK) and found.is_file():
            return str(found)
    return None


def boot_id() -> str | None:
    """Names this boot of the machine; None where the system has no such name."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def is_running(facts: ProcessFacts) -> bool:
    """Whether that very process still lives: same boot, same pid, same start time. False where that cannot be told."""
    fields = reaper.stat_fields(facts.pid)
    return facts.boot_id == boot_id() and bool(fields) and fields[0] not in {b"Z", b"X"} and int(fields[19]) == facts.start_time


def left_of(facts: ProcessFacts) -> tuple[int, ...]:
    """The living processes of a command whose agent and reaper are gone: it itself, and what is in its session or group.

    The number of a process, a session or a group is not given away while anything bears it, so what bears it now and is not younger than
    another process of that number belongs to the command (rule PR-7). Empty on another boot, and where processes cannot be listed.
    """
    if facts.start_time is None or facts.boot_id != boot_id():
        return ()
    leader = reaper.stat_fields(facts.pid)
    if leader and int(leader[19]) != facts.start_time:
        return ()  # the number was given away: nothing of the command is left
    return tuple(pid for pid in _all_pids() if _belongs(reaper.stat_fields(pid), pid, facts))


async def end_left_of(facts: ProcessFacts) -> tuple[int, ...]:
    """Kill what is left of a command until nothing is; returns whom it found. For one who looks after a crash."""
    found: set[int] = set()
    for _ in range(KILL_CHECKS):
        alive = left_of(facts)
        if not alive:
            break
        found |= set(alive)
        for pid in alive:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(KILL_CHECK_S)
    return tuple(sorted(found))


def _all_pids() -> list[int]:
    try:
        return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]
    except OSError:
        return []


def _belongs(fields: Sequence[bytes], pid: int, facts: ProcessFacts) -> bool:
    """From what /proc says of a process. PURE."""
    if not fields or fields[0] in {b"Z", b"X"} or facts.start_time is None or int(fields[19]) < facts.start_time:
        return False
    return facts.pid in {pid, int(fields[2]), int(fields[3])}


async def run_command(
    command: Command,
    *,
    clock: Clock,
    on_started: Callable[[ProcessFacts], Awaitable[None]],
    on_output: Callable[[bytes], None],
) -> CommandEnd:
    """Run a command to the end of its last descendant.

    Args:
        command: What, where, with which environment, for how long.
        clock: Measures the timeout.
        on_started: Awaited before the command is let go, so that nothing runs before its facts are stored.
        on_output: Gets output and errors, merged, as they come; called on the event loop, must be quick.

    Returns:
        How it ended. All output was delivered, except what an unkillable survivor writes later.

    Raises:
        FileNotFoundError, NotADirectoryError, PermissionError: The directory or the interpreter cannot be used; nothing ran.
        EnvironmentFailure: No process could be started; nothing ran.
        asyncio.CancelledError: After every descendant was ended.
    """
    running = Running(command, on_output)
    try:
        await on_started(await running.started)
        running.send(b"g")
        timers = {asyncio.ensure_future(clock.sleep_ms(command.timeout_ms))} if math.isfinite(command.timeout_ms) else set[asyncio.Future[None]]()
        try:
            await asyncio.wait({*timers, running.exited}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for timer in timers:
                timer.cancel()
        timed_out = not running.exited.done()
        if timed_out:
            running.send(b"k")
        await running.join()
        return running.end(timed_out=timed_out)
    except BaseException:
        # REMINDER: BaseException, because a cancelled call must not leave a process behind either.
        running.send(b"k")
        await running.join()
        raise
    finally:
        running.close()


class Running:
    """The agent's end of one reaper: a socket, an output pipe, and what came over them.

    Args:
        on_output: Gets output and errors, merged; only the errors where the output goes elsewhere.
        pipes: Descriptors for the command's input and output; without, there is no input.
    """

    def __init__(self, command: Command, on_output: Callable[[bytes], None], *, pipes: tuple[int, int] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_output = on_output
        self._lines = b""
        self._status: int | None = None
        self._directory: str | None = None
        self._counts = (0, 0)
        self._crowded = False
        self._facts: ProcessFacts | None = None
        self._orderly = False
        self.started: asyncio.Future[ProcessFacts] = self._loop.create_future()
        self.exited: asyncio.Future[None] = self._loop.create_future()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._drained: asyncio.Future[None] = self._loop.create_future()
        self._control, theirs = socket.socketpair()
        self._output, write_end = os.pipe()
        try:
            self._child = _spawn(command, theirs.fileno(), write_end, pipes)
        except BaseException:
            self._control.close()
            os.close(self._output)
            raise
        finally:
            theirs.close()
            os.close(write_end)
        self._control.setblocking(False)  # noqa: FBT003
        os.set_blocking(self._output, False)
        self._loop.add_reader(self._control.fileno(), self._hear)
        self._loop.add_reader(self._output, self._read)

    def send(self, word: bytes) -> None:
        """Tell the reaper: `g` lets the command go, `k` ends it."""
        with contextlib.suppress(OSError):
            self._control.send(word)

    async def join(self) -> None:
        """Wait until the reaper is gone and its output was read."""
        await asyncio.wait({self._gone}, timeout=JOIN_LIMIT_S)
        if not self._orderly:
            await self._kill_group()
        await asyncio.wait({self._drained}, timeout=DRAIN_LIMIT_S)

    def end(self, *, timed_out: bool) -> CommandEnd:
        """How it ended, as far as the reaper could tell."""
        status = self._status
        return CommandEnd(
            exit_code=status if status is not None and status >= 0 else None,
            signal=-status if status is not None and status < 0 else None,
            timed_out=timed_out,
            crowded=self._crowded,
            directory=self._directory,
            background_ended=0 if timed_out or self._crowded else self._counts[0],
            survivors=self._counts[1],
        )

    def close(self) -> None:
        """Give everything back."""
        self._loop.remove_reader(self._control.fileno())
        self._stop_reading()
        self._control.close()  # ends the command if it still runs
        if self._gone.done():
            self._child.wait()
        else:
            _abandon(self._child)

    async def _kill_group(self) -> None:
        """The reaper was killed, or is stuck: kill what can be reached without it, and wait until it is gone."""
        for _ in range(KILL_CHECKS):
            if self._facts is None or not is_running(self._facts):
                return
            with contextlib.suppress(OSError):
                os.killpg(self._facts.pid, signal.SIGKILL)
            await asyncio.sleep(KILL_CHECK_S)

    def _hear(self) -> None:
        try:
            data = self._control.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *lines, self._lines = (self._lines + data).split(b"\n")
        for line in lines:
            self._take(line.decode("ascii").split(" "))
        if not data:
            self._loop.remove_reader(self._control.fileno())
            if not self.started.done():
                self.started.set_exception(EnvironmentFailure("The command could not be started: its reaper ended at once. Nothing was run."))
            if not self.exited.done():
                self.exited.set_result(None)
            self._gone.set_result(None)

    def _take(self, words: list[str]) -> None:
        match words:
            case ["started", pid, start]:
                self._facts = ProcessFacts(pid=int(pid), start_time=int(start) or None, boot_id=boot_id())
                if not self.started.done():
                    self.started.set_result(self._facts)
            case ["exited", status]:
                self._status = int(status)
                if not self.exited.done():
                    self.exited.set_result(None)
            case ["directory", name]:
                self._directory = os.fsdecode(bytes.fromhex(name.rstrip("-"))).removesuffix("\n") or None
            case ["crowded", _count]:
                self._crowded = True
                if not self.exited.done():
                    self.exited.set_result(None)
            case ["ended", count, left]:
                self._counts = (int(count), int(left))
                self._orderly = True
            case _:
                raise InternalError(f"the reaper of a command said {words!r}")

    def _read(self) -> None:
        try:
            data = os.read(self._output, READ_BYTES)
        except BlockingIOError:
            return
        if data:
            self._on_output(data)
        else:
            self._stop_reading()

    def _stop_reading(self) -> None:
        if not self._drained.done():
            self._loop.remove_reader(self._output)
            os.close(self._output)
            self._drained.set_result(None)


def _spawn(command: Command, control: int, output: int, pipes: tuple[int, int] | None) -> subprocess.Popen[bytes]:
    """Start the reaper, isolated: no site packages, nothing imported from the working directory (rule SA-8)."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", reaper.__file__, str(control), str(os.getpid()), *_words(command.limits), *command.arguments],
        stdin=subprocess.DEVNULL if pipes is None else pipes[0],
        stdout=output if pipes is None else pipes[1],
        stderr=output,
        cwd=command.directory,
        env=dict(command.environment),
        pass_fds=(control,),
        start_new_session=True,
    )


def _words(limits: CommandLimits) -> tuple[str, str, str]:
    """The limits in the order in which the reaper reads them. PURE."""
    return str(limits.processes), str(limits.file_bytes), str(limits.open_files)


def _abandon(child: subprocess.Popen[bytes]) -> None:
    """Kill a reaper that did not end in time, so that nobody waits for it."""
    child.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=1)
