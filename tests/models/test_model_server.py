"""The provider fake, checked from the outside over real sockets: what a client sees is what the script says."""

from __future__ import annotations

import asyncio
import json
import pathlib
import sys
from typing import Any

import pytest

from tests.support.model_server import CUT, EOF, STALL, ModelServer, call, event, finish, hold, http, reason, text, usage, words
from tests.support.model_strictness import violation

ROOT = pathlib.Path(__file__).parents[2]
USER = {"role": "user", "content": "hi"}


def body(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"model": "m", "stream": True, "stream_options": {"include_usage": True}, "messages": list(messages or (USER,))}


async def connect(port: int, value: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    content = json.dumps(value).encode()
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " + str(len(content)).encode() + b"\r\n\r\n" + content)
    await writer.drain()
    return reader, writer


async def ask(port: int, value: Any) -> bytes:
    """The whole answer, head and body as they came over the wire."""
    reader, writer = await connect(port, value)
    answer = await reader.read()
    writer.close()
    return answer


def deltas(answer: bytes) -> list[Any]:
    """The SSE data lines of an answer, decoded where they are JSON."""
    lines = [line[6:] for line in answer.decode().splitlines() if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


async def test_a_script_item_is_sent_step_by_step_as_one_sse_stream() -> None:
    script = [[reason("hm"), text("a"), words("b c"), call(0, "c1", "bash", "{}"), finish("tool_calls"), usage(7, 3, 2)]]
    async with ModelServer(script) as server:
        answer = await ask(server.port, body())

    chunks = deltas(answer)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"0\r\n\r\n")
    assert chunks[-1] == "[DONE]"
    assert [choice["delta"] for chunk in chunks[:-2] for choice in chunk["choices"]] == [
        {"role": "assistant", "reasoning_content": "hm"},
        {"role": "assistant", "content": "a"},
        {"content": "b"},
        {"content": " c"},
        {"role": "assistant", "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]},
        {},
    ]
    assert chunks[-2]["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10, "prompt_tokens_details": {"cached_tokens": 2}}
    assert [(request.body, request.how) for request in server.requests] == [(body(), "complete")]


async def test_items_are_taken_in_order_and_an_empty_script_says_so() -> None:
    async with ModelServer([[text("1")], [http(429, {"error": {"message": "slow"}}, {"retry-after": "2"})]]) as server:
        first, second, third = [await ask(server.port, body()) for _ in range(3)]

    assert deltas(first)[0]["choices"][0]["delta"]["content"] == "1"
    assert second.startswith(b"HTTP/1.1 429 Scripted\r\n")
    assert b"retry-after: 2\r\n" in second
    assert third.startswith(b"HTTP/1.1 400 Scripted\r\n")
    assert b"script_exhausted" in third


@pytest.mark.parametrize(("last", "ends_properly", "how"), [(CUT, False, "cut"), (EOF, True, "complete"), (event("[DONE]"), True, "complete")])
async def test_a_cut_differs_from_an_end_on_the_wire(last: dict[str, Any], ends_properly: bool, how: str) -> None:
    async with ModelServer([[text("half"), last]]) as server:
        answer = await ask(server.port, body())

    assert answer.endswith(b"0\r\n\r\n") == ends_properly
    assert server.requests[0].how == how


@pytest.mark.parametrize("waiting", [STALL, hold("for ever")])
async def test_a_client_that_leaves_a_waiting_stream_is_noticed(waiting: dict[str, Any]) -> None:
    async with ModelServer([[text("x"), waiting]]) as server:
        reader, writer = await connect(server.port, body())
        await reader.readuntil(b'"x"')
        writer.close()
        await server.requests[0].ended.wait()

    assert server.requests[0].how == "client_left"


async def test_a_held_stream_goes_on_when_it_is_released() -> None:
    async with ModelServer([[text("x"), hold("gate"), text("y")]]) as server:
        reader, writer = await connect(server.port, body())
        await server.reached("gate")
        how_while_held = server.requests[0].how
        server.release("gate")
        answer = await reader.read()
        writer.close()

    assert how_while_held is None
    assert [chunk["choices"][0]["delta"]["content"] for chunk in deltas(answer)[:-1]] == ["x", "y"]


@pytest.mark.slow
async def test_the_process_outlives_a_killed_client_and_logs_what_it_saw(tmp_path: pathlib.Path) -> None:
    gate, script, log = tmp_path / "gate", tmp_path / "script.json", tmp_path / "log.jsonl"
    script.write_text(json.dumps([[text("a"), {"wait_file": str(gate)}], [text("b")]]))
    command = [sys.executable, "-m", "tests.support.model_server", "--script", str(script), "--log", str(log)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        port = int(await process.stdout.readline())
        reader, writer = await connect(port, body())
        await reader.readuntil(b'"a"')
        writer.transport.abort()
        second = await ask(port, body())
    finally:
        process.terminate()
        await process.wait()

    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert deltas(second)[0]["choices"][0]["delta"]["content"] == "b"
    assert sorted((line["event"], line["n"], line.get("how")) for line in events) == [
        ("end", 0, "client_left"),
        ("end", 1, "complete"),
        ("held", 0, None),
        ("request", 0, None),
        ("request", 1, None),
    ]


def assistant(content: Any, *calls: tuple[str, Any]) -> dict[str, Any]:
    tool_calls = [{"id": call_id, "type": "function", "function": {"name": "f", "arguments": arguments}} for call_id, arguments in calls]
    return {"role": "assistant", "content": content, **({"tool_calls": tool_calls} if tool_calls else {})}


def result(call_id: str, content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [{"role": "system", "content": "s"}, USER, assistant("a"), USER],
        [USER, assistant(None, ("a", "{}"), ("b", '{"x": 1}')), result("b"), result("a")],
        [{"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:,"}}]}],
    ],
)
def test_strictness_accepts_what_providers_accept(messages: list[dict[str, Any]]) -> None:
    assert violation({"messages": messages}) is None


