"""One server of a session: started when it is needed, asked, started anew when it has died, and stopped with the session (rule AG-4).

It says what is known of a call's end, and never repeats one by itself: whether that may be done is decided by the harness.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Literal, TypeAlias, TypeVar

from pi_durable_tui.clock import Clock
from pi_durable_tui.harness.ports import Diagnostic, ToolContext, ToolResult
from pi_durable_tui.mcp.answer import text_and_images
from pi_durable_tui.mcp.config import Configured, filled
from pi_durable_tui.mcp.link import CallRefused, Link, LinkLost, Wanted
from pi_durable_tui.mcp.offer import Offer
from pi_durable_tui.mcp.ports import Bounded, Spawn
from pi_durable_tui.records.json import JsonObject, clean_text
from pi_durable_tui.records.messages import Content, Text

State: TypeAlias = Literal["not started", "starting", "ready", "failed"]

_T = TypeVar("_T")

ERRORS_KEPT_CHARS = 2_000
ASK_LIMIT_MS = 10_000  # for a server that runs to say what it offers
CLOSE_LIMIT_S = 5.0  # more than ending a program may take


class Connection:
    """See the module. Used on the harness's event loop.

    Args:
        environ: Where the variables that a configuration names stand.
        offered: Told what the server offers, whenever it has said so.
        log: Takes what its program writes to its error output.
    """

    def __init__(
        self,
        configured: Configured,
        *,
        environ: Mapping[str, str],
        spawn: Spawn,
        bounded: Bounded,
        clock: Clock,
        offered: Callable[[Offer], None],
        log: Callable[[bytes], None],
    ) -> None:
        self.configured = configured
        self.problem = ""
        self._environ = environ
        self._spawn, self._bounded, self._clock = spawn, bounded, clock
        self._offered = offered
        self._log = log
        self._errors = ""
        self._link: Link | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._linking = asyncio.Lock()
        self._is_stale = False
        self._is_closed = False

    @property
    def state(self) -> State:
        """How it stands."""
        if self._link is not None and self._link.is_live:
            return "ready"
        if self._task is not None and not self._task.done():
            return "starting"
        return "failed" if self.problem else "not started"

    # -------------------------------------------------------------------------------------------------------------- using

    async def call(self, tool: str, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """The result of a call; whatever goes wrong is one, too."""
        name = self.configured.name
        try:
            link = await self._linked()
        except LinkLost as lost:
            return _failed("not_started", f"The MCP server {name} cannot be reached, so nothing was done: {lost}")
        try:
            limit_ms = self.configured.server.call_timeout_ms
            answer = await self._within(limit_ms, link.call(tool, arguments, context.output), f"It did not answer within {limit_ms / 1000:g} s.")
        except CallRefused as refused:
            return _failed("refused", f"The MCP server {name} refused the call: {refused}")
        except LinkLost as lost:
            reason = await self._reason(link, str(lost))
            return _failed("effect_unknown", f"The MCP server {name} gave no usable answer: {reason} Whether the call has had an effect is not known.")
        text, images = text_and_images(answer)
        shown, diagnostics = await self._bounded(text, context)
        content: tuple[Content, ...] = (*((Text(text=shown),) if shown or not images else ()), *images)
        return ToolResult(content=content, is_error=answer.is_error, diagnostics=diagnostics)

    async def refresh(self) -> None:
        """Ask anew what it offers, and start it for that if it does not run.

        Raises:
            LinkLost: It did not say.
        """
        link = self._link
        if link is not None and link.is_live:
            with contextlib.suppress(LinkLost):  # it hangs, or has just died
                await self._ask(link)
                return
        await self._linked()

    async def close(self) -> None:
        """End it; nothing of it is left, and it is not started again."""
        self._is_closed = True
        async with self._linking:
            await self._end()

    # ------------------------------------------------------------------------------------------------------------- linking

    async def _linked(self) -> Link:
        """A link that can be used: the one there is, or a new one. Who waits for the same one waits together."""
        async with self._linking:
            if self._is_closed:
                raise LinkLost("It was closed.")
            if self._link is None or self._ready is None or (self._ready.done() and not self._link.is_live):
                await self._end()
                self._link = Link(self._wanted(), changed=self._changed, remark=self._heard_errors)
                self._ready = asyncio.get_running_loop().create_future()
                self._errors = ""
                self._task = asyncio.ensure_future(self._run(self._link, self._ready))
            link, ready = self._link, self._ready
        await asyncio.shield(ready)
        return link

    async def _run(self, link: Link, ready: asyncio.Future[None]) -> None:
        """Carry a link to its end. It is ready when it has said what it offers."""
        limit_ms = self.configured.server.start_timeout_ms
        answering: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        carrying = asyncio.ensure_future(link.run(answering))
        try:
            await self._within(limit_ms, self._begin(link, answering), f"It was not ready within {limit_ms / 1000:g} s.")
            self.problem = ""
            ready.set_result(None)
            await carrying
            self.problem = "" if self._is_closed else link.problem
        except (LinkLost, CallRefused) as lost:
            link.end()
            self.problem = await self._reason(link, str(lost))
            if not ready.done():
                ready.set_exception(LinkLost(self.problem))
                ready.exception()  # whoever waits hears it; if nobody does, nobody has to
        finally:
            link.end()
            if not answering.done():
                carrying.cancel()
            await asyncio.wait({carrying})
            if not ready.done():
                ready.set_exception(LinkLost("It was ended."))
                ready.exception()

    async def _begin(self, link: Link, answering: asyncio.Future[None]) -> None:
        await asyncio.shield(answering)  # whether it has answered is looked at after this was given up
        await self._ask(link)

    async def _ask(self, link: Link) -> None:
        """Hear what it offers. A server that does not even say that hangs: it is ended, and the next use starts it anew."""
        try:
            self._offered(await self._within(ASK_LIMIT_MS, link.offer(), f"It did not answer within {ASK_LIMIT_MS / 1000:g} s."))
        except LinkLost:
            link.end()
            raise

    async def _end(self) -> None:
        if self._link is not None:
            self._link.end()
        if self._asking is not None:
            self._asking.cancel()
        if self._task is not None and not self._task.done():
            if self._ready is not None and not self._ready.done():
                self._task.cancel()
            await asyncio.wait({self._task}, timeout=CLOSE_LIMIT_S)

    def _wanted(self) -> Wanted:
        server = self.configured.server
        try:
            if server.url is not None:
                return Wanted(url=server.url, headers=filled(server.headers, self._environ))
            return Wanted(spawn=partial(self._spawn, server, filled(server.env, self._environ), self._heard_errors))
        except KeyError as missing:
            self.problem = f"The variable {missing.args[0]} is not set. Set it, and start pidurable again."
            raise LinkLost(self.problem) from missing

    # ------------------------------------------------------------------------------------------------------------- hearing

    def _changed(self) -> None:
        """The server says that its tools have changed: ask for them, in the background."""
        self._is_stale = True
        if self._link is not None and (self._asking is None or self._asking.done()):
            self._asking = asyncio.ensure_future(self._ask_again(self._link))

    async def _ask_again(self, link: Link) -> None:
        while self._is_stale:
            self._is_stale = False
            try:
                await self._ask(link)
            except (LinkLost, CallRefused) as lost:
                self.problem = str(lost)

    def _heard_errors(self, data: bytes) -> None:
        self._errors = (self._errors + data.decode(errors="replace"))[-ERRORS_KEPT_CHARS:]
        self._log(data)

    async def _reason(self, link: Link, said: str) -> str:
        """Why there was no answer; of a link that has ended also what its program wrote last."""
        if link.is_live:
            return said
        if self._task is not None and self._task is not asyncio.current_task():
            await asyncio.wait({self._task}, timeout=CLOSE_LIMIT_S)
        lines = [line.strip() for line in self._errors.splitlines() if line.strip()]
        told = f" It last wrote: {clean_text(lines[-1])[:300]!r}." if lines else ""
        reason = link.problem or said
        return f"{reason if reason.endswith('.') else reason + '.'}{told}"

    async def _within(self, limit_ms: float, work: Awaitable[_T], late: str) -> _T:
        """The result of `work`, cancelled when it takes longer.

        Raises:
            LinkLost: It took longer.
        """
        working = asyncio.ensure_future(work)
        timer = asyncio.ensure_future(self._clock.sleep_ms(limit_ms))
        try:
            await asyncio.wait({working, timer}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise LinkLost(late)
        finally:
            timer.cancel()
            working.cancel()
            await asyncio.wait({working, timer})


def _failed(code: str, text: str) -> ToolResult:
    return ToolResult(is_error=True, diagnostics=(Diagnostic("error", code, clean_text(text)),))
