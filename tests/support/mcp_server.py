"""A real MCP server for tests, made with the protocol's own library; run as `python mcp_server.py FOLDER [http FD]`, where FD is a socket that listens.

It starts slowly: what needs no new part of the protocol is tested with `mcp_plain`. Every call that has begun is a line in FOLDER/calls. A
call of `wait` lasts until FOLDER/go exists.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.types import CallToolResult, EmbeddedResource, ResourceLink, TextContent, TextResourceContents, ToolAnnotations
from pydantic import Field

FOLDER = Path(sys.argv[1])
PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
READS = ToolAnnotations(title="Look up", read_only_hint=True)
POLL_S = 0.01

server = MCPServer("support", instructions="Look before you change.")


def began(line: str) -> None:
    with (FOLDER / "calls").open("a", encoding="utf-8") as file:
        file.write(line + "\n")


async def until_go() -> None:
    while not (FOLDER / "go").exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(POLL_S)


@server.tool(annotations=READS, description="Says a word back.")
async def echo(word: Annotated[str, Field(description="What to say.", max_length=20)], times: int = 1) -> str:
    began(f"echo {word}")
    return " ".join([word] * times)


@server.tool(description="Waits, and changes something.")
async def wait(word: str, ctx: Context[Any, Any]) -> str:
    began(f"wait {word}")
    await ctx.report_progress(1, 2, "half done")
    try:
        await until_go()
    except asyncio.CancelledError:
        began("cancelled")
        raise
    return f"waited for {word}"


@server.tool()
async def fail() -> str:
    raise ValueError("it did not work \x1b[31mat all")


@server.tool()
async def mixed() -> CallToolResult:
    return CallToolResult(
        content=[
            TextContent(text="a text"),
            Image(data=PIXEL, format="png").to_image_content(),
            ResourceLink(name="notes", uri="file:///notes.txt", description="What was said."),
            EmbeddedResource(resource=TextResourceContents(uri="memo://1", text="remember")),
        ]
    )


@server.tool()
async def figures() -> dict[str, int]:
    return {"a": 1}


@server.tool()
async def grow(ctx: Context[Any, Any]) -> str:
    async def grown() -> str:
        return "grown"

    server.add_tool(grown, name="grown", description="New.")
    await ctx.notify_tools_changed()
    return "there is one more now"


def main() -> None:
    sys.stdout.write("a greeting that is no message\n")
    sys.stdout.flush()
    began(f"start {os.getpid()}")
    if sys.argv[2:3] == ["http"]:
        uvicorn.run(server.streamable_http_app(), fd=int(sys.argv[3]))
    else:
        server.run("stdio")


if __name__ == "__main__":
    main()
