"""A model provider on loopback that says what a script tells it to, in the form it is asked in, over a real socket.

The path of a request chooses the form: `/chat/completions` and `/responses` of OpenAI, `/messages` of Anthropic (see `wire_forms.py`).

It is a verified fake for gateways and whole programs, in process (`async with ModelServer(script) as server`) and as a process of its own that
outlives the program under test:

    python -m tests.support.model_server --script FILE --port 0 --log FILE [--strict]

which prints its port as the first line of stdout and runs until it is ended.

**Script**: a JSON list with one item per model request, taken in the order of arrival; an item is a list of steps. A request that a kill cut off
has used its item up; the next request gets the next one. Without an item left the answer is HTTP 400 `script_exhausted`.

    {"text": "Hello"}                                        a text delta
    {"words": "Hello big world", "delay_ms": 20}             a text delta per word, `delay_ms` before each
    {"reason": "Let me see"}                                 a reasoning delta
    {"reason": "…", "signature": "s1"}                       the same, closed by a signature, in the forms that have signatures
    {"redacted": "data"}                                     a thought that only the provider can read, in those forms
    {"call": {"index": 0, "id": "c1", "name": "bash", "arguments": "{\\"command\\": "}}    a piece of a tool call; every key may be left out
    {"finish": "stop"}                                       the finish reason: stop, tool_calls, length …
    {"usage": {"prompt": 10, "completion": 5, "cached": 0}}  the last chunk with usage (sent only when the request asks for it)
    {"http": 429, "body": {…} or "text", "headers": {…}}     instead of a stream; must be the first step that sends something
    {"refuse": "overloaded", "message": "…", "headers": {…}} the same in the form's own words and status, see `wire_forms.STATUS`
    {"fail": "overloaded", "message": "…"}                   an error in the middle of the stream, in the form's own words
    {"event": {…} or "text"}                                 any SSE data line after HTTP 200, such as an error object
    {"raw": "…"}                                             any bytes of the body; no `[DONE]` follows by itself
    {"delay_ms": 50}                                         wait; also as a key of any other step: wait before it
    {"hold": "name"}                                         wait until `server.release("name")`
    {"wait_file": "path"}                                    wait until this file exists; the log says `held` when it starts to wait
    {"stall": true}                                          keep the connection open and silent until the client leaves
    {"cut": true}                                            drop the connection in the middle of the body
    {"eof": true}                                            end the body properly, without `[DONE]`

After the last step the stream ends as its form ends (`[DONE]` in the chat form). **Strict** mode refuses with HTTP 400 what the real provider of the
form refuses (`wire_strictness.py`); such a request uses up no item.

**Log**: a JSON line per event: `{"event": "request", "n", "at_ms", "path", "headers", "body"}`, `{"event": "held", "n", "at_ms", "name"}`,
`{"event": "end", "n", "at_ms", "how"}` with how = complete, cut, client_left, http, refused or stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import pathlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from pi_durable_tui.clock import SystemClock
from tests.support.wire_forms import STATUS, Issued, Wire, error_body, form_of_path, wire_for
from tests.support.wire_strictness import wire_violation

Step = dict[str, Any]
Script = Sequence[Sequence[Step]]

POLL_MS = 5


def text(piece: str, **more: Any) -> Step:
    return {"text": piece, **more}


def words(sentence: str, *, delay_ms: float = 0) -> Step:
    return {"words": sentence, "delay_ms": delay_ms}


def reason(piece: str, signature: str | None = None) -> Step:
    return {"reason": piece, **({"signature": signature} if signature else {})}


def redacted(data: str) -> Step:
    return {"redacted": data}


def refuse(kind: str, message: str, headers: dict[str, str] | None = None) -> Step:
    return {"refuse": kind, "message": message, "headers": headers or {}}


def fail(kind: str, message: str) -> Step:
    return {"fail": kind, "message": message}


def call(index: int | None, call_id: str | None, name: str | None, arguments: str | None) -> Step:
    """A piece of a call; None leaves the key out, as providers do after the first piece."""
    parts = {"index": index, "id": call_id, "name": name, "arguments": arguments}
    return {"call": {key: value for key, value in parts.items() if value is not None}}


def finish(why: str = "stop") -> Step:
    return {"finish": why}


def usage(prompt: int, completion: int, cached: int = 0) -> Step:
    return {"usage": {"prompt": prompt, "completion": completion, "cached": cached}}


def http(status: int, body: Any = "", headers: dict[str, str] | None = None) -> Step:
    return {"http": status, "body": body, "headers": headers or {}}


def event(value: Any) -> Step:
    return {"event": value}


def hold(name: str) -> Step:
    return {"hold": name}


def wait_file(path: object) -> Step:
    return {"wait_file": str(path)}


CUT: Step = {"cut": True}
EOF: Step = {"eof": True}
STALL: Step = {"stall": True}


@dataclass(slots=True, kw_only=True)
class Received:
    """One request as it arrived. `how` says how its answer ended; None while it goes on."""

    n: int
    at_ms: int
    path: str
    headers: dict[str, str]
    body: Any
    how: str | None = None
    refusal: str | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class _EndedError(Exception):
    """The answer ends here; the argument says how."""


class ModelServer:
    """The server; see the module text for script, strict mode and log.

    Args:
        answer: Chooses what is answered to a request, in place of the script.

    Attributes:
        requests: What arrived, in order, refused ones included.
        arrived: Set once there was a request.
        base_url: Of OpenAI's forms, ending in `/v1`; Anthropic's is `root_url`.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        strict: bool = False,
        port: int = 0,
        log: pathlib.Path | None = None,
        answer: Callable[[Received], Sequence[Step]] | None = None,
    ) -> None:
        self.requests: list[Received] = []
        self.arrived = asyncio.Event()
        self.port = port
        self._items = [list(item) for item in script]
        self._next = 0
        self._issued: list[Issued] = []
        self._strict = strict
        self._chosen = answer
        self._log = log
        self._clock = SystemClock()
        self._holds: dict[str, asyncio.Event] = {}
        self._reached: dict[str, asyncio.Event] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, limit=2**24)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def root_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def bodies(self) -> list[Any]:
        """The request bodies, in order."""
        return [request.body for request in self.requests]

    @property
    def refused(self) -> list[Received]:
        """What strict mode refused."""
        return [request for request in self.requests if request.how == "refused"]

    def drop(self) -> None:
        """Close every open connection at once, as the end of the client's process would."""
        for connection in list(self._connections):
            connection.cancel()

    def release(self, name: str) -> None:
        """Let the stream go on that holds, or will hold, at `name`."""
        self._holds.setdefault(name, asyncio.Event()).set()

    async def reached(self, name: str) -> None:
        """Return once a stream holds at `name`."""
        await self._reached.setdefault(name, asyncio.Event()).wait()

    # -------------------------------------------------------------------------------------------------------- connections

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):  # cancelled: by this server only
                await self._serve(reader, writer)
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        body = json.loads(raw) if raw else None
        received = Received(n=len(self.requests), at_ms=self._clock.now_ms(), path=head[0].split(" ")[1], headers=headers, body=body)
        self.requests.append(received)
        self.arrived.set()
        self._write_log("request", received, path=received.path, headers=headers, body=body)
        answer = asyncio.ensure_future(self._answer(received, writer))
        gone = asyncio.ensure_future(reader.read(1))  # nothing more is asked on this connection: a byte or EOF is a client that left
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            how = answer.result() if answer.done() else "client_left"
        except ConnectionError:
            how = "client_left"
        except asyncio.CancelledError:
            how = "stopped"
            raise
        finally:
            answer.cancel()
            gone.cancel()
            await asyncio.gather(answer, gone, return_exceptions=True)
            received.how = how
            received.ended.set()
            self._write_log("end", received, how=how)

    async def _answer(self, received: Received, writer: asyncio.StreamWriter) -> str:
        form = form_of_path(received.path)
        found = wire_violation(form, received.body, self._issued) if self._strict else None
        if found is not None:
            received.refusal = found
            await self._plain(writer, STATUS["invalid"], error_body(form, "invalid", found))
            return "refused"
        if self._chosen is None and self._next >= len(self._items):
            await self._plain(writer, 400, {"error": {"message": "the script has no more requests", "type": "script_exhausted", "code": None}})
            return "http"
        steps = self._chosen(received) if self._chosen is not None else self._items[self._next]
        self._next += 1
        wire = wire_for(form, received.n, received.body, steps)
        stream = _Stream(writer, received, wire)
        try:
            for step in steps:
                await self._play(step, stream)
            await stream.end()
        except _EndedError as over:
            return str(over)
        finally:
            self._issued.append(wire.issued())
        return "complete"

    async def _play(self, step: Step, stream: _Stream) -> None:
        if "words" not in step and step.get("delay_ms"):
            await self._clock.sleep_ms(step["delay_ms"])
        match step:
            case {"hold": str(name)}:
                self._reached.setdefault(name, asyncio.Event()).set()
                self._write_log("held", stream.received, name=name)
                await self._holds.setdefault(name, asyncio.Event()).wait()
            case {"wait_file": str(path)}:
                self._write_log("held", stream.received, name=path)
                while not _exists(path):
                    await self._clock.sleep_ms(POLL_MS)
            case {"stall": _}:
                await stream.start()
                await asyncio.Event().wait()
            case {"http": int(status)}:
                await self._plain(stream.writer, status, step.get("body", ""), step.get("headers"))
                raise _EndedError("http")
            case {"refuse": str(kind)}:
                form = form_of_path(stream.received.path)
                await self._plain(stream.writer, STATUS[kind], error_body(form, kind, step["message"]), step.get("headers"))  # type: ignore[index,arg-type]
                raise _EndedError("http")
            case {"words": str(sentence)}:
                for index, word in enumerate(sentence.split(" ")):
                    await self._clock.sleep_ms(step.get("delay_ms", 0))
                    await stream.play({"piece": word if index == 0 else f" {word}"})
            case _:
                await stream.play(step)

    async def _plain(self, writer: asyncio.StreamWriter, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        lines = {"content-type": "application/json", **(headers or {}), "content-length": str(len(content)), "connection": "close"}
        writer.write("".join([f"HTTP/1.1 {status} Scripted\r\n", *(f"{name}: {value}\r\n" for name, value in lines.items()), "\r\n"]).encode())
        writer.write(content)
        await writer.drain()

    def _write_log(self, kind: str, received: Received, **more: Any) -> None:
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"event": kind, "n": received.n, "at_ms": self._clock.now_ms(), **more}) + "\n")


