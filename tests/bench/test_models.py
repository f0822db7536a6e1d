"""The provider of the bench tells when it has sent what; and both places of the model library are measured."""

from __future__ import annotations

import json
import os
import socket
import time

import pytest

from tests.bench.models import compare, provider


def asked(port: int, said: str) -> list[str]:
    """The pieces of the answer to a message."""
    body = json.dumps({"messages": [{"role": "user", "content": said}]}).encode()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        with connection.makefile("rb") as answer:
            chunks = [json.loads(line[6:]) for line in answer if line.startswith(b"data: {")]
    return [piece for chunk in chunks if (piece := chunk["choices"][0]["delta"].get("content"))]


@pytest.mark.slow
def test_the_provider_says_the_time_as_often_as_it_is_asked_to() -> None:
    with provider(2) as port:
        before_ns = time.monotonic_ns()
        times = [[int(piece) for piece in asked(port, said)] for said in ("hi", "tokens=4")]
        after_ns = time.monotonic_ns()
    assert [len(each) for each in times] == [2, 4]
    told = [before_ns, *times[0], *times[1], after_ns]
    assert told == sorted(told)


@pytest.mark.slow
@pytest.mark.skipif("PIDURABLE_TEST_BENCH" not in os.environ, reason="loads the model library four times; for by hand")
def test_both_places_of_the_model_library_are_measured() -> None:
    ways = compare(5, 1)
    assert ways["here"].keys() == ways["apart"].keys()
    assert all(value > 0 for value in ways["here"].values())
