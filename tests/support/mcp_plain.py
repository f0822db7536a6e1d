"""An MCP server of an older kind, made by hand because it starts in no time; run as `python -S mcp_plain.py FOLDER`.

It knows the handshake, a list in two pages and calls, one after the other. Every call that has begun is a line in FOLDER/calls. A call of
`wait` or `look_and_wait` lasts until FOLDER/go exists. With FOLDER/more it says after each call that its tools have changed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
POLL_S = 0.01
READS = {"title": "Look up", "readOnlyHint": True}
WORD = {"type": "object", "properties": {"word": {"type": "string", "maxLength": 20}, "times": {"type": "integer"}}, "required": ["word"]}
ODD = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"at": {"$ref": "#/definitions/point"}},
    "required": ["at"],
    "anyOf": [{"required": ["at"]}],
    "definitions": {"point": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}},
}
PAGES: tuple[list[dict[str, Any]], ...] = (
    [
        {"name": "echo", "description": "Says a word back.", "inputSchema": WORD, "annotations": READS},
        {"name": "wait", "inputSchema": WORD},
        {"name": "look_and_wait", "inputSchema": WORD, "annotations": READS},
        {"name": "die", "inputSchema": {"type": "object"}},
    ],
    [
        {"name": "big", "inputSchema": {"type": "object"}},
        {"name": "environment", "inputSchema": {"type": "object"}},
        {"name": "move to", "description": "Moves.", "inputSchema": ODD},
        {"name": "move/to", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": True}},
    ],
)


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def began(line: str) -> None:
    with (FOLDER / "calls").open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def until_go() -> None:
    while not (FOLDER / "go").exists():
        time.sleep(POLL_S)


def called(name: str, arguments: dict[str, Any]) -> str:
    word = arguments.get("word")
    match name:
        case "echo":
            began(f"echo {word}")
            return " ".join([str(word)] * arguments.get("times", 1))
        case "wait":
            began(f"wait {word}")
            until_go()
            return f"waited for {word}"
        case "look_and_wait":
            began(f"look {word}")
            until_go()
            return f"looked at {word}"
        case "die":
            began("die")
            sys.stderr.write("the last words of the server\n")
            sys.stderr.flush()
            os._exit(3)
        case "big":
            return "\n".join(f"line {number}" for number in range(30_000))
        case "environment":
            return "\n".join(f"{name}={value}" for name, value in sorted(os.environ.items()))
        case _:
            return f"{name} {json.dumps(arguments)} \x1b[31mred \ud800"


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "plain", "version": "1"}}
            return {"result": about}
        case "tools/list" if params.get("cursor") is None:
            return {"result": {"tools": PAGES[0], "nextCursor": "2"}}
        case "tools/list":
            return {"result": {"tools": [*PAGES[1], *([{"name": "more", "inputSchema": {"type": "object"}}] if (FOLDER / "more").exists() else [])]}}
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": called(params["name"], params.get("arguments") or {})}], "isError": False}}
        case _:
            return {"error": {"code": -32601, "message": f"no {method}"}}


def main() -> None:
    sys.stdout.write("a greeting that is no message\n")
    began(f"start {os.getpid()}")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            say({"id": message["id"], **answer(message["method"], message.get("params") or {})})
            if (FOLDER / "more").exists() and message["method"] == "tools/call":
                say({"method": "notifications/tools/list_changed"})


if __name__ == "__main__":
    main()
