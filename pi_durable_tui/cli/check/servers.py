"""Looks at the MCP servers that the user has written down: whether each could be started or asked. It starts and asks none."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path

from pi_durable_tui.cli.check.findings import Finding
from pi_durable_tui.mcp.config import McpServer
from pi_durable_tui.mcp.servers import INSTALL, is_installed
from pi_durable_tui.tools.serving.program import Program

NAME = "MCP servers"


def servers(configured: Mapping[str, McpServer], environ: Mapping[str, str], directory: Path) -> list[Finding]:
    """One line for all that is well, and one for each thing that is not; none without servers."""
    if not configured:
        return []
    if not is_installed():
        return [Finding(name=NAME, state="note", text=f"{', '.join(configured)}: the library of the protocol is not installed", next_step=INSTALL)]
    problems = [finding for name, server in configured.items() for finding in _problems(name, server, environ, directory)]
    text = f"{', '.join(configured)}; mcp {importlib.metadata.version('mcp')}"
    return [Finding(name=NAME, state="note" if problems else "good", text=text), *problems]


def _problems(name: str, server: McpServer, environ: Mapping[str, str], directory: Path) -> list[Finding]:
    missing = sorted(variable for variable in server.references if variable not in environ)
    found = [Finding(name=NAME, state="note", text=f"{name} names {variable}, which is not set", next_step=f"Set {variable}.") for variable in missing]
    if server.command is None:
        return found
    program = Program(name=server.command, arguments=server.args, directory=str(directory / (server.cwd or "")), extra={}, agent=environ)
    if not program.is_there():
        found.append(
            Finding(name=NAME, state="note", text=f"{name}: there is no program {server.command!r}", next_step="Install it, or give its absolute path.")
        )
    return found
