"""The little process between the agent and one command: it ends every descendant of the command when the agent dies (SA-11, PR-7).

Run as a file by an isolated interpreter, so it imports little and nothing of this package. It adopts orphans (a Linux subreaper), so
that `setsid`, double forks and `nohup` do not escape it, and it learns of the agent's death from a socket that closes and a pidfd.

Words on the socket, one per line.  To the agent: `started PID START`, `exited STATUS` (negative: minus the signal), `directory HEX`,
`crowded COUNT` (too many processes), `ended COUNT LEFT`.  From the agent, one byte: `g` lets the command go, `k` ends it. The end of the
socket means `k`.

It must never outlive its descendants by choice, and never signal a process that is not one of them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
DIRECTORY_FD = 3  # where the shell writes its last working directory; closed for what it starts
OOM_SCORE = b"500"  # when memory runs out, the command goes before the agent
LINGER_MS = 100  # what the shell left behind may end by itself
TERM_GRACE_MS = 400
KILL_LIMIT_MS = 2_000
TICK_MS = 10
IDLE_TICK_MS = 1_000  # how often orphans are collected while the command runs
LINUX = sys.platform == "linux"


def prctl(option: int, value: int) -> None:
    """Set a process attribute on Linux; nothing elsewhere."""
    if LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def stat_fields(pid: int) -> list[bytes]:
    """What /proc says of a process, from its state on; [] when it is gone or there is no /proc."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib would double the start-up time
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def descendants() -> list[int]:
    """Living descendants of this process (zombies left out), parents first. Only Linux can tell."""
    children: dict[int, list[tuple[int, bool]]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - as above
        if name.isdigit() and (fields := stat_fields(int(name))):
            children.setdefault(int(fields[1]), []).append((int(name), fields[0] in {b"Z", b"X"}))
    found: list[int] = []
    front = [os.getpid()]
    while front:
        for pid, dead in children.get(front.pop(), []):
            front.append(pid)
            if not dead:
                found.append(pid)
    return found


def count_descendants(limit: int) -> int:
    """How many descendants there are, counted no further than a little beyond `limit`; 0 where the kernel does not list children.

    Unlike `descendants` this reads no other process than those, so it can be asked every second.
    """
    front, count = [os.getpid()], 0
    while front and count <= limit:
        parent = front.pop()
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{parent}/task"):  # noqa: PTH208 - as above
                with open(f"/proc/{parent}/task/{thread}/children", "rb") as file:  # noqa: PTH123 - as above
                    children = [int(pid) for pid in file.read().split()]
                front += children
                count += len(children)
    return count


def threads_of(user: int) -> int:
    """How many threads of a user there are, which is what the kernel counts against its limit on processes."""
    count = 0
    for name in os.listdir("/proc"):  # noqa: PTH208 - as above
        with contextlib.suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == user and (fields := stat_fields(int(name))):  # noqa: PTH116 - as above
                count += int(fields[17])
    return count


def allowed_processes(limit: int, user: int) -> int | None:
    """What the kernel shall hold a command to: the second line, where children multiply faster than they are counted.

    It counts all processes of the user, so those that run already come on top; the agent has room left when the command has none. None
    for root, of whom it counts nothing.
    """
    return limit + threads_of(user) if LINUX and user != 0 else None


def lower(kind: int, limit: int) -> None:
    """Let the command, and what it starts, have no more of this than `limit`, or than we have ourselves."""
    hard = resource.getrlimit(kind)[1]
    value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(kind, (value, value))


class Reaper:
    """One command, from its fork to the end of its last descendant.

    Args:
        control: The socket to the agent.
        agent_pid: Whose death ends the command.
        limits: How many processes there may be at once, how large a file, how many open files in a process.
        arguments: What to execute: an absolute path and its arguments.
    """

    def __init__(self, control: int, agent_pid: int, limits: tuple[int, int, int], arguments: list[str]) -> None:
        self.control = control
        self.agent_pid = agent_pid
        self.processes, self.file_bytes, self.open_files = limits
        self.arguments = arguments
        self.shell = 0
        self.status: int | None = None

    def run(self) -> None:
        """Start the command, wait for its end or for the order to end it, end what is left of it, and report."""
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # a command that signals "everything" must not end what watches it
        os.set_inheritable(self.control, False)  # noqa: FBT003
        gate_read, gate_write = os.pipe()
        directory_read, directory_write = os.pipe()
        allowed = allowed_processes(self.processes, os.getuid())
        self.shell = os.fork()
        if self.shell == 0:
            os.close(gate_write)
            self.become_command(gate_read, directory_write, allowed)
        os.close(gate_read)
        os.close(directory_write)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)  # the output must end when the command's descendants end
        os.dup2(null, 2)
        fields = stat_fields(self.shell)
        self.say(f"started {self.shell} {int(fields[19]) if fields else 0}")
        ordered = self.wait_for_end(gate_write)
        os.set_blocking(directory_read, False)
        with contextlib.suppress(OSError):
            self.say(f"directory {os.read(directory_read, 65_536).hex() or '-'}")
        if not ordered:
            self.wait_for_children(LINGER_MS)
        count = self.end_descendants()
        left = 0 if self.childless() else len(self.targets())
        if self.status is not None and ordered:
            self.say(f"exited {self.status}")
        self.say(f"ended {count} {left}")

    def become_command(self, gate: int, directory: int, allowed_processes: int | None) -> None:
        """In the child: wait at the gate, then become the command. Never returns."""
        try:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # second line, should the reaper itself be killed
            os.setsid()
            for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            lower(resource.RLIMIT_FSIZE, self.file_bytes)
            lower(resource.RLIMIT_NOFILE, self.open_files)
            if allowed_processes is not None:
                lower(resource.RLIMIT_NPROC, allowed_processes)
            with contextlib.suppress(OSError):
                descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
                os.write(descriptor, OOM_SCORE)
                os.close(descriptor)
            if os.read(gate, 1) != b"g":
                os._exit(125)
            os.dup2(directory, DIRECTORY_FD)
            os.set_inheritable(DIRECTORY_FD, True)  # noqa: FBT003
            os.execv(self.arguments[0], self.arguments)  # noqa: S606 - the command is what the person allowed
        except BaseException as error:  # noqa: BLE001 - a forked copy of the reaper must not go on as a second one
            os.write(2, f"{self.arguments[0]}: {error}\n".encode(errors="replace"))
        os._exit(127)

    def wait_for_end(self, gate: int) -> bool:
        """Wait until the shell exits (False) or its end is ordered or the agent is gone (True)."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        tick_ms = TICK_MS
        watched: set[int] = set()
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                shell = os.pidfd_open(self.shell)
                poll.register(shell, select.POLLIN)
                tick_ms = IDLE_TICK_MS
            with contextlib.suppress(OSError):
                agent = os.pidfd_open(self.agent_pid)
                poll.register(agent, select.POLLIN)
                watched.add(agent)
        if os.getppid() != self.agent_pid:
            return True
        while True:
            ready = {descriptor for descriptor, _ in poll.poll(tick_ms)}
            if self.control in ready:
                with contextlib.suppress(OSError):
                    word = os.read(self.control, 1)
                    if word == b"g":
                        os.write(gate, word)
                        continue
                return True
            if ready & watched:
                return True
            self.collect()
            if self.status is not None:
                self.say(f"exited {self.status}")
                return False
            if not ready and (count := count_descendants(self.processes)) > self.processes:
                self.say(f"crowded {count}")
                return True

    def collect(self) -> bool:
        """Take in children that ended; False once there are none left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.shell:
                self.status = os.waitstatus_to_exitcode(status)

    def childless(self) -> bool:
        """Whether nothing is left. Every descendant becomes a child once its parent has ended, so no child means no descendant."""
        return not self.collect()

    def targets(self) -> list[int]:
        """Whom to signal: each descendant, or, where they cannot be listed, the shell's process group."""
        return descendants() if LINUX else [-self.shell]

    def send(self, number: int) -> int:
        """Signal all targets; how many were there."""
        targets = self.targets()
        for pid in targets:
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        return len(targets)

    def wait_for_children(self, limit_ms: int) -> bool:
        """Wait until nothing is left (True), at most `limit_ms`."""
        poll = select.poll()
        for _ in range(limit_ms // TICK_MS):
            if self.childless():
                return True
            poll.poll(TICK_MS)
        return self.childless()

    def end_descendants(self) -> int:
        """Ask all to end, then kill what has not; how many were asked."""
        if self.childless():
            return 0
        count = self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)
        if self.wait_for_children(TERM_GRACE_MS):
            return count
        for _ in range(KILL_LIMIT_MS // (5 * TICK_MS)):
            stopped = -1
            while (now := self.send(signal.SIGSTOP)) > stopped:  # a fork bomb is frozen before it is killed
                stopped = now
            self.send(signal.SIGKILL)
            if self.wait_for_children(5 * TICK_MS):
                break
        return count

    def say(self, line: str) -> None:
        """Tell the agent; nothing when it is gone."""
        with contextlib.suppress(OSError):
            os.write(self.control, line.encode() + b"\n")


if __name__ == "__main__":
    Reaper(int(sys.argv[1]), int(sys.argv[2]), (int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])), sys.argv[6:]).run()
