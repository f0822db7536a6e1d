"""One request through the model library, read to its end into a queue.

The reader is a task of its own, so that cancelling it closes the connection wherever it stands, and so that limits are watched beside it. It
imports nothing: the library is handed in as the few things of it that are used.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from pi_durable_tui.models.catalog import provider_of


class Chunk(Protocol):
    """One piece of a stream."""

    usage: object

    def model_dump(self, *, exclude_none: bool, warnings: bool) -> dict[str, Any]:
        """The piece as plain objects."""
        ...


class Response(Protocol):
    """A running stream."""

    def __aiter__(self) -> AsyncIterator[Chunk]: ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...


class ClientCache(Protocol):
    """The HTTP clients that the library keeps."""

    def flush_cache(self) -> None:
        """Forget all of them."""
        ...


class Library(Protocol):
    """What is used of the model library."""

    suppress_debug_info: bool
    set_verbose: bool
    REPEATED_STREAMING_CHUNK_LIMIT: int
    model_cost: Mapping[str, Mapping[str, Any]]
    provider_list: list[object]
    in_memory_llm_clients_cache: ClientCache
    cost_per_token: Callable[..., tuple[float, float]]

    async def acompletion(self, **arguments: object) -> Response:
        """Send a request; returns once the answer begins."""
        ...

    async def close_litellm_async_clients(self) -> None:
        """Close the kept HTTP clients."""
        ...


@dataclass(frozen=True, slots=True)
class Piece:
    """One chunk as plain objects."""

    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Counted:
    """What the provider has counted so far. Some count before the first word, so that an attempt that breaks off is not for nothing (rule GE-6).

    Attributes:
        counts: In the OpenAI form. The library's own estimate is not passed on.
        cost_usd: By the library's price table; None: unknown.
    """

    counts: Mapping[str, Any]
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class End:
    """The stream is over.

    Attributes:
        is_finished: The provider said why, as far as the library can tell; it invents a reason where none came.
    """

    is_finished: bool


Item: TypeAlias = Piece | Counted | End | Exception


@dataclass(slots=True)
class _Counter:
    """Looks through the provider's own chunks, which the library keeps; it takes their counts out of those that it hands on."""

    library: Library
    model: str
    has_price: bool
    seen: int = 0

    async def put_new(self, response: Response, items: asyncio.Queue[Item]) -> None:
        """Tell of each count that came since the last time."""
        chunks: Sequence[Chunk] = getattr(response, "chunks", ())
        new, self.seen = chunks[self.seen :], len(chunks)
        for chunk in new:
            usage = getattr(chunk, "usage", None)
            counts = chunk.model_dump(exclude_none=True, warnings=False).get("usage") if usage is not None else None
            if counts is not None:
                await items.put(Counted(counts, _cost_usd(self.library, self.model, usage) if self.has_price else None))


async def read(library: Library, arguments: Mapping[str, Any], items: asyncio.Queue[Item], *, has_price: bool) -> None:
    """Send the request and put everything that comes into `items`, last an End or the exception. The connection is closed afterwards.

    Args:
        has_price: Whether the library's table knows what the model costs.
    """
    counter = _Counter(library, str(arguments["model"]), has_price)
    try:
        response = await library.acompletion(**arguments)
        try:
            async for chunk in response:
                await counter.put_new(response, items)
                await items.put(Piece(chunk.model_dump(exclude_none=True, warnings=False)))
            await counter.put_new(response, items)
            await items.put(End(_is_finished(response)))
        except Exception:
            await counter.put_new(response, items)
            raise
        finally:
            await response.aclose()
    except Exception as error:  # noqa: BLE001 - whatever the library raises is the provider's failure, and a value for the transcript
        await items.put(error)


def _is_finished(response: Response) -> bool:
    return bool(getattr(response, "received_finish_reason", None) or getattr(response, "intermittent_finish_reason", None))


def _cost_usd(library: Library, model: str, usage: object) -> float | None:
    name = model.partition("/")[2]
    try:
        return sum(library.cost_per_token(model=name, custom_llm_provider=provider_of(model), usage_object=usage))
    except Exception:  # noqa: BLE001 - a price that cannot be worked out is unknown; it must not end a complete answer
        return None
