"""Which servers may be used, and what a person sees before they trust a project's: AG-4, SA-5, SA-6."""

from __future__ import annotations

import json

import pytest

from pi_durable_tui.cli.project.servers import FolderShelf, chosen, told
from pi_durable_tui.mcp.config import Configured, McpServer
from tests.support.context_folders import new_folders

REFUSED = "a project can name no variables of yours, no headers and no trust; write the server into your own settings"


@pytest.mark.rule("AG-4", "SA-5", "SA-6")
def test_a_trusted_projects_servers_come_beside_the_users_and_never_in_their_place(tmp_path):
    folders = new_folders(tmp_path)
    servers = {
        "docs": {"command": "theirs"},
        "build": {"command": "make-server", "args": ["--fast"]},
        "bad name": {"command": "x"},
        "keys": {"command": "x", "env": {"A": "$KEY"}},
    }
    folders.put(folders.repo / ".pidurable/settings.json", json.dumps({"mcp_servers": servers}))
    mine = McpServer(command="mine")
    assert chosen({"docs": mine}, folders.workspace(trusting="none"), folders.repo).servers == (
        Configured(name="docs", server=mine, directory=str(folders.repo)),
    )
    workspace = folders.workspace()
    found = chosen({"docs": mine}, workspace, folders.repo)
    assert [(each.name, each.server.shown) for each in found.servers] == [("docs", "mine"), ("build", "make-server --fast")]
    assert found.warnings == (
        "The project's MCP server 'docs' is not used: you have one of that name.",
        "The project's MCP server 'bad name' is not used: a name is made of letters, digits, dashes and single underscores.",
        f"The project's MCP server 'keys' is not used: {REFUSED}.",
    )
    kind, lines = told(workspace.judged[0])
    assert (kind, lines[:3]) == ("servers", ("MCP server docs: theirs", "MCP server build: make-server --fast", "MCP server bad name: x"))
    assert json.loads("\n".join(lines[3:])) == {"mcp_servers": servers}


def test_what_is_remembered_is_private_bounded_and_optional(tmp_path):
    shelf = FolderShelf(tmp_path / "mcp", writes=True)
    assert shelf.load("a") is None
    for number in range(203):
        shelf.store(f"d{number}", b"{}")
    assert len(list((tmp_path / "mcp").iterdir())) == 200
    assert shelf.load("d202") == b"{}"
    assert oct((tmp_path / "mcp/d202.json").stat().st_mode & 0o777) == "0o600"
    FolderShelf(tmp_path / "other", writes=False).store("a", b"{}")
    assert not (tmp_path / "other").exists()
