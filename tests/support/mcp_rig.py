"""MCP servers over real programs and a real loopback, with a harness whose clock is moved by hand."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pi_durable_tui.clock import SystemClock
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.mcp.config import Configured, McpServer
from pi_durable_tui.mcp.servers import Doors, Servers
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.tools.environment import LocalEnvironment
from pi_durable_tui.tools.output import bounded
from pi_durable_tui.tools.serving.program import Program, ServerProcess
from tests.support.harness_rig import Rig
from tests.support.patience import PATIENCE_S

HERE = Path(__file__).parent
POLL_S = 0.01


@dataclass(slots=True)
class Shelf:
    """What was remembered, in memory."""

    kept: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def load(self, digest: str) -> bytes | None:
        return self.kept.get(digest)

    def store(self, digest: str, data: bytes) -> None:
        self.kept[digest] = data


@dataclass(slots=True)
class McpRig:
    """A folder that the servers write to, and what outlives a process of the agent.

    Attributes:
        log: What the servers' programs wrote to their error output.
    """

    folder: Path
    shelf: Shelf = field(default_factory=Shelf)
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    log: bytearray = field(default_factory=bytearray)
    rig: Rig = field(init=False)

    def __post_init__(self) -> None:
        self.rig = Rig(self.folder, place=self._place)

    def _place(self, conversation_id: int, agent: Agent) -> LocalEnvironment:
        return LocalEnvironment(agent.cwd, self.folder / f"state-{conversation_id}", SystemClock())

    def plain(self, **settings: object) -> McpServer:
        """The configuration of the server that is made by hand."""
        return McpServer(command=sys.executable, args=("-S", str(HERE / "mcp_plain.py"), str(self.folder)), **settings)

    def modern(self) -> McpServer:
        """The configuration of the server that is made with the protocol's library."""
        return McpServer(command=sys.executable, args=(str(HERE / "mcp_server.py"), str(self.folder)))

    def servers(self, *, installed: bool | None = None, **servers: McpServer) -> Servers:
        """What a process of the agent has."""
        doors = Doors(environ=self.environ, spawn=self._spawn, bounded=bounded, shelf=self.shelf, clock=self.rig.clock, log=lambda _name: self.log.extend)
        return Servers(self.configured(**servers), doors, installed=installed)

    def configured(self, **servers: McpServer) -> Sequence[Configured]:
        return [Configured(name=name, server=server, directory=str(self.folder)) for name, server in servers.items()]

    async def _spawn(self, server: McpServer, variables: dict[str, str], on_errors: Callable[[bytes], None]) -> ServerProcess:
        program = Program(name=server.command or "", arguments=server.args, directory=str(self.folder), extra=variables, agent=self.environ)
        return await ServerProcess.start(program, on_errors=on_errors)

    def calls(self, beginning: str = "") -> list[str]:
        """What the servers have begun to do, in order."""
        path = self.folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line.startswith(beginning)]

    async def until_called(self, beginning: str, times: int = 1) -> None:
        await until(lambda: len(self.calls(beginning)) >= times)

    async def results(self, conversation_id: int) -> list[Entry]:
        """The results of the chat, in the order of their calls."""
        found = [entry for entry in await self.rig.entries(conversation_id) if entry.kind == "pi.tool-result"]
        return sorted(found, key=lambda entry: entry.data["taskId"])


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + PATIENCE_S
    while not condition():
        assert loop.time() < end_s, "what was waited for did not happen"
        await asyncio.sleep(POLL_S)


@contextmanager
def own_port() -> Generator[socket.socket]:
    """A socket on a port of the loopback, which refuses who connects until it listens; nobody else gets that port meanwhile."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        yield made


def url_of(made: socket.socket) -> str:
    """The address of a server on that port."""
    return f"http://127.0.0.1:{made.getsockname()[1]}/mcp"


def is_alive(pid: int) -> bool:
    """Whether a process lives; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


limited = partial(asyncio.wait_for, timeout=PATIENCE_S)
