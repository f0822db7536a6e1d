"""An MCP server behind an address, made by hand: it wants a token in a header, and tells which headers it was sent."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "a-token-of-the-tests"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"  # so that nothing is answered any more once it is closed

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers.get("authorization") != f"Bearer {TOKEN}":
            self._send(401, b"")
        elif "id" not in message:
            self._send(202, b"")
        else:
            self._send(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **self._answer(message["method"])}).encode())

    def do_GET(self) -> None:
        self._send(405, b"")

    def do_DELETE(self) -> None:
        self._send(405, b"")

    def log_message(self, format: str, *args: object) -> None: ...

    def _answer(self, method: str) -> dict[str, Any]:
        match method:
            case "initialize":
                return {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "by hand", "version": "1"}}}
            case "tools/list":
                return {"result": {"tools": [{"name": "headers", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]}}
            case "tools/call":
                return {"result": {"content": [{"type": "text", "text": self.headers["authorization"]}]}}
            case _:
                return {"error": {"code": -32601, "message": f"no {method}"}}

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def listening(own: socket.socket) -> Generator[None]:
    """The server on a port of the test's, while it listens; afterwards the port refuses again."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = own
    server.server_activate()
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        own.shutdown(socket.SHUT_RDWR)