@pytest.mark.parametrize(
    ("messages", "words_of_it"),
    [
        ([], "at least one message"),
        ([USER, assistant(None, ("a", "{}")), USER], "must be followed by tool messages"),
        ([USER, assistant(None, ("a", "{}"))], "did not have response messages: a"),
        ([USER, assistant(None, ("a", "{}")), result("a"), result("a")], "must be a response to a preceding message"),
        ([USER, result("z")], "must be a response to a preceding message"),
        ([USER, assistant(None, ("a", "")), result("a")], "must be a JSON object string"),
        ([USER, assistant(None, ("a", "[]")), result("a")], "must be a JSON object string"),
        ([USER, assistant(None, ("a", {"x": 1})), result("a")], "must be a JSON object string"),
        ([USER, assistant(None, ("a", "{}"), ("a", "{}")), result("a"), result("a")], "unique, non-empty ids"),
        ([USER, assistant(None), USER], "must have content or tool_calls"),
        ([USER, assistant("  \n"), USER], "non-whitespace"),
        ([{"role": "user", "content": [{"type": "text", "text": ""}]}], "non-whitespace"),
        ([USER, assistant(None, ("a", "{}")), result("a", "")], "non-whitespace"),
        ([USER, assistant("a")], "must be of role user or tool"),
    ],
)
@pytest.mark.rule("CX-1", "CASE-B2", "CASE-B6")
def test_strictness_refuses_what_providers_refuse(messages: list[dict[str, Any]], words_of_it: str) -> None:
    assert words_of_it in str(violation({"messages": messages}))


async def test_strict_mode_refuses_with_400_and_keeps_the_item_for_the_next_request() -> None:
    async with ModelServer([[text("good")]], strict=True) as server:
        refused = await ask(server.port, body({"role": "user", "content": " "}))
        accepted = await ask(server.port, body())

    assert refused.startswith(b"HTTP/1.1 400 Scripted\r\n")
    assert deltas(accepted)[0]["choices"][0]["delta"]["content"] == "good"
    assert [request.how for request in server.requests] == ["refused", "complete"]
