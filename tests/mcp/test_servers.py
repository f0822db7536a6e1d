"""Real servers as tools of a harness: AG-4, EX-1, SA-11, SA-17, TO-4, TU-19."""

from __future__ import annotations

import pytest

from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.mcp.config import McpServer
from pi_durable_tui.mcp.offer import tool_name
from pi_durable_tui.mcp.servers import Servers
from pi_durable_tui.permissions.approver import approver
from pi_durable_tui.records.messages import Image, Text
from tests.support.mcp_rig import McpRig, is_alive, limited, until
from tests.support.scripted_model import call, say


async def opened(desk: McpRig, servers: Servers, *scripts: object):
    """A chat in which everything is allowed, with the servers' tools."""
    desk.rig.extensions = servers.extensions()
    chat = await desk.rig.start(*scripts)
    servers.begin(desk.rig.harness.install)
    return chat


async def close(desk: McpRig, servers: Servers) -> None:
    await desk.rig.close()
    await servers.close()


@pytest.mark.rule("AG-4")
async def test_a_servers_tools_are_offered_called_and_answered_as_the_agents_own(desk: McpRig):
    servers = desk.servers(support=desk.modern())
    chat = await opened(desk, servers, call(("support__echo", {"word": "hey", "times": 2}), ("support__mixed", {}), ("support__fail", {})), say("done"))
    assert await servers.know() == ()
    await chat.submit("go")
    await limited(chat.idle())
    [request, _] = desk.rig.model.requests
    tools = {tool.name: tool for tool in request.tools}
    assert tools["support__echo"].description == "Says a word back."
    assert tools["support__echo"].parameters["properties"]["word"] == {"type": "string", "title": "Word", "description": "What to say.", "maxLength": 20}
    assert "Look before you change." in repr(request.messages[0])
    echo, mixed, failed = await desk.results(chat.id)
    assert (echo.message.content, echo.message.is_error, echo.data["title"]) == ((Text(text="hey hey"),), False, "support: Look up (word: hey, times: 2)")
    assert mixed.message.content[0] == Text(text="a text\n[Resource notes at file:///notes.txt: What was said.]\n[Resource memo://1]\nremember")
    assert isinstance(mixed.message.content[1], Image)
    assert (failed.message.content[0].text, failed.message.is_error) == ("Error executing tool fail", True)
    await close(desk, servers)


@pytest.mark.rule("AG-4")
async def test_arguments_that_do_not_fit_are_refused_before_the_server_hears_of_them(desk: McpRig):
    servers = desk.servers(support=desk.plain())
    chat = await opened(desk, servers, call(("support__echo", {"word": "x" * 30})), say("done"))
    await servers.know()
    await chat.submit("go")
    await limited(chat.idle())
    [result] = await desk.results(chat.id)
    assert "The arguments of support__echo do not fit, so it was not run" in result.message.content[-1].text
    assert desk.calls("echo") == []
    await close(desk, servers)


@pytest.mark.rule("AG-4", "TU-19")
@pytest.mark.parametrize(("trusts", "asked"), [(False, ["support__big", "support__echo"]), (True, ["support__big"])])
async def test_every_call_is_asked_about_unless_the_person_believes_that_the_tool_only_reads(desk: McpRig, trusts: bool, asked: list[str]):
    servers = desk.servers(support=desk.plain(trust_read_only=trusts))
    desk.rig.approver = approver()
    desk.rig.extensions = servers.extensions()
    harness = await desk.rig.open(call(("support__echo", {"word": "a"}), ("support__big", {})), say("done"))
    servers.begin(harness.install)
    await servers.know()
    chat = await harness.create_conversation(Agent(model="test/model", approval="ask", cwd=str(desk.folder)))
    await chat.submit("go")
    questions: dict[str, int] = {}
    while len(questions) < len(asked):
        await desk.rig.settle()
        questions = {slot.name: slot.question for slot in (await desk.rig.live(chat.id)).tools if slot.question is not None}
    assert sorted(questions) == asked
    for question in questions.values():
        await chat.answer(question, "deny", by="test")
    await limited(chat.idle())
    assert desk.calls("echo") == (["echo a"] if trusts else [])
    await close(desk, servers)


@pytest.mark.rule("AG-4")
async def test_what_a_tool_says_of_itself_decides_whether_it_may_be_repeated_and_nothing_else(desk: McpRig):
    servers = desk.servers(plain=desk.plain())
    await servers.know()
    kinds = {tool.name: (tool.replay, tool.access) for extension in servers.extensions() for tool in extension.tools}
    assert {name for name, kind in kinds.items() if kind == ("safe", "command")} == {"plain__echo", "plain__look_and_wait", tool_name("plain", "move/to")}
    assert {name for name, kind in kinds.items() if kind == ("unsafe", "command")} == {
        *("plain__wait", "plain__die", "plain__big", "plain__environment"),
        tool_name("plain", "move to"),
    }
    await servers.close()


