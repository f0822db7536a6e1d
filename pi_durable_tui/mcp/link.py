"""One connection to one server, from the first word to the last. With `answer` the only place that knows the protocol's library.

A link is used once: when it is lost, the next use makes a new one (`connection`). It lives in a task of its own; calls come from other
tasks, and cancelling one tells the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pi_durable_tui import __version__
from pi_durable_tui.errors import BadRequest, EnvironmentFailure
from pi_durable_tui.mcp.offer import DESCRIPTION_CHARS, INSTRUCTIONS_CHARS, MOST_TOOLS, Offer, OfferedTool
from pi_durable_tui.mcp.ports import Process
from pi_durable_tui.records.json import JsonObject, clean_text, strict

if TYPE_CHECKING:
    import httpx2
    from mcp import Client
    from mcp.types import CallToolResult, Tool

LINE_BYTES = 32_000_000
"""Longer lines are not messages; the server that sends one is ended."""
MOST_PAGES = 50
HTTP_TIMEOUT_S = 30.0
_LIBRARY_LOGS = ("mcp", "httpx2", "httpcore2")

Streams: TypeAlias = Any
"""The library's pair of streams; their types are its own."""


class LinkLost(Exception):
    """There is no usable answer: the server is gone, was never reached, or talks nonsense; says why. What it was asked may have been done."""


class CallRefused(Exception):
    """The server said no to the call itself: it was not carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a link is made of: one of both.

    Attributes:
        spawn: Starts the program.
        url, headers: The address, and what is sent along.
    """

    spawn: Callable[[], Awaitable[Process]] | None = None
    url: str = ""
    headers: Mapping[str, str] | None = None


