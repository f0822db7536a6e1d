"""What the model library costs in the app's process, and what it would cost in one of its own: `python -m tests.bench.models`.

Each way is measured in fresh processes against a provider on loopback that streams a token every 10 ms, each with the time at which it was sent.
A ticking loop stands for the screen: how late its ticks are is how late a key is echoed. "here": the gateway on a thread beside that loop, as the app
has it. "apart": the gateway in a child, its events as JSON lines over a pipe, read by a thread beside that loop.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path

from pi_durable_tui.clock import SystemClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.harness.ports import ModelRequest, TextDelta
from pi_durable_tui.models.litellm_gateway import LiteLlmGateway
from pi_durable_tui.records.messages import Text, UserMessage

TICK_S = 0.005
TOKEN_S = 0.01
WISH = re.compile(rb"tokens=(\d+)")
HI = (UserMessage(content=(Text(text="hi"),)),)


# ---------------------------------------------------------------------------------------------------------------- provider


async def serve(tokens: int) -> None:
    """Print the port, then answer every request with that many tokens, each the time of its sending in nanoseconds; the first one is sent at once.

    A request whose last message says "tokens=N" is answered with N of them.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = next(int(line.partition(":")[2]) for line in head.splitlines() if line.startswith("content-length"))
        wished = WISH.findall(await reader.readexactly(length))
        count = int(wished[-1]) if wished else tokens
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for number in range(count + 1):
            await asyncio.sleep(TOKEN_S if number else 0)
            delta = {"role": "assistant", "content": f"{time.monotonic_ns()} "} if number < count else {}
            choice = {"index": 0, "delta": delta, "finish_reason": None if number < count else "stop"}
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
            writer.write(f"data: {json.dumps(chunk)}\n\n".encode())
            await writer.drain()
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()
        writer.close()

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):  # whoever asked was killed, or stopped
            await answer(reader, writer)

    server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


# ----------------------------------------------------------------------------------------------------------------- gateway


def gateway(port: int) -> LiteLlmGateway:
    """To the provider on that port."""
    environ = {"OPENAI_API_KEY": "sk-none-00000000", "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"}
    return LiteLlmGateway(clock=SystemClock(), entropy=SeededEntropy(1), environ=environ)


async def tokens_of(port: int, *, loaded: Callable[[], object]) -> AsyncGenerator[tuple[int, str], None]:
    """Load, say so, then yield the tokens of two requests; the first one warms the connection up."""
    models = gateway(port)
    await models.warm_up()
    loaded()
    for number in range(2):
        async for event in models.stream(ModelRequest(model="openai/scripted", messages=HI)):
            if isinstance(event, TextDelta):
                yield number, event.text
    await models.close()


def tell(**said: object) -> None:
    """A line for the parent."""
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


async def child(port: int) -> None:
    """The gateway in a process of its own: a line when it is loaded, then a line per event, at last what it takes."""
    async for number, text in tokens_of(port, loaded=lambda: tell(type="loaded")):
        tell(type="text", request=number, text=text)
    tell(type="memory", mb=memory_mb())
    sys.stdin.read(1)


# ---------------------------------------------------------------------------------------------------------------- measures


def memory_mb() -> float:
    """What this process has for itself, with its share of what it has in common with others."""
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="utf-8").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


async def ticks(until: threading.Event) -> list[float]:
    """How late each tick of the screen was, in milliseconds."""
    late: list[float] = []
    while not until.is_set():
        before = time.monotonic()
        await asyncio.sleep(TICK_S)
        late.append((time.monotonic() - before - TICK_S) * 1000)
    return late


def at(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def measure(port: int, *, is_apart: bool) -> dict[str, float]:
    """One way, in this fresh process."""
    is_loaded, is_over = threading.Event(), threading.Event()
    lags: dict[int, list[float]] = {0: [], 1: []}
    facts: dict[str, float] = {}

    def note(number: int, text: str) -> None:
        lags[number].append((time.monotonic_ns() - int(text)) / 1e6)

    def here() -> None:
        async def work() -> None:
            async for number, text in tokens_of(port, loaded=is_loaded.set):
                note(number, text)

        asyncio.run(work())
        facts["memory MB"] = memory_mb()
        is_over.set()

    def apart() -> None:
        command = [sys.executable, "-m", "tests.bench.models", "--role", "child", "--port", str(port)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for line in process.stdout:
                match json.loads(line):
                    case {"type": "loaded"}:
                        is_loaded.set()
                    case {"type": "text", "request": number, "text": text}:
                        note(number, text)
                    case {"mb": megabytes}:
                        facts["memory MB"] = memory_mb() + megabytes
                        process.stdin.close()
                    case other:
                        raise ValueError(other)
        is_over.set()

    thread = threading.Thread(target=apart if is_apart else here)
    started = time.monotonic()
    thread.start()
    loading = asyncio.run(ticks(is_loaded))
    facts["loaded after s"] = time.monotonic() - started
    cpu = time.process_time()
    streaming = asyncio.run(ticks(is_over))
    thread.join()
    facts |= {
        "echo while loading p50 ms": statistics.median(loading),
        "echo while loading p99 ms": at(loading, 0.99),
        "echo while loading max ms": max(loading),
        "echo while streaming p50 ms": statistics.median(streaming),
        "echo while streaming p99 ms": at(streaming, 0.99),
        "first token ms": lags[1][0],
        "later tokens p50 ms": statistics.median(lags[1]),
        "later tokens p99 ms": at(lags[1], 0.99),
        "CPU of the app while streaming s": time.process_time() - cpu,
        "CPU of all s": sum(os.times()[:4]),
    }
    return facts


@contextlib.contextmanager
def provider(tokens: int) -> Iterator[int]:
    command = [sys.executable, "-m", "tests.bench.models", "--role", "serve", "--tokens", str(tokens)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def compare(tokens: int, rounds: int) -> dict[str, dict[str, float]]:
    """The medians of both ways, by turns."""
    found: dict[str, list[dict[str, float]]] = {"here": [], "apart": []}
    with provider(tokens) as port:
        for _ in range(rounds):
            for way, measured in found.items():
                command = [sys.executable, "-m", "tests.bench.models", "--role", way, "--port", str(port)]
                measured.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    return {way: {name: statistics.median(facts[name] for facts in measured) for name in measured[0]} for way, measured in found.items()}


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":", maxsplit=1)[0])
    parser.add_argument("--role", choices=["serve", "child", "here", "apart"])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    match options.role:
        case "serve":
            asyncio.run(serve(options.tokens))
        case "child":
            asyncio.run(child(options.port))
        case "here" | "apart":
            sys.stdout.write(json.dumps(measure(options.port, is_apart=options.role == "apart")))
        case _:
            ways = compare(options.tokens, options.rounds)
            sys.stdout.write(f"{'':<36}{'here':>10}{'apart':>10}\n")
            for name, value in ways["here"].items():
                sys.stdout.write(f"{name:<36}{value:>10.2f}{ways['apart'][name]:>10.2f}\n")


if __name__ == "__main__":
    main()
