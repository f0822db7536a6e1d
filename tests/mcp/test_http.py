"""Servers behind an address: AG-4, SA-17."""

from __future__ import annotations

import asyncio
import sys
from contextlib import ExitStack

import pytest

from pi_durable_tui.mcp.config import McpServer
from pi_durable_tui.records.messages import Text
from tests.support.mcp_http import TOKEN, listening
from tests.support.mcp_rig import HERE, McpRig, limited, own_port, until, url_of
from tests.support.scripted_model import call, say


@pytest.mark.rule("AG-4", "SA-17")
async def test_a_header_from_the_environment_is_sent_along_and_its_value_stands_nowhere(desk: McpRig):
    desk.environ = {"DOCS_TOKEN": TOKEN}
    with own_port() as own, listening(own):
        servers = desk.servers(docs=McpServer(url=url_of(own), headers={"Authorization": "Bearer $DOCS_TOKEN"}))
        assert await servers.know() == ()
        desk.rig.extensions = servers.extensions()
        chat = await desk.rig.start(call(("docs__headers", {})), say("done"))
        await chat.submit("go")
        await limited(chat.idle())
        [result] = await desk.results(chat.id)
        assert result.message.content == (Text(text=f"Bearer {TOKEN}"),)
        assert TOKEN not in repr(servers.facts())
        assert TOKEN.encode() not in b"".join(desk.shelf.kept.values())
        await desk.rig.close()
        await servers.close()


@pytest.mark.rule("AG-4")
async def test_an_address_that_refuses_or_does_not_answer_is_told_and_used_again_when_it_does(desk: McpRig):
    desk.environ = {"DOCS_TOKEN": "wrong"}
    with own_port() as own, ExitStack() as stack:
        settings = McpServer(url=url_of(own), headers={"Authorization": "Bearer $DOCS_TOKEN"})
        servers = desk.servers(docs=settings)
        assert await servers.know() == ("The MCP server docs cannot be used now: All connection attempts failed.",)
        stack.enter_context(listening(own))
        assert await servers.know() == ("The MCP server docs cannot be used now: Server returned an error response (HTTP 401).",)
        await servers.close()
        desk.environ = {"DOCS_TOKEN": TOKEN}
        servers = desk.servers(docs=settings)
        assert await servers.know() == ()
        desk.rig.extensions = servers.extensions()
        chat = await desk.rig.start(call(("docs__headers", {})), call(("docs__headers", {})), say("done"))
        stack.close()
        await chat.submit("go")
        await until(lambda: len(desk.rig.model.requests) > 1)
        await limited(chat.idle())
    results = [entry.message.content[-1].text for entry in await desk.results(chat.id)]
    assert "Whether the call has had an effect is not known." in results[0]
    assert "The MCP server docs cannot be reached, so nothing was done: All connection attempts failed." in results[1]
    await desk.rig.close()
    await servers.close()


@pytest.mark.rule("AG-4")
async def test_the_librarys_own_server_behind_an_address_streams_its_answers(desk: McpRig):
    with own_port() as own:
        own.listen()
        arguments = (str(HERE / "mcp_server.py"), str(desk.folder), "http", str(own.fileno()))
        quiet = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=quiet, stderr=quiet, pass_fds=[own.fileno()])
        servers = desk.servers(far=McpServer(url=url_of(own)))
        try:
            assert await servers.know() == ()
            desk.rig.extensions = servers.extensions()
            chat = await desk.rig.start(call(("far__echo", {"word": "far"}), ("far__wait", {"word": "w"})), say("done"))
            await chat.submit("go")
            await desk.until_called("wait w")
            (desk.folder / "go").touch()
            await limited(chat.idle())
            assert [entry.message.content for entry in await desk.results(chat.id)] == [(Text(text="far"),), (Text(text="waited for w"),)]
            await desk.rig.close()
        finally:
            await servers.close()
            process.kill()
            await process.wait()