@pytest.mark.rule("AG-4")
async def test_a_server_that_dies_in_a_call_leaves_its_effect_unknown_and_is_started_anew_for_the_next_one(desk: McpRig):
    servers = desk.servers(support=desk.plain())
    chat = await opened(desk, servers, call(("support__die", {})), call(("support__echo", {"word": "again"})), say("done"))
    await servers.know()
    await chat.submit("go")
    await limited(chat.idle())
    died, echoed = await desk.results(chat.id)
    text = died.message.content[-1].text
    assert "The MCP server support gave no usable answer: Its program has ended. It last wrote: 'the last words of the server'." in text
    assert "Whether the call has had an effect is not known." in text
    assert echoed.message.content == (Text(text="again"),)
    assert (len(desk.calls("start")), desk.calls("die")) == (2, ["die"])
    assert b"the last words of the server" in desk.log
    await close(desk, servers)


@pytest.mark.rule("AG-4")
async def test_a_stopped_call_is_cancelled_at_the_server_and_what_it_said_before_is_shown(desk: McpRig):
    servers = desk.servers(support=desk.modern())
    chat = await opened(desk, servers, call(("support__wait", {"word": "w"})), say("next"))
    await servers.know()
    await chat.submit("go")
    await desk.until_called("wait w")
    await limited(chat.abort())
    await desk.until_called("cancelled")
    [result] = await desk.results(chat.id)
    assert "was stopped by the user and may have partially run" in result.message.content[-1].text
    await close(desk, servers)


@pytest.mark.rule("AG-4")
async def test_a_call_that_takes_too_long_ends_and_the_server_stays(desk: McpRig):
    servers = desk.servers(support=desk.plain(call_timeout_ms=5_000))
    chat = await opened(desk, servers, call(("support__wait", {"word": "w"})), call(("support__echo", {"word": "b"})), say("done"))
    await servers.know()
    await chat.submit("go")
    await desk.until_called("wait w")
    desk.rig.clock.advance(5_000)
    (desk.folder / "go").touch()
    await limited(chat.idle())
    late, echoed = await desk.results(chat.id)
    assert "It did not answer within 5 s. Whether the call has had an effect is not known." in late.message.content[-1].text
    assert echoed.message.content == (Text(text="b"),)
    assert len(desk.calls("start")) == 1
    await close(desk, servers)


@pytest.mark.rule("AG-4", "EX-1")
async def test_a_tool_that_a_server_gains_while_it_runs_is_offered_with_the_next_request(desk: McpRig):
    servers = desk.servers(support=desk.modern())
    chat = await opened(desk, servers, call(("support__grow", {})), say("one"), say("two"))
    await servers.know()
    await chat.submit("go")
    await limited(chat.idle())
    await until(lambda: "grown" in servers.facts()[0].tools)
    await chat.submit("more")
    await limited(chat.idle())
    assert "support__grown" in {tool.name for tool in desk.rig.model.requests[-1].tools}
    assert "support__grown" not in {tool.name for tool in desk.rig.model.requests[0].tools}
    await close(desk, servers)


@pytest.mark.rule("AG-4")
async def test_an_older_server_that_is_told_by_notifications_and_pages_works_the_same(desk: McpRig):
    servers = desk.servers(plain=desk.plain())
    await servers.know()
    assert servers.facts()[0].tools == ("echo", "wait", "look_and_wait", "die", "big", "environment", "move to", "move/to")
    (desk.folder / "more").touch()
    chat = await opened(desk, servers, call((tool_name("plain", "move to"), {"at": {"x": 1}})), say("done"))
    await chat.submit("go")
    await limited(chat.idle())
    [result] = await desk.results(chat.id)
    assert result.message.content == (Text(text='move to {"at": {"x": 1}} red \ufffd'),)
    await until(lambda: "more" in servers.facts()[0].tools)
    await close(desk, servers)


@pytest.mark.rule("AG-4", "TO-4")
async def test_a_long_answer_is_cut_and_all_of_it_is_in_a_file(desk: McpRig):
    servers = desk.servers(support=desk.plain())
    chat = await opened(desk, servers, call(("support__big", {})), say("done"))
    await servers.know()
    await chat.submit("go")
    await limited(chat.idle())
    [result] = await desk.results(chat.id)
    shown, remark = (part.text for part in result.message.content)
    assert "[… the middle was left out …]" in shown
    path = remark.split(" is in ")[1].split(".txt")[0] + ".txt"
    assert len((desk.folder / path).read_text().splitlines()) == 30_000
    await close(desk, servers)


@pytest.mark.rule("SA-11", "SA-17")
async def test_a_servers_program_gets_the_harmless_environment_and_what_is_named_and_dies_with_its_session(desk: McpRig):
    desk.environ = {"PATH": "/usr/bin:/bin", "OPENAI_API_KEY": "sk-secret", "DOCS_TOKEN": "a-token"}
    servers = desk.servers(support=desk.plain(env={"TOKEN": "$DOCS_TOKEN", "LEVEL": "debug"}))
    chat = await opened(desk, servers, call(("support__environment", {})), say("done"))
    await servers.know()
    await chat.submit("go")
    await limited(chat.idle())
    [result] = await desk.results(chat.id)
    seen = dict(line.split("=", 1) for line in result.message.content[0].text.splitlines())
    assert (seen["TOKEN"], seen["LEVEL"], seen["TERM"]) == ("a-token", "debug", "dumb")
    assert {"OPENAI_API_KEY", "DOCS_TOKEN"}.isdisjoint(seen)
    [pid] = [int(line.split()[1]) for line in desk.calls("start")]
    assert is_alive(pid)
    await close(desk, servers)
    assert not is_alive(pid)


