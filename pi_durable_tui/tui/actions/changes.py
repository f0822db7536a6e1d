"""What /diff and /export do: show what the agent changed in files, and write the chat into one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_durable_tui.tui.actions.asked import newest_message
from pi_durable_tui.tui.bridge import Bridge
from pi_durable_tui.tui.commands import EXPORT_FORMS
from pi_durable_tui.tui.house import ExportForm, ExportPort
from pi_durable_tui.tui.ports import FilesPort
from pi_durable_tui.tui.rewinding.difference import DifferenceScreen, FileChange

if TYPE_CHECKING:
    from pi_durable_tui.tui.app import PidurableApp

ENDINGS: dict[str, ExportForm] = {"html": "html", "htm": "html", "md": "markdown", "markdown": "markdown", "jsonl": "jsonl"}


class Changes:
    """See the module. Used on the screen's loop."""

    def __init__(self, app: PidurableApp) -> None:
        self._app = app

    def diff(self, argument: str) -> None:
        """Show what was changed since the last message; "chat": since the chat began; a number: since that entry."""
        bridge = self._app.bridge
        if bridge is None or self._app.view is None:
            return
        if bridge.files is None:
            self._app.tell("info", "Files are not kept in this session, so what was changed cannot be told.")
        elif argument not in ("", "chat") and not argument.isdecimal():
            self._app.tell("warn", "/diff takes the number of an entry, the word chat, or nothing.")
        else:
            self._app.run_worker(self._diff(bridge, bridge.files, argument))

    async def _diff(self, bridge: Bridge, files: FilesPort, argument: str) -> None:
        view = self._app.view
        entry_id = int(argument) if argument.isdecimal() else None
        since = f"since entry {argument}" if argument.isdecimal() else "since the chat began"
        if not argument and view is not None:
            entry_id, since = await newest_message(bridge, view), "since your last message"
        shown = bridge.conversation_id
        found = await bridge.ask(lambda _harness: files.differences(shown, entry_id))
        if found is None:
            return
        if not found.is_from_start:
            self._app.tell("info", "So much was changed here that the oldest changes are forgotten.")
        if not found.files:
            self._app.tell("info", f"No file was changed {since}.{'' if argument else ' /diff chat looks at all of the chat.'}")
            return
        if not found.is_whole:
            self._app.tell("info", "Not every file of the directory could be looked at, so commands may have changed others too.")
        here = f"{view.agent.cwd}/" if view is not None else ""
        changes = [
            FileChange(name=each.path.removeprefix(here), remark=each.remark, diff=each.diff.text, added=each.diff.added, removed=each.diff.removed)
            for each in found.files
        ]
        count = f"{len(changes)} file{'' if len(changes) == 1 else 's'}"
        self._app.push_screen(DifferenceScreen(self._app.palette, f"{count} changed {since}", changes, asks=False))

    def export(self, argument: str) -> None:
        """Write the chat into a file, in the form that is named or that the ending of the file's name says."""
        bridge = self._app.bridge
        if bridge is None or self._app.view is None:
            return
        if bridge.house is None:
            self._app.tell("info", "There is nowhere to write to here.")
        else:
            self._app.run_worker(self._export(bridge, bridge.house.export, *wanted(argument)))

    async def _export(self, bridge: Bridge, port: ExportPort, form: ExportForm, path: str | None) -> None:
        shown = bridge.conversation_id
        written = await bridge.ask(lambda _harness: port.write(shown, form, path))
        if written is not None:
            self._app.tell("good", f"The chat is written to {written}")


def wanted(argument: str) -> tuple[ExportForm, str | None]:
    """The form and the path that a person typed; None: a name is made. PURE."""
    word, _, rest = argument.strip().partition(" ")
    form: ExportForm | None = next((each for each in EXPORT_FORMS if each == word), None)
    path = (argument if form is None else rest).strip()
    by_ending = ENDINGS.get(path.rpartition(".")[2].lower(), "html")
    return (form if form is not None else by_ending), path or None
