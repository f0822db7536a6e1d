"""A first start without a key finds a model server on this machine, and asks nobody else (CL-5, SA-18)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import pytest

from pi_durable_tui.cli.local_servers import ADDRESS, SERVERS, Answering, Server, answering, base_urls, models_of, offer
from pi_durable_tui.cli.providers import no_model
from pi_durable_tui.clock import ManualClock
from tests.support.cli_runs import Desk

MODELS = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"object":"list","data":[{"id":"qwen3:8b"},{"id":"llama3"}]}'


@contextlib.asynccontextmanager
async def serving(answer: bytes | None) -> AsyncGenerator[tuple[Server, list[bytes]]]:
    """A server on loopback that gives that answer, or none at all, and what it was asked."""
    asked: list[bytes] = []
    holding = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        if answer is None:
            await holding.wait()
        else:
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, ADDRESS, 0)
    try:
        yield Server(name="Ollama", port=server.sockets[0].getsockname()[1], provider="ollama_chat"), asked
    finally:
        holding.set()
        server.close()


async def found(clock: ManualClock, *servers: Server) -> tuple[Answering, ...]:
    """What is found; the clock moves only once everybody had the time to answer."""
    looking = asyncio.ensure_future(answering(clock, servers))
    for _ in range(2_000):
        if looking.done():
            break
        await asyncio.sleep(0)
    clock.advance(299)
    await asyncio.sleep(0)
    clock.advance(1)
    return await looking


@pytest.mark.rule("CL-5")
async def test_a_server_that_answers_is_told_with_its_models() -> None:
    async with serving(MODELS) as (server, asked):
        assert await found(ManualClock(), server) == (Answering(server=server, models=("ollama_chat/qwen3:8b", "ollama_chat/llama3")),)
        assert asked == [f"GET /v1/models HTTP/1.0\r\nHost: 127.0.0.1:{server.port}\r\nAccept: application/json\r\nConnection: close\r\n\r\n".encode()]


@pytest.mark.rule("CL-5")
async def test_one_that_is_silent_holds_up_nothing_and_the_others_are_found() -> None:
    async with serving(None) as (silent, _), serving(MODELS) as (server, _):
        assert [one.server for one in await found(ManualClock(), silent, server)] == [server]
        closed = Server(name="nobody", port=1, provider="x")
        assert await found(ManualClock(), silent, closed) == ()


@pytest.mark.parametrize(
    ("answer", "models"),
    [
        (MODELS, ("qwen3:8b", "llama3")),
        (b'HTTP/1.1 200 OK\r\n\r\n3c\r\n{"data":[{"id":"a/b"}]}\r\n0\r\n\r\n', ("a/b",)),
        (b'HTTP/1.1 200 OK\r\n\r\n{"data":[{"id":"\x1b[2J"},{"id":"fine; rm"},{"id":""}]}', ()),
        (b"HTTP/1.1 404 Not Found\r\n\r\n" + MODELS.partition(b"\r\n\r\n")[2], ()),
        (b"<html>a web server</html>", ()),
        (b"HTTP/1.1 200 OK\r\n\r\n<html></html>", ()),
        (b"", ()),
    ],
)
def test_only_an_answer_that_lists_models_counts(answer: bytes, models: tuple[str, ...]) -> None:
    assert models_of(answer) == models


@pytest.mark.rule("CL-5")
def test_the_offer_names_what_to_type() -> None:
    told = offer([Answering(server=SERVERS[0], models=("ollama_chat/a", "ollama_chat/b")), Answering(server=SERVERS[2], models=("lm_studio/c",))])
    assert told.splitlines() == [
        "Ollama answers here with 2 models: --model ollama_chat/a, or /model in the app.",
        "LM Studio answers here: --model lm_studio/c, or /model in the app.",
    ]
    assert no_model(told).hint.startswith(told)
    assert no_model(told).hint.endswith("Without a key: pidurable demo")


@pytest.mark.rule("AG-5")
def test_the_servers_are_reached_where_they_listen_unless_the_environment_says_otherwise() -> None:
    assert base_urls({}) == {"llamafile": "http://127.0.0.1:8080/v1", "lm_studio": "http://127.0.0.1:1234/v1"}
    assert base_urls({"LM_STUDIO_API_BASE": "http://127.0.0.1:9/v1"}) == {"llamafile": "http://127.0.0.1:8080/v1"}


@pytest.mark.slow
@pytest.mark.rule("CL-5", "CASE-H2")
def test_print_mode_without_a_key_says_what_it_looked_for_and_ends(desk: Desk) -> None:
    ended = desk.run("-p", "hello")
    assert (ended.code, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert "ANTHROPIC_API_KEY" in ended.stderr
    assert "pidurable demo" in ended.stderr
