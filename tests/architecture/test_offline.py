"""The guard of conftest.py does close the network, and leaves loopback open."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.conftest import is_local


def test_a_connection_to_another_machine_is_refused_before_a_packet_leaves():
    with pytest.raises(RuntimeError, match="without a network"):
        socket.create_connection(("192.0.2.1", 80))


def test_a_name_is_not_looked_up():
    with pytest.raises(RuntimeError, match="without a network"):
        socket.getaddrinfo("example.org", 80)


def test_loopback_and_unix_sockets_work(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getpeername() == server.getsockname()
    left, right = socket.socketpair(socket.AF_UNIX)
    with left, right:
        left.sendall(b"x")
        assert right.recv(1) == b"x"


@pytest.mark.parametrize(
    ("address", "local"),
    [
        (("127.0.0.1", 1), True),
        (("::1", 1, 0, 0), True),
        ("/run/x.sock", True),
        ("localhost", True),
        (None, True),
        (("10.0.0.1", 1), False),
        ("localhost.example.org", False),
        (("2001:db8::1", 1, 0, 0), False),
    ],
)
def test_what_counts_as_local(address: object, local: bool):
    assert is_local(address) is local


def test_every_test_has_an_empty_home_and_no_keys(private_home: Path):
    assert Path.home() == private_home
    assert list(private_home.iterdir()) == []
    assert [name for name in os.environ if name.endswith("_API_KEY")] == []
