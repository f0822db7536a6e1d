"""An MCP server of an older kind, without the protocol's library; run as `python mcp_plain.py FOLDER`.

It knows the handshake, a list in two pages and calls, and nothing else. With FOLDER/more it says that its tools have changed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"at": {"$ref": "#/definitions/point"}},
    "required": ["at"],
    "anyOf": [{"required": ["at"]}],
    "definitions": {"point": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}},
}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tools(cursor: str | None) -> dict[str, Any]:
    if cursor is None:
        return {"tools": [{"name": "move to", "description": "Moves.", "inputSchema": SCHEMA}], "nextCursor": "2"}
    more = [{"name": "more", "inputSchema": {"type": "object"}}] if (FOLDER / "more").exists() else []
    return {"tools": [{"name": "move/to", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": True}}, *more]}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "plain", "version": "1"}}
            return {"result": about}
        case "tools/list":
            return {"result": tools(params.get("cursor"))}
        case "tools/call":
            text = json.dumps([params["name"], params.get("arguments")])
            return {"result": {"content": [{"type": "text", "text": f"{text} \x1b[31mred \ud800"}], "isError": False}}
        case _:
            return {"error": {"code": -32601, "message": f"no {method}"}}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            say({"id": message["id"], **answer(message["method"], message.get("params") or {})})
            if (FOLDER / "more").exists() and message["method"] == "tools/call":
                say({"method": "notifications/tools/list_changed"})


if __name__ == "__main__":
    main()
