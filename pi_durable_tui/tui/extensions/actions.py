"""What extensions and MCP servers bring to the app: the commands of the former, and a look at the latter (rules AG-3, AG-4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pi_durable_tui.tui.bridge import Bridge
from pi_durable_tui.tui.screens.sheet import Part, SheetScreen

if TYPE_CHECKING:
    from pi_durable_tui.tui.app import PidurableApp
    from pi_durable_tui.tui.ports import ServerPort

NO_SERVERS = 'There are no MCP servers. In the settings, "mcp_servers": {"NAME": {"command": "PROGRAM", "args": []}} adds one; /reload starts it.'


class Extensions:
    """See the module. Used on the screen's loop."""

    def __init__(self, app: PidurableApp) -> None:
        self._app = app

    def is_command(self, text: str) -> bool:
        """Whether a line is the command of an extension."""
        name = text.strip().partition(" ")[0]
        return any(offer.runs and name == f"/{offer.name}" for offer in self._app.chat.prompt.offers) and "\n" not in text.strip()

    def run(self, bridge: Bridge, text: str) -> None:
        """Run it, beside whatever is at work. What it says is shown; when it fails, so is that, and the line comes back."""
        bridge.save_draft("", 0)
        self._app.run_worker(self._run(bridge, text))

    async def _run(self, bridge: Bridge, text: str) -> None:
        app, conversation_id = self._app, bridge.conversation_id

        def say(said: str) -> None:
            app.call_later(app.tell, "info", said)

        if not await app.deeds.project.ask(lambda workspace: workspace.run(text, conversation_id, say)):
            app.chat.prompt.put_back([text])

    def mcp(self, _argument: str) -> None:
        """Show the MCP servers."""
        self._app.run_worker(self._mcp())

    async def _mcp(self) -> None:
        found = await self._app.deeds.project.ask(lambda workspace: workspace.servers())
        if found is None:
            return
        if not found:
            self._app.tell("info", NO_SERVERS)
        else:
            self._app.push_screen(SheetScreen(self._app.palette, "MCP servers", server_parts(found)))


def server_parts(servers: Sequence[ServerPort]) -> tuple[Part, ...]:
    """A part for each server: how it stands, what it is, what it brings and what went wrong. PURE."""
    parts = [Part(heading="/reload asks all of them anew, and starts those that failed.", lines=())]
    for server in servers:
        count = len(server.tools)
        lines = [
            ("state", server.state),
            ("starts" if not server.shown.startswith(("http://", "https://")) else "asks", server.shown),
            ("tools", f"{count}: {', '.join(server.tools)}" if count else "none known yet"),
        ]
        parts.append(Part(heading=server.name, lines=(*lines, *((("problem", server.problem),) if server.problem else ()))))
    return tuple(parts)
