"""The servers of a session, and their tools as extensions of the harness (rules AG-4, EX-1).

What a server offered last time is installed at once, so that work can go on before it runs; what it says when it runs takes the place
of that. A server that fails changes nothing for the others. It decides nothing about permissions: it only says what a tool is.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pi_durable_tui.clock import Clock
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.ports import Tool, ToolContext, ToolResult
from pi_durable_tui.mcp.check import checker
from pi_durable_tui.mcp.config import Configured, McpServer
from pi_durable_tui.mcp.connection import Connection, State
from pi_durable_tui.mcp.link import CallRefused, LinkLost
from pi_durable_tui.mcp.offer import Offer, OfferedTool, remembered, stored, told_schema, tool_name
from pi_durable_tui.mcp.ports import Bounded, Shelf, Spawn
from pi_durable_tui.records.json import JsonObject

EXTENSION = "pidurable.mcp."
INSTALL = "Install it with: pip install 'pidurable[mcp]'"
TITLE_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """A server as people see it. `problem` is what went wrong last; "" for nothing."""

    name: str
    state: State
    shown: str
    tools: tuple[str, ...]
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """What the servers reach the world by; see `ports`. `log` gives, for a server's name, what takes its program's error output."""

    environ: Mapping[str, str]
    spawn: Spawn
    bounded: Bounded
    shelf: Shelf
    clock: Clock
    log: Callable[[str], Callable[[bytes], None]]


def is_installed() -> bool:
    """Whether the library of the protocol is there; loads nothing."""
    return importlib.util.find_spec("mcp") is not None


class Servers:
    """See the module. Used on the harness's event loop, but for `extensions`, which may be read before there is one."""

    def __init__(self, configured: Sequence[Configured], doors: Doors, *, installed: bool | None = None) -> None:
        self._doors = doors
        self._is_installed = is_installed() if installed is None else installed
        self._configured: tuple[Configured, ...] = ()
        self._connections: dict[str, Connection] = {}
        self._offers: dict[str, Offer] = {}
        self._install: Callable[[Extension], None] = lambda _extension: None
        self._tell: Callable[[str], object] = lambda _text: None
        self._background: set[asyncio.Task[None]] = set()
        self._take(configured)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know at the start, one line each."""
        if self._is_installed or not self._configured:
            return ()
        names = ", ".join(each.name for each in self._configured)
        return (f"MCP servers are not used ({names}): the library of the protocol is not installed. {INSTALL}",)

    def extensions(self) -> tuple[Extension, ...]:
        """One for each server, with the tools that are known; empty where none are."""
        return tuple(self._extension(each) for each in self._configured if self._is_installed)

    def facts(self) -> tuple[ServerFacts, ...]:
        """How they stand, in the order of their names."""
        return tuple(self._facts(each) for each in self._configured)

    # ------------------------------------------------------------------------------------------------------------ working

    def begin(self, install: Callable[[Extension], None]) -> None:
        """From now on, install what servers say that they offer."""
        self._install = install

    def listen(self, tell: Callable[[str], object]) -> None:
        """From now on hear, one line each, of servers that cannot be used."""
        self._tell = tell

    async def know(self) -> tuple[str, ...]:
        """Wait until all have said what they offer, now or another time; one line for each that did not. For those who cannot wait for later."""
        return await self._each([name for name in self._connections if name not in self._offers])

    def connect(self) -> None:
        """In the background, start those that do not run, and ask all what they offer."""
        task = asyncio.ensure_future(self._connect())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def use(self, configured: Sequence[Configured]) -> None:
        """Use these from now on: those that are gone or are others now are ended, and what is known of the new ones is installed."""
        before = {each.name: each for each in self._configured}
        now = {each.name: each for each in configured}
        gone = [name for name in before if now.get(name) != before[name]]
        closing = [self._connections.pop(name) for name in gone if name in self._connections]
        for name in gone:
            self._offers.pop(name, None)
            if name not in now:
                self._install(Extension(name=EXTENSION + name))
        self._take(configured)
        for extension in self.extensions():
            self._install(extension)
        await asyncio.gather(*(connection.close() for connection in closing))

    async def close(self) -> None:
        """End all of them; nothing of them is left."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*(connection.close() for connection in self._connections.values()))

    # ------------------------------------------------------------------------------------------------------------- inside

    def _take(self, configured: Sequence[Configured]) -> None:
        self._configured = tuple(sorted(configured, key=lambda each: each.name))
        for each in self._configured if self._is_installed else ():
            if each.name in self._connections:
                continue
            known = remembered(self._doors.shelf.load(each.digest))
            if known is not None:
                self._offers[each.name] = known
            self._connections[each.name] = Connection(
                each,
                environ=self._doors.environ,
                spawn=self._doors.spawn,
                bounded=self._doors.bounded,
                clock=self._doors.clock,
                offered=partial(self._offered, each),
                log=self._doors.log(each.name),
            )

    def _offered(self, configured: Configured, offer: Offer) -> None:
        """Unchanged tools keep the objects they have, so that nothing is told anew."""
        if self._offers.get(configured.name) == offer:
            return
        self._offers[configured.name] = offer
        self._doors.shelf.store(configured.digest, stored(offer))
        self._install(self._extension(configured))

    async def _each(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(text for text in await asyncio.gather(*(self._refreshed(name) for name in names)) if text)

    async def _refreshed(self, name: str) -> str:
        connection = self._connections.get(name)
        if connection is None:  # gone meanwhile
            return ""
        try:
            await connection.refresh()
        except (LinkLost, CallRefused) as lost:
            return f"The MCP server {name} cannot be used now: {lost}"
        return ""

    async def _connect(self) -> None:
        for problem in await self._each(list(self._connections)):
            self._tell(problem)

    def _facts(self, configured: Configured) -> ServerFacts:
        connection = self._connections.get(configured.name)
        return ServerFacts(
            name=configured.name,
            state="failed" if connection is None else connection.state,
            shown=configured.server.shown,
            tools=tuple(tool.name for tool in self._offers.get(configured.name, Offer()).tools),
            problem=f"The library of the protocol is not installed. {INSTALL}" if connection is None else connection.problem,
        )

    def _extension(self, configured: Configured) -> Extension:
        offer = self._offers.get(configured.name, Offer())
        connection = self._connections[configured.name]
        tools = tuple(tool_of(configured.name, configured.server, offered, connection.call) for offered in offer.tools)
        advice = f'<server name="{configured.name}">\n{offer.instructions.strip()}\n</server>' if offer.instructions.strip() and tools else ""
        return Extension(name=EXTENSION + configured.name, tools=tools, sections=lambda _agent: {f"mcp {configured.name}": advice})


def tool_of(server: str, settings: McpServer, offered: OfferedTool, call: Callable[[str, JsonObject, ToolContext], Any]) -> Tool:
    """A server's tool as one of the harness.

    That it may be repeated is believed of a tool that says so (rule AG-4): at worst it is done twice. That it only reads, and needs no
    question, is believed only where the person said so: what is asked of a server leaves this program.
    """

    async def execute(arguments: JsonObject, context: ToolContext) -> ToolResult:
        return await call(offered.name, arguments, context)

    return Tool(
        name=tool_name(server, offered.name),
        description=offered.description or offered.title or offered.name,
        arguments=dict[str, Any],
        parameters=told_schema(offered.schema),
        check=checker(offered.schema),
        title=lambda arguments: _title(server, offered, arguments),
        execute=execute,
        access="read" if settings.trust_read_only and offered.reads_only else "command",
        replay="safe" if offered.reads_only or offered.is_idempotent else "unsafe",
    )


def _title(server: str, offered: OfferedTool, arguments: JsonObject) -> str:
    """One line: whose tool, which, and what it is given. All of what it is given stands in the question itself."""
    given = ", ".join(f"{name}: {value}" if isinstance(value, str | int | float) else name for name, value in arguments.items())
    line = " ".join(f"{server}: {offered.title or offered.name}{f' ({given})' if given else ''}".split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "…"