@pytest.mark.rule("AG-4")
@pytest.mark.parametrize(
    ("server", "problem"),
    [
        (McpServer(command="no-such-program-here"), "There is no program 'no-such-program-here'. Give its absolute path, or install it."),
        (McpServer(command="/bin/sh", args=("-c", "echo broken >&2; exit 4")), "Its program has ended. It last wrote: 'broken'."),
        (McpServer(command="/bin/sh", env={"X": "$NOT_SET_ANYWHERE"}), "The variable NOT_SET_ANYWHERE is not set. Set it, and start pidurable again."),
    ],
)
async def test_a_server_that_cannot_be_used_says_why_and_the_others_work(desk: McpRig, server: McpServer, problem: str):
    servers = desk.servers(bad=server, good=desk.plain())
    assert await servers.know() == (f"The MCP server bad cannot be used now: {problem}",)
    assert [(facts.name, facts.state, len(facts.tools)) for facts in servers.facts()] == [("bad", "failed", 0), ("good", "ready", 8)]
    assert servers.facts()[0].problem == problem
    await servers.close()


@pytest.mark.rule("AG-4")
async def test_a_server_that_says_nothing_is_given_up_after_its_time(desk: McpRig):
    servers = desk.servers(mute=McpServer(command="/bin/sh", args=("-c", f"echo $$ > {desk.folder}/calls; sleep 1000"), start_timeout_ms=3_000))
    tell: list[str] = []
    servers.listen(tell.append)
    servers.connect()
    await until(lambda: desk.calls() != [])
    assert servers.facts()[0].state == "starting"
    desk.rig.clock.advance(3_000)
    await until(lambda: tell != [])
    assert tell == ["The MCP server mute cannot be used now: It was not ready within 3 s."]
    await servers.close()
    assert not is_alive(int(desk.calls()[0]))


async def test_without_the_library_there_is_one_line_and_the_next_step(desk: McpRig):
    servers = desk.servers(installed=False, docs=desk.plain(), far=McpServer(url="http://127.0.0.1:9/mcp"))
    assert servers.extensions() == ()
    assert await servers.know() == ()
    text = "MCP servers are not used (docs, far): the library of the protocol is not installed. Install it with: pip install 'pidurable[mcp]'"
    assert servers.warnings == (text,)
    assert {facts.state for facts in servers.facts()} == {"failed"}
    await servers.close()


@pytest.mark.rule("AG-4")
async def test_a_server_that_hangs_is_started_anew_when_it_is_asked_what_it_offers(desk: McpRig):
    servers = desk.servers(support=desk.plain())
    chat = await opened(desk, servers, call(("support__wait", {"word": "w"})), say("next"))
    await servers.know()
    await chat.submit("go")
    await desk.until_called("wait w")
    await limited(chat.abort())  # it hears nothing of that: it does one thing after the other
    tell: list[str] = []
    servers.listen(tell.append)
    servers.connect()
    await desk.rig.settle()
    desk.rig.clock.advance(10_000)
    await until(lambda: len(desk.calls("start")) == 2 and servers.facts()[0].state == "ready")
    assert tell == []
    await close(desk, servers)


@pytest.mark.rule("AG-4")
async def test_calls_that_come_at_once_while_a_server_is_down_start_it_once(desk: McpRig):
    servers = desk.servers(support=desk.plain())
    await servers.know()
    await servers.close()
    servers = desk.servers(support=desk.plain())
    chat = await opened(desk, servers, call(("support__echo", {"word": "a"}), ("support__echo", {"word": "b"}), ("support__echo", {"word": "c"})), say("done"))
    await chat.submit("go")
    await limited(chat.idle())
    assert sorted(entry.message.content[0].text for entry in await desk.results(chat.id)) == ["a", "b", "c"]
    assert len(desk.calls("start")) == 2
    await close(desk, servers)


@pytest.mark.rule("AG-4", "EX-1")
async def test_servers_are_swapped_while_running(desk: McpRig):
    installed: dict[str, tuple[str, ...]] = {}

    def install(extension: Extension) -> None:
        installed[extension.name] = tuple(tool.name for tool in extension.tools)

    servers = desk.servers(one=desk.plain(), two=desk.plain())
    servers.begin(install)
    await servers.know()
    before = [int(line.split()[1]) for line in desk.calls("start")]
    await servers.use(desk.configured(one=desk.plain(cwd="."), three=desk.plain()))
    assert [pid for pid in before if is_alive(pid)] == []
    assert installed["pidurable.mcp.two"] == ()
    assert [facts.name for facts in servers.facts()] == ["one", "three"]
    await servers.know()
    assert all(len(installed[f"pidurable.mcp.{name}"]) == 8 for name in ("one", "three"))
    await servers.close()
