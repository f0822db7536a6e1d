"""Looks whether a model server answers on this machine, for a first start without a key (rule CL-5).

Three well-known ports of 127.0.0.1 are asked for their models, all at once, within 300 ms; nothing else is connected to, no name is looked up,
no proxy is used. What a server says is foreign text.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from pi_durable_tui.clock import Clock
from pi_durable_tui.models.catalog import PROVIDERS, first_set

ADDRESS = "127.0.0.1"
WITHIN_MS = 300
_ANSWER_BYTES = 256 * 1024
_MODEL = re.compile(r"[\w.:/@+-]{1,120}")

Port: TypeAlias = int


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A kind of server: what people call it, where it listens, and which provider speaks to it."""

    name: str
    port: Port
    provider: str


SERVERS = (
    Server(name="Ollama", port=11434, provider="ollama_chat"),
    Server(name="llama.cpp", port=8080, provider="llamafile"),
    Server(name="LM Studio", port=1234, provider="lm_studio"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """A server that answered, and the models it has, by the names to ask for them here."""

    server: Server
    models: tuple[str, ...]


class _Model(msgspec.Struct, frozen=True):
    id: str


class _Models(msgspec.Struct, frozen=True):
    data: list[_Model]


def base_urls(environ: Mapping[str, str]) -> dict[str, str]:
    """Where the servers' providers are reached if the environment does not say; those that LiteLLM knows by itself are left to it. PURE."""
    return {
        server.provider: f"http://{ADDRESS}:{server.port}/v1"
        for server in SERVERS
        if server.provider != "ollama_chat" and first_set(PROVIDERS[server.provider].bases, environ) is None
    }


async def answering(clock: Clock, servers: Sequence[Server] = SERVERS) -> tuple[Answering, ...]:
    """The servers that answer with at least one model, in the order of `servers`. Returns within WITHIN_MS; never raises."""
    asked = [asyncio.ensure_future(_ask(server)) for server in servers]
    limit = asyncio.ensure_future(clock.sleep_ms(WITHIN_MS))
    everyone = asyncio.ensure_future(asyncio.wait(asked))
    try:
        await asyncio.wait({limit, everyone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (limit, everyone, *asked):
            task.cancel()
        await asyncio.gather(limit, everyone, *asked, return_exceptions=True)
    found = [task.result() for task in asked if task.done() and not task.cancelled() and task.exception() is None]
    return tuple(one for one in found if one is not None)


async def _ask(server: Server) -> Answering | None:
    writer = None
    try:
        reader, writer = await asyncio.open_connection(ADDRESS, server.port)
        writer.write(f"GET /v1/models HTTP/1.0\r\nHost: {ADDRESS}:{server.port}\r\nAccept: application/json\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while len(answer) < _ANSWER_BYTES and (piece := await reader.read(65_536)):
            answer += piece
    except OSError:
        return None
    finally:
        if writer is not None:
            with contextlib.suppress(OSError):
                writer.close()
    models = models_of(answer)
    return Answering(server=server, models=tuple(f"{server.provider}/{name}" for name in models)) if models else None


def models_of(answer: bytes) -> tuple[str, ...]:
    """The names in an HTTP answer to a question for models; none when it is no such answer. PURE."""
    head, _, body = answer.partition(b"\r\n\r\n")
    if not re.match(rb"HTTP/1\.[01] 200\b", head):
        return ()
    start, end = body.find(b"{"), body.rfind(b"}")  # a chunked body has numbers around it
    try:
        decoded = msgspec.json.decode(body[start : end + 1], type=_Models)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ()
    return tuple(model.id for model in decoded.data if _MODEL.fullmatch(model.id))


def offer(found: Sequence[Answering]) -> str:
    """What to say of them, a line for each; "" for none. PURE."""
    return "\n".join(f"{one.server.name} answers here{_number(one)}: --model {one.models[0]}, or /model in the app." for one in found)


def _number(one: Answering) -> str:
    return f" with {len(one.models)} models" if one.models[1:] else ""
