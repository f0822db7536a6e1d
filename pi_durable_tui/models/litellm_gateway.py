"""Models over LiteLLM: the only file that imports it, only inside a function, only off the event loop (rule SA-7).

It carries out and decides nothing: requests are built in `arguments.py`, answers put together in `stream.py`, failures read in `failures.py`.
One call of `stream` is one HTTP request: every retry, of this program's library and of the client below it, is switched off, because retries
are durable and belong to the harness (rule GE-6, CASE-B3). Nothing that a provider does raises.

The library lives in this process, on the thread of the harness, not in a process of its own. Measured both ways by turns (`python -m
tests.bench.models`; 2 busy cores, 100 tokens/s, medians): a key is echoed equally late while an answer streams (p99 3.8 ms here, 3.7 apart), the
first token comes sooner here (1.1 and 2.2 ms), and a second process takes 15 MB and a tenth more CPU. What was worse here was the loading, once,
after the first paint: keys waited 150 ms at p99 and 350 at most, nearly all of it for the collector of garbage, and each later full collection
took half a second. Loading without it (`_gently`) leaves 13 and 43 ms, and nothing later. A process of its own would have to be watched, ended
and kept from outliving a kill, and would win a one-time 40 ms.

It must never write to stdout or stderr (the library's notes go to `logging`), and never look into the environment for itself: keys and base
URLs come from the mapping it is given, which is the user's environment as the program started (rule SA-6).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import sys
import threading
import warnings
from collections.abc import AsyncGenerator, Collection, Coroutine, Generator, Mapping
from typing import Any, TypeVar, cast

import msgspec

from pi_durable_tui.clock import Clock
from pi_durable_tui.entropy import Entropy
from pi_durable_tui.harness.ports import ModelEvent, ModelFailed, ModelInfo, ModelRequest, UsageReport
from pi_durable_tui.models.arguments import Limits, call_arguments, limits
from pi_durable_tui.models.catalog import Access, Offer, access, has_price, loaded_keys, model_info, offers, provider_of, table_entry
from pi_durable_tui.models.failures import failure, fault_of
from pi_durable_tui.models.overrides import NOTHING, ModelOverride, overridden
from pi_durable_tui.models.reading import Counted, End, Item, Library, Piece, read
from pi_durable_tui.models.stream import Assembly
from pi_durable_tui.models.usage import usage_of
from pi_durable_tui.records.messages import Usage

T = TypeVar("T")

QUEUED_CHUNKS = 64
"""How far the network may run ahead of the consumer before it has to wait."""

SWITCH_S = 0.0005
"""How long the loading thread may keep the interpreter from others while they wait for it: less than any program of ours allows otherwise."""

AFTER_FINISH_MS = 10_000
"""How long a server may keep its connection open after the finish reason; the answer is complete by then, only usage may follow."""


class LiteLlmGateway:
    """Reaches every model that LiteLLM knows.

    Args:
        environ: Keys and base URLs of providers, see `catalog.PROVIDERS`.
        base_urls: Provider -> base URL from the user's settings; they win over `environ`.
        models: "provider/name" -> what the user's settings say of that model; it wins over the library's table.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        entropy: Entropy,
        environ: Mapping[str, str],
        base_urls: Mapping[str, str] | None = None,
        models: Mapping[str, ModelOverride] | None = None,
    ) -> None:
        self._clock = clock
        self._entropy = entropy
        self._environ = dict(environ)
        self._base_urls = dict(base_urls or {})
        self._overrides = dict(models or {})
        self._secrets = loaded_keys(self._environ)
        self._library: Library | None = None
        self._loading: asyncio.Future[Library] | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `ModelGateway.stream`. A model without a provider, a missing key and a wrong option are told without a request."""
        if request.deferred is not None:
            yield ModelFailed(reason="invalid_request", message="No provider is reached here that answers later; nothing was sent.", retryable=False)
            return
        bounds, reached = limits(request.options), access(request.model, self._environ, self._base_urls)
        if isinstance(reached, ModelFailed):
            yield reached
            return
        if isinstance(bounds, ModelFailed):
            yield bounds
            return
        try:
            library = await self._loaded()
        except Exception as error:  # noqa: BLE001 - whatever an import of foreign code raises ends this request only
            yield ModelFailed(reason="unknown", message=f"LiteLLM could not be loaded: {error}", retryable=False)
            return
        refusal = _unknown_provider(library, request.model)
        if refusal is not None:
            yield refusal
            return
        async with contextlib.aclosing(self._exchange(library, request, reached, bounds)) as events:
            async for event in events:
                yield event

    async def info(self, model: str) -> ModelInfo:
        try:
            library = await self._loaded()
        except Exception:  # noqa: BLE001 - an unusable library knows nothing of a model; `stream` tells why
            return model_info(overridden(None, self._override(model)))
        return model_info(self._entry(library, model))

    async def offers(self, providers: Collection[str]) -> tuple[Offer, ...]:
        """What the local table knows of the models of these providers; none when the library cannot be used. Never the network."""
        try:
            library = await self._loaded()
        except Exception:  # noqa: BLE001 - as for `info`
            return ()
        return offers(library.model_cost, providers)

    async def warm_up(self) -> None:
        with contextlib.suppress(Exception):  # told by the first request, where somebody listens
            await self._loaded()

    async def close(self) -> None:
        """End the connections that are kept for later requests. The gateway may be used again afterwards."""
        library = self._library
        if library is not None:
            await library.close_litellm_async_clients()
            library.in_memory_llm_clients_cache.flush_cache()

    # ----------------------------------------------------------------------------------------------------------- one request

    async def _exchange(self, library: Library, request: ModelRequest, reached: Access, bounds: Limits) -> AsyncGenerator[ModelEvent, None]:
        """The events of one request; closing it cancels the reading, which closes the connection."""
        entry = self._entry(library, request.model)
        arguments = call_arguments(request, entry, reached, bounds, self._override(request.model))
        assembly = Assembly(lambda: f"call_{self._entropy.uuid7().replace('-', '')}")
        items: asyncio.Queue[Item] = asyncio.Queue(QUEUED_CHUNKS)
        reader = asyncio.ensure_future(read(library, arguments, items, has_price=has_price(entry)))
        deadline_ms = None if bounds.total_ms is None else self._clock.monotonic_ms() + bounds.total_ms
        counted: Usage | None = None
        try:
            while isinstance(item := await self._next(items, bounds, deadline_ms, is_over=assembly.has_finish_reason), Piece | Counted):
                if isinstance(item, Piece):
                    for event in assembly.feed(item.value):
                        yield event
                elif counted != (counted := self._usage(request.model, item)):
                    yield UsageReport(counted)
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
        for event in self._ending(item, assembly, reached):  # the connection is closed by now, whether or not the consumer comes back
            yield event

    def _ending(self, item: End | ModelFailed | Exception, assembly: Assembly, reached: Access) -> list[ModelEvent]:
        """The last events. Once the finish reason is there the answer is complete, however the connection ends."""
        events = assembly.flush()
        match item:
            case End(is_finished=is_finished):
                return [*events, assembly.outcome() if is_finished else assembly.incomplete(reached.base_url)]
            case _ if assembly.has_finish_reason:
                return [*events, assembly.outcome()]
            case ModelFailed():
                return [*events, item]
            case _:
                return [*events, failure(fault_of(item), now_ms=self._clock.now_ms(), secrets=self._secrets)]

    def _usage(self, model: str, item: Counted) -> Usage:
        usage, prices = usage_of(item.counts, cost_usd=item.cost_usd), self._override(model).prices
        return usage if prices is None else msgspec.structs.replace(usage, cost_usd=prices.of(usage))

    async def _next(self, items: asyncio.Queue[Item], bounds: Limits, deadline_ms: float | None, *, is_over: bool) -> Item | ModelFailed:
        """What comes next, or the limit that passed before anything did."""
        if not items.empty():
            return items.get_nowait()
        idle_ms = min(bounds.idle_ms, AFTER_FINISH_MS) if is_over else bounds.idle_ms
        left_ms = idle_ms if deadline_ms is None else max(0.0, deadline_ms - self._clock.monotonic_ms())
        item = await self._within(items.get(), min(idle_ms, left_ms))
        if item is not None:
            return item
        if left_ms < idle_ms:
            return ModelFailed(reason="timeout", message=f"The request took longer than {_seconds(bounds.total_ms or 0)}.", retryable=True)
        return ModelFailed(reason="timeout", message=f"The provider said nothing for {_seconds(idle_ms)}.", retryable=True)

    async def _within(self, work: Coroutine[Any, Any, T], limit_ms: float) -> T | None:
        """What `work` gives; None, and it is cancelled, when `limit_ms` pass on the clock before."""
        working = asyncio.ensure_future(work)
        limit = asyncio.ensure_future(self._clock.sleep_ms(limit_ms))
        try:
            await asyncio.wait({working, limit}, return_when=asyncio.FIRST_COMPLETED)
            return working.result() if working.done() else None
        finally:
            working.cancel()
            limit.cancel()

    # ---------------------------------------------------------------------------------------------------------------- library

    def _override(self, model: str) -> ModelOverride:
        return self._overrides.get(model, NOTHING)

    def _entry(self, library: Library, model: str) -> Mapping[str, Any] | None:
        return overridden(table_entry(library.model_cost, model), self._override(model))

    async def _loaded(self) -> Library:
        """The library, loaded once on a thread of its own. A caller that is cancelled leaves the loading alone."""
        if self._library is not None:
            return self._library
        if self._loading is None or self._loading.cancelled() or self._loading.get_loop() is not asyncio.get_running_loop():
            self._loading = _in_thread()
        try:
            library = await asyncio.shield(self._loading)
        except Exception:
            self._loading = None  # an import that failed may be tried again
            raise
        self._library = library
        return library


def _unknown_provider(library: Library, model: str) -> ModelFailed | None:
    """Asked before the library is, which would print an advertisement."""
    name = provider_of(model)
    if any(str(getattr(known, "value", known)) == name for known in library.provider_list):
        return None
    return ModelFailed(reason="no_model", message=f"{name!r} in {model!r} is no provider that LiteLLM knows. Nothing was sent.", retryable=False)


def _seconds(duration_ms: float) -> str:
    return f"{duration_ms / 1000:g} s"


def _in_thread() -> asyncio.Future[Library]:
    """A future of the loaded library. The thread is a daemon: leaving the program does not wait for an import."""
    loop = asyncio.get_running_loop()
    loaded: asyncio.Future[Library] = loop.create_future()

    def settle(library: Library | None, error: Exception | None) -> None:
        if loaded.done():
            return
        if library is not None:
            loaded.set_result(library)
        elif error is not None:
            loaded.set_exception(error)

    def work() -> None:
        library: Library | None = None
        failed: Exception | None = None
        try:
            with _gently():
                library = _load()
        except Exception as error:  # noqa: BLE001 - handed to whoever waits for the library
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits
            loop.call_soon_threadsafe(settle, library, failed)

    threading.Thread(target=work, name="load-litellm", daemon=True).start()
    return loaded


@contextlib.contextmanager
def _gently() -> Generator[None]:
    """The thread of the screen gets its turn soon, and no collection of garbage goes through the 400,000 objects that come, now or ever."""
    interval_s = sys.getswitchinterval()
    was_collecting = gc.isenabled()
    gc.disable()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        if interval_s > SWITCH_S:  # else another load was under way, and gives back what was before both
            sys.setswitchinterval(interval_s)
        gc.freeze()
        if was_collecting:
            gc.enable()


def _load() -> Library:
    """Import the library and make it quiet; slow. Then use it once without a network, because it loads half of itself at the first call."""
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # otherwise it loads a `.env` of the working directory (rule SA-7)
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # otherwise it fetches its price table
    warnings.filterwarnings("ignore", module=r"(litellm|pydantic|openai|aiohttp)(\.|$)")
    import litellm

    library = cast("Library", litellm)
    library.suppress_debug_info = True
    library.set_verbose = False
    library.REPEATED_STREAMING_CHUNK_LIMIT = sys.maxsize  # it gives up an answer that says one piece 100 times, as rulers and tables do
    for name in ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [logging.NullHandler()]  # its own handler writes to stderr, and so does the last resort of `logging`
    asyncio.run(_first_use(library))
    return library


async def _first_use(library: Library) -> None:
    import openai  # noqa: PLC0415 - comes with litellm, and is as slow

    _ = openai.AsyncOpenAI(api_key="none").chat.completions
    said = await library.acompletion(model="openai/none", api_key="none", messages=[{"role": "user", "content": "-"}], stream=True, mock_response="-")
    async for _ in said:
        pass
