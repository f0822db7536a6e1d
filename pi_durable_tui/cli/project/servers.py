"""The MCP servers of a session: the user's, and those of a trusted project (rules AG-4, SA-5, SA-6), put together with this machine's doors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from pi_durable_tui.cli import paths
from pi_durable_tui.cli.compose import hidden_keys
from pi_durable_tui.cli.paths import read_text, write_setting_file
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.context.project_settings import read_settings
from pi_durable_tui.context.trust import Judged
from pi_durable_tui.context.workspace import Workspace
from pi_durable_tui.errors import PidurableError
from pi_durable_tui.mcp.config import NAME, Configured, McpServer, of_project
from pi_durable_tui.mcp.offer import SHELF_BYTES
from pi_durable_tui.mcp.servers import Doors, Servers
from pi_durable_tui.tools.output import bounded
from pi_durable_tui.tools.serving.program import Program, ServerLog, ServerProcess

MOST_REMEMBERED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The servers that may be used, and one line for each that may not."""

    servers: tuple[Configured, ...]
    warnings: tuple[str, ...]


def chosen(user: Mapping[str, McpServer], workspace: Workspace, directory: Path) -> Chosen:
    """The user's servers, then those of the project, which do not replace one of the user's. PURE."""
    found = {name: Configured(name=name, server=server, directory=str(directory)) for name, server in user.items()}
    warnings: list[str] = []
    for name, values in workspace.settings.mcp_servers.items():
        try:
            server = of_project(values)
        except msgspec.ValidationError as error:
            warnings.append(f"The project's MCP server {name[:40]!r} is not used: {error}.")
            continue
        if not NAME.fullmatch(name):
            warnings.append(f"The project's MCP server {name[:40]!r} is not used: a name is made of letters, digits, dashes and single underscores.")
        elif name in found:
            warnings.append(f"The project's MCP server {name!r} is not used: you have one of that name.")
        else:
            found[name] = Configured(name=name, server=server, directory=str(workspace.root))
    return Chosen(servers=tuple(found.values()), warnings=tuple(warnings))


def told(judged: Judged) -> tuple[str, tuple[str, ...]]:
    """What kind of file a person is asked about, and what they see of it: what it would start comes before what it says (rule SA-5). PURE."""
    if judged.item.kind != "settings":
        return judged.item.kind, judged.lines
    starts: list[str] = []
    for name, values in read_settings([judged.item])[0].mcp_servers.items():
        with contextlib.suppress(msgspec.ValidationError):  # not used, so not started
            starts.append(f"MCP server {name}: {of_project(values).shown}")
    return ("servers", (*starts, *judged.lines)) if starts else (judged.item.kind, judged.lines)


def servers_of(setup: Setup, number: int, configured: tuple[Configured, ...], *, in_memory: bool) -> Servers:
    """The servers of session `number`. Starts nothing.

    Args:
        in_memory: Nothing is to be left on disk.
    """
    logs = paths.session_files(setup.place, number) / "mcp"

    def log(name: str) -> Callable[[bytes], None]:
        return (lambda _data: None) if in_memory else ServerLog(logs / f"{name}.log", hidden_keys(setup))

    doors = Doors(
        environ=setup.environ,
        spawn=partial(_spawn, setup),
        bounded=bounded,
        shelf=FolderShelf(paths.folders(setup.environ).data / "mcp", writes=not in_memory),
        clock=setup.clock,
        log=log,
    )
    return Servers(configured, doors)


class FolderShelf:
    """What servers offered, one private file each; the oldest go when there are many."""

    def __init__(self, folder: Path, *, writes: bool) -> None:
        self._folder = folder
        self._writes = writes

    def load(self, digest: str) -> bytes | None:
        """What was stored; None when it is not there or cannot be read."""
        with contextlib.suppress(PidurableError):
            text = read_text(self._folder / f"{digest}.json", limit_bytes=SHELF_BYTES)
            return None if text is None else text.encode()
        return None

    def store(self, digest: str, data: bytes) -> None:
        """Keep it; not when it is too much."""
        if not self._writes or len(data) > SHELF_BYTES:
            return
        with contextlib.suppress(PidurableError, OSError):
            write_setting_file(self._folder / f"{digest}.json", data)
            kept = sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
            for path in kept[:-MOST_REMEMBERED]:
                path.unlink()


async def _spawn(setup: Setup, server: McpServer, variables: dict[str, str], on_errors: Callable[[bytes], None]) -> ServerProcess:
    """A server's program, started where it is to stand."""
    assert server.command is not None  # one with an address is not started
    directory = setup.place.directory / (server.cwd or "")
    program = Program(name=server.command, arguments=server.args, directory=str(directory), extra=variables, agent=setup.environ)
    return await ServerProcess.start(program, on_errors=on_errors)
