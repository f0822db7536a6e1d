"""What the doctor says of MCP servers: AG-4."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pi_durable_tui.cli.check.servers import servers
from pi_durable_tui.mcp.config import McpServer


@pytest.mark.rule("AG-4")
def test_servers_that_could_not_be_started_are_named_with_the_next_step_and_none_is_started(tmp_path: Path):
    assert servers({}, {}, tmp_path) == []
    good = McpServer(command=sys.executable, args=("-c", f"open({str(tmp_path / 'started')!r}, 'w')"))
    [found] = servers({"good": good}, {}, tmp_path)
    assert (found.state, found.text.startswith("good; mcp 2.")) == ("good", True)
    bad = McpServer(command="no-such-program-here", env={"A": "$NOT_SET_ANYWHERE"})
    said = [(finding.state, finding.text, finding.next_step) for finding in servers({"good": good, "bad": bad}, {}, tmp_path)][1:]
    assert said == [
        ("note", "bad names NOT_SET_ANYWHERE, which is not set", "Set NOT_SET_ANYWHERE."),
        ("note", "bad: there is no program 'no-such-program-here'", "Install it, or give its absolute path."),
    ]
    assert not (tmp_path / "started").exists()
