"""MCP servers and commands of extensions in the whole program: AG-3, AG-4, SA-5, SA-11, SA-17, TO-2."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journeys.conftest import Begin
from tests.support.cli_runs import ROOT
from tests.support.journey_desk import SETTINGS, Journey, calls, processes, says, wait_until
from tests.support.patience import RUN_S

SERVER = str(ROOT / "tests/support/mcp_plain.py")
KEY = "a-key-for-the-server-only"

EXTENSION = """
from pi_durable_tui.harness.extensions.registry import Command, Extension


async def tally(argument, context):
    entries = await context.entries()
    context.say(f"{len(entries)} entries in chat {context.conversation_id}")
    if argument:
        await context.submit(f"Please tally {argument}.")


async def broken(argument, context):
    raise ValueError("nobody has \\x1b[31mmended this")


def extension():
    return Extension(
        name="tallies",
        commands=(
            Command(name="tally", argument="[what]", help="count what there is", run=tally),
            Command(name="broken-one", help="does not work", run=broken),
        ),
    )
"""


def serve(journey: Journey, *names: str, **server: object) -> Path:
    """Servers in the user's settings; the folder that they write to."""
    folder = journey.work.parent / "server"
    folder.mkdir()
    servers = {name: {"command": sys.executable, "args": ["-S", SERVER, str(folder)], **server} for name in names}
    (journey.work.parent / "config/settings.json").write_text(json.dumps({**SETTINGS, "mcp_servers": servers}))
    return folder


def begun(folder: Path, beginning: str) -> list[str]:
    path = folder / "calls"
    return [line for line in path.read_text().splitlines() if line.startswith(beginning)] if path.exists() else []


@pytest.mark.slow
@pytest.mark.rule("AG-4", "TO-2", "SA-11", "SA-17", "PR-7")
def test_a_kill_in_servers_tools_ends_the_servers_repeats_only_what_may_be_and_leaves_their_key_nowhere(begin: Begin):
    both = calls(("one__wait", {"word": "w"}), ("two__look_and_wait", {"word": "w"}))
    journey = begin(both, calls(("one__environment", {}), first=3), says("done"))
    folder = serve(journey, "one", "two", env={"TOKEN": "$SERVER_KEY"})
    command = [sys.executable, "-P", "-m", "pi_durable_tui.cli.main", "-p", "--approve", "all"]
    about = {"cwd": journey.work, "env": journey.environ | {"SERVER_KEY": KEY}, "stdin": subprocess.DEVNULL}
    program = subprocess.Popen([*command, "go"], **about, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_until(lambda: len(begun(folder, "wait") + begun(folder, "look")) == 2, what="both calls")
    program.send_signal(signal.SIGKILL)
    program.communicate()
    wait_until(lambda: processes(str(folder)) == [], what="the end of the servers")
    (folder / "go").touch()
    assert subprocess.run([*command, "-c"], **about, capture_output=True, text=True, timeout=RUN_S, check=False).stdout == "done\n"
    assert (begun(folder, "wait"), begun(folder, "look")) == (["wait w"], ["look w", "look w"])
    one, two, seen = (str(message["content"]) for message in journey.requests[-1]["messages"] if message["role"] == "tool")
    assert "Tool one__wait was interrupted and may have partially run" in one
    assert two == "looked at w"
    assert "TOKEN=[hidden API key]" in seen
    assert (journey.refused, processes(str(folder))) == ([], [])
    assert [path for path in journey.work.parent.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()] == []
    [log] = journey.work.parent.rglob("one.log")
    assert (set(log.read_text().splitlines()), oct(log.stat().st_mode & 0o777)) == ({"a greeting that is no message"}, "0o600")


@pytest.mark.slow
@pytest.mark.rule("SA-5", "SA-6", "AG-4")
def test_a_projects_server_is_listed_before_it_is_trusted_and_not_started_without(begin: Begin):
    journey = begin(says("hello"))
    folder = serve(journey, "plain")
    (journey.work / ".pidurable").mkdir()
    servers = {"theirs": {"command": sys.executable, "args": ["-S", SERVER, str(folder)]}, "sneaky": {"command": "x", "env": {"A": "$OPENAI_API_KEY"}}}
    (journey.work / ".pidurable/settings.json").write_text(json.dumps({"mcp_servers": servers}))
    terminal = journey.start(ready="STARTS PROGRAMS with your rights")
    terminal.wait_for(f"MCP server theirs: {sys.executable} -S", "Esc decides later")
    assert not terminal.sees("MCP server sneaky")
    terminal.read_for(0.8)
    terminal.press("n")
    terminal.wait_gone("STARTS PROGRAMS")
    wait_until(lambda: list(journey.desk.data.glob("mcp/*.json")) != [], what="what the server offers")
    terminal.send("/mcp")
    terminal.wait_for("MCP servers", "ready", "8: echo, wait")
    assert not terminal.sees("theirs")
    terminal.press("escape")
    terminal.wait_gone("Esc closes")
    terminal.send("/trust")
    terminal.wait_for("y trusts these files")
    terminal.read_for(0.8)
    terminal.press("y")
    terminal.wait_for("The project's MCP server 'sneaky' is not used: a project can name no variables")
    wait_until(lambda: len(begun(folder, "start")) == 2, what="the start of the project's server")
    terminal.send("/mcp")
    terminal.wait_for("theirs")
    terminal.press("escape")
    terminal.wait_gone("Esc closes")
    terminal.send("/quit")
    terminal.wait_end()
    assert processes(str(folder)) == []


@pytest.mark.slow
@pytest.mark.rule("AG-3", "EX-1")
def test_an_extensions_command_is_offered_run_told_of_when_it_fails_and_swapped_by_reload(begin: Begin):
    journey = begin(says("It is seven."), says("It is eight."))
    path = journey.work.parent / "config/extensions/tallies/extension.py"
    path.parent.mkdir(parents=True)
    path.write_text(EXTENSION)
    terminal = journey.start(ready="● stored")
    terminal.type("/tal")
    terminal.wait_for("/tally [what]", "count what there is")
    terminal.type("ly files")
    terminal.press("enter")
    terminal.wait_for("0 entries in chat", "❯ Please tally files.", "It is seven.")
    terminal.send("/broken-one with care")
    terminal.wait_for("The command /broken-one failed: ValueError: nobody has", "mended this. Mend the extension, and /reload.", "/broken-one with care")
    terminal.press("ctrl+c")
    path.write_text(EXTENSION.replace("entries in chat", "lines in chat").replace("broken-one", "mended"))
    terminal.send("/reload")
    terminal.wait_for("were read anew")
    terminal.send("/tally")
    terminal.wait_for("3 lines in chat")
    terminal.send("/broken-one")
    terminal.wait_for("It is eight.")  # no command any more, so it is a message
    assert [request["messages"][-1]["content"] for request in journey.requests] == ["Please tally files.", "/broken-one"]
    terminal.kill()

    told = journey.run("-p", "/tally")
    assert (told.returncode, told.stdout) == (0, "")
    assert "pidurable: 0 lines in chat" in told.stderr
    failed = journey.run("-p", "/mended")
    assert (failed.returncode, failed.stdout) == (4, "")
    assert "The command /mended failed: ValueError: nobody has" in failed.stderr