class _Stream:
    """One SSE body, sent in HTTP chunks so that a cut differs from an end."""

    def __init__(self, writer: asyncio.StreamWriter, received: Received, wire: Wire) -> None:
        self.writer = writer
        self.received = received
        self._wire = wire
        self._is_raw = False
        self._started = False

    async def start(self) -> None:
        if not self._started:
            self._started = True
            self.writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n")
            await self.writer.drain()

    async def send(self, data: bytes) -> None:
        await self.start()
        self.writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await self.writer.drain()

    async def end(self, *, is_closed: bool = True) -> None:
        """End the body properly; `is_closed`: with what the form closes its stream with."""
        for event in self._wire.end() if is_closed and not self._is_raw else []:
            await self.send(event.encode())
        await self.start()
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def play(self, step: Step) -> None:
        match step:
            case {"event": value}:
                await self.send(f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n".encode())
            case {"raw": str(value)}:
                self._is_raw = True
                await self.send(value.encode())
            case {"cut": _}:
                await self.start()
                raise _EndedError("cut")
            case {"eof": _}:
                await self.end(is_closed=False)
                raise _EndedError("complete")
            case _ if set(step) == {"delay_ms"}:
                pass
            case _:
                for event in self._wire.play(step):
                    await self.send(event.encode())


def _exists(path: str) -> bool:
    return pathlib.Path(path).exists()


async def _run(server: ModelServer) -> None:
    async with server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="A scripted model provider on loopback.")
    parser.add_argument("--script", required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log")
    parser.add_argument("--strict", action="store_true")
    arguments = parser.parse_args()
    script = json.loads(pathlib.Path(arguments.script).read_text(encoding="utf-8"))
    log = pathlib.Path(arguments.log) if arguments.log else None
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run(ModelServer(script, strict=arguments.strict, port=arguments.port, log=log)))


if __name__ == "__main__":
    main()