class Link:
    """See the module.

    Args:
        changed: Called when the server says that its tools have changed.
        remark: Takes what the program wrote that is no message.
    """

    def __init__(self, wanted: Wanted, *, changed: Callable[[], None], remark: Callable[[bytes], None]) -> None:
        self._wanted = wanted
        self._changed = changed
        self._remark = remark
        self._client: Client | None = None
        self._status: int | None = None
        self._over = asyncio.Event()
        self.problem = ""

    @property
    def is_live(self) -> bool:
        """Whether it can be used."""
        return self._client is not None and not self._over.is_set()

    def end(self) -> None:
        """Let `run` return."""
        self._over.set()

    async def run(self, ready: asyncio.Future[None]) -> None:
        """Connect, say so, and stay until it ends; whatever was started is gone when this returns.

        Args:
            ready: Done once calls are taken; LinkLost when that did not come about.
        """
        try:
            library = await asyncio.to_thread(_load)
            transport = self._process(self._wanted.spawn) if self._wanted.spawn is not None else self._http()
            async with library(transport, message_handler=self._heard, client_info=_ourselves(), cache=None) as client:
                self._client = client
                if not ready.done():
                    ready.set_result(None)
                listening = asyncio.ensure_future(self._listen(client))
                try:
                    await self._over.wait()
                finally:
                    listening.cancel()
        except Exception as error:  # noqa: BLE001 - whatever the library and the server come up with is the reason why there is no link
            self.problem = self.problem or self._reason(error)
        finally:
            self._over.set()
            self._client = None
            if not ready.done():
                ready.set_exception(LinkLost(self.problem or "It ended before it was ready."))
                ready.exception()  # whoever waits hears it; if nobody does, nobody has to

    # ------------------------------------------------------------------------------------------------------------- asking

    async def offer(self) -> Offer:
        """What the server offers now.

        Raises:
            LinkLost, CallRefused: It did not say.
        """
        client = self._live()
        tools: list[OfferedTool] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await self._asked(client.list_tools(cursor=cursor))
            tools += [made for tool in page.tools if (made := _offered(tool)) is not None]
            cursor = page.next_cursor
            if cursor is None or len(tools) >= MOST_TOOLS:
                break
        return Offer(tools=tuple(tools[:MOST_TOOLS]), instructions=clean_text((client.instructions or "")[:INSTRUCTIONS_CHARS]))

    async def call(self, tool: str, arguments: JsonObject, say: Callable[[str], None]) -> CallToolResult:
        """What the server answers. Cancelling this tells the server to stop.

        Raises:
            LinkLost: It is gone; the call may have been carried out.
            CallRefused: It was not carried out.
        """

        async def told(progress: float, total: float | None, message: str | None) -> None:
            of = f" of {total:g}" if total is not None else ""
            say(f"{clean_text(message or 'progress')}: {progress:g}{of}\n")

        return await self._asked(self._live().call_tool(tool, arguments, progress_callback=told))

    def _live(self) -> Client:
        if self._client is None or self._over.is_set():
            raise LinkLost(self.problem or "The connection has ended.")
        return self._client

    async def _asked(self, work: Awaitable[Any]) -> Any:  # noqa: ANN401 - the library's results, each of its own type
        """The answer to a request; what goes wrong is sorted into the two things that matter: was it refused, or is the end unknown."""
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR, REQUEST_TIMEOUT

        try:
            return await work
        except MCPError as error:
            text = clean_text(error.message)
            if error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
                self.end()
                raise LinkLost(self.problem or text) from error
            if self._status is not None and error.code == INTERNAL_ERROR:
                raise CallRefused(f"{text} (HTTP {self._status})") from error
            if text == "Session terminated":
                self.end()
            raise CallRefused(text) from error
        except (ValueError, RuntimeError, OSError) as error:  # the library's words for an answer that is none
            raise LinkLost(f"Its answer cannot be used: {clean_text(' '.join(str(error).split())[:300])}") from error

    # ---------------------------------------------------------------------------------------------------------- listening

    async def _heard(self, message: object) -> None:
        from mcp.types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._changed()

    async def _listen(self, client: Client) -> None:
        """Newer servers tell of changes only to those who ask to hear of them."""
        from mcp.types.version import MODERN_PROTOCOL_VERSIONS

        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        with contextlib.suppress(Exception):  # a server that does not let anybody listen is asked when it is used
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self._changed()

    # ------------------------------------------------------------------------------------------------------------ carrying

    @contextlib.asynccontextmanager
    async def _process(self, spawn: Callable[[], Awaitable[Process]]) -> AsyncGenerator[Streams]:
        """Messages as lines over a program's input and output."""
        import anyio  # noqa: PLC0415 - comes with the library

        process = await spawn()
        heard_in, heard = anyio.create_memory_object_stream[Any](0)
        said, said_out = anyio.create_memory_object_stream[Any](0)
        reading = asyncio.ensure_future(self._read(process, heard_in))
        writing = asyncio.ensure_future(self._write(process, said_out))
        try:
            yield heard, said
        finally:
            said.close()
            heard.close()
            with anyio.CancelScope(shield=True):  # whoever gives up waiting must not leave the program behind
                await process.stop()
            reading.cancel()
            writing.cancel()
            await asyncio.wait({reading, writing})
            heard_in.close()
            said_out.close()

    async def _read(self, process: Process, heard: Streams) -> None:
        import anyio  # noqa: PLC0415 - loaded by now
        from mcp.shared.message import SessionMessage

        rest = bytearray()
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            while len(rest) <= LINE_BYTES and (data := await process.read()):
                rest += data
                *lines, tail = bytes(rest).split(b"\n") if b"\n" in data else (rest,)
                rest = bytearray(tail)
                for line in lines:
                    message = _message(line)
                    if message is None:  # programs greet, warn and log there, although they should not
                        self._remark(line + b"\n")
                    else:
                        await heard.send(SessionMessage(message))
        told = f"It sent a line of more than {LINE_BYTES:,} bytes and was ended." if len(rest) > LINE_BYTES else "Its program has ended."
        self.problem = self.problem or told
        heard.close()
        self._over.set()

    async def _write(self, process: Process, said: Streams) -> None:
        with contextlib.suppress(OSError):
            async for message in said:
                await process.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    @contextlib.asynccontextmanager
    async def _http(self) -> AsyncGenerator[Streams]:
        """Messages as requests to an address."""
        import httpx2  # noqa: PLC0415 - comes with the library
        from mcp.client.streamable_http import streamable_http_client

        timeout = httpx2.Timeout(HTTP_TIMEOUT_S, read=None)  # how long an answer may take is decided where it is asked for
        hooks = {"response": [self._note_status]}
        async with (
            httpx2.AsyncClient(headers=dict(self._wanted.headers or {}), timeout=timeout, event_hooks=hooks) as http,
            streamable_http_client(self._wanted.url, http_client=http) as streams,
        ):
            yield streams

    async def _note_status(self, response: httpx2.Response) -> None:
        self._status = response.status_code if response.status_code >= 400 else None

    def _reason(self, error: BaseException) -> str:
        """What went wrong, in one line without an address's secrets; of several things the first."""
        while isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
        if isinstance(error, EnvironmentFailure):
            return f"{error.message} {error.hint}".strip()
        status = f" (HTTP {self._status})" if self._status is not None else ""
        return clean_text(" ".join(str(error).split())[:500] or type(error).__name__) + status


def _message(line: bytes) -> Any:  # noqa: ANN401 - the library's union
    """The message in a line; None when there is none. Text that is no proper Unicode is made so: an answer must not be lost for one letter."""
    from mcp.types import jsonrpc_message_adapter

    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    try:
        return jsonrpc_message_adapter.validate_python(strict(json.loads(line.decode(errors="replace"))), by_name=False)
    except (ValueError, RecursionError, BadRequest):
        return None


def _offered(tool: Tool) -> OfferedTool | None:
    """A tool as it is remembered; None when its schema is no JSON that can be stored."""
    hints = tool.annotations
    try:
        schema = strict(tool.input_schema)
    except (RecursionError, BadRequest):
        return None
    return OfferedTool(
        name=tool.name,
        title=clean_text((tool.title or (hints.title if hints is not None else None) or "")[:200]),
        description=clean_text((tool.description or "")[:DESCRIPTION_CHARS]),
        schema=schema if isinstance(schema, dict) else {},
        reads_only=hints is not None and hints.read_only_hint is True,
        is_idempotent=hints is not None and hints.idempotent_hint is True,
    )


def _load() -> type[Client]:
    """The library, quiet: what it logs would be written over the screen. Takes a second the first time."""
    import mcp

    for name in _LIBRARY_LOGS:
        logger = logging.getLogger(name)
        logger.handlers[:] = [logging.NullHandler()]
        logger.propagate = False
    return mcp.Client


def _ourselves() -> Any:  # noqa: ANN401 - the library's type
    from mcp.types import Implementation

    return Implementation(name="pidurable", version=__version__)
