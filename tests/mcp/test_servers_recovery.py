"""Calls of MCP tools after a kill, and what is known before a server runs: AG-4, TO-2."""

from __future__ import annotations

import pytest

from pi_durable_tui.records.messages import Text
from tests.support.mcp_rig import McpRig, limited
from tests.support.scripted_model import call, say


@pytest.mark.rule("AG-4", "TO-2")
@pytest.mark.parametrize(("tool", "begun"), [("wait", "wait"), ("look_and_wait", "look")])
async def test_after_a_kill_a_call_is_repeated_only_if_its_tool_says_that_it_may_be(desk: McpRig, tool: str, begun: str):
    servers = desk.servers(support=desk.plain())
    desk.rig.extensions = servers.extensions()
    chat = await desk.rig.start(call((f"support__{tool}", {"word": "w"})), say("done"))
    servers.begin(desk.rig.harness.install)
    await servers.know()
    await chat.submit("go")
    await desk.until_called(f"{begun} w")
    await desk.rig.kill()
    (desk.folder / "go").touch()
    await servers.close()

    servers = desk.servers(support=desk.plain())
    desk.rig.extensions = servers.extensions()  # known from last time: nothing runs yet
    assert [facts.state for facts in servers.facts()] == ["not started"]
    harness = await desk.rig.open()
    servers.begin(harness.install)
    chat = await harness.conversation(chat.id)
    await harness.resume()
    await limited(chat.idle())
    [result] = await desk.results(chat.id)
    if tool == "wait":
        assert result.message.content[-1].text == "<harness>\n[error] Tool support__wait was interrupted and may have partially run\n</harness>"
        assert desk.calls("wait") == ["wait w"]
    else:
        assert result.message.content == (Text(text="looked at w"),)
        assert desk.calls("look") == ["look w", "look w"]
    await desk.rig.close()
    await servers.close()


@pytest.mark.rule("AG-4")
async def test_what_a_server_offered_is_known_at_the_next_start_and_only_for_the_same_configuration(desk: McpRig):
    servers = desk.servers(plain=desk.plain())
    await servers.know()
    await servers.close()
    again = desk.servers(plain=desk.plain(), other=desk.plain(env={"A": "b"}))
    assert [(facts.name, facts.state, len(facts.tools)) for facts in again.facts()] == [("other", "not started", 0), ("plain", "not started", 8)]
    await again.close()
