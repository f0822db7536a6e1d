"""The workspace as the app sees it: questions of trust as plain data, commands for the menu, messages ready to hand in (rules SA-5, AG-3).

Used on the harness's loop; `offers` alone may be read from anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from pi_durable_tui.cli.chat import Opened
from pi_durable_tui.cli.paths import folders
from pi_durable_tui.cli.project.commands import ExtensionCommands, commands_of, run
from pi_durable_tui.cli.project.prompting import Prepared, prepared
from pi_durable_tui.cli.project.servers import chosen, told
from pi_durable_tui.cli.settings import load
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.cli.wish import Wish
from pi_durable_tui.context.extensions import Loaded, replaced
from pi_durable_tui.context.trust import Judged
from pi_durable_tui.errors import ConfigError, EnvironmentFailure
from pi_durable_tui.mcp.servers import ServerFacts
from pi_durable_tui.records.json import clean_text

if TYPE_CHECKING:
    from pi_durable_tui.tui.commands import Offer
    from pi_durable_tui.tui.draw.trust import TrustQuestion


class AppWorkspace:
    """See the module; stands behind `tui.ports.WorkspacePort`."""

    def __init__(self, setup: Setup, wish: Wish, opened: Opened) -> None:
        self._setup, self._wish, self._opened = setup, wish, opened
        self._workspace = opened.workspace
        self._installed = tuple(extension.name for extension in opened.loaded.extensions)
        self._asked: tuple[Judged, ...] = ()
        self._commands = self._usable(opened.loaded)

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The commands of extensions, the skills and the templates, for the list of commands."""
        from pi_durable_tui.tui.commands import Offer  # noqa: PLC0415 - with the app, which is there by now

        own = [Offer(name=each.name, argument=each.argument, help=each.help, runs=True) for each in self._commands.by_name.values()]
        texts = [each for each in self._workspace.commands.commands if each.name not in self._commands.by_name]
        return (*own, *(Offer(name=each.name, argument=each.hint, help=each.description) for each in texts))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a person should know of the commands, one line each."""
        return self._commands.warnings

    async def undecided(self) -> TrustQuestion | None:
        """What nobody has decided about; None: nothing."""
        return self._question(self._workspace.undecided)

    async def all_files(self) -> TrustQuestion | None:
        """All files of the project that could be used; None: there are none."""
        self._workspace.look()
        return self._question(self._workspace.judged)

    async def decide(self, question: TrustQuestion, *, is_trusted: bool) -> tuple[str, ...]:
        """Store the answer to the question that was made last, and put it in force; what a person should know of it.

        Raises:
            EnvironmentFailure: It could not be stored and does not count.
        """
        names = {part.name for part in question.parts}
        self._workspace.decide(tuple(each for each in self._asked if each.item.shown in names), is_trusted=is_trusted)
        remarks = (*self._install(), *await self._use_servers())
        await self._take_settings()
        return remarks

    async def reload(self) -> tuple[str, ...]:
        """Read everything anew and put the extensions in the places of the old ones; what a person should know of it."""
        self._workspace.look()
        return (*self._workspace.warnings, *self._install(), *await self._use_servers())

    async def prepared(self, text: str, model: str | None) -> Prepared:
        """What to hand in for a typed text."""
        return await prepared(text, setup=self._setup, opened=self._opened, model=model)

    async def run(self, text: str, conversation_id: int, say: Callable[[str], None]) -> Literal[True]:
        """Run the command of an extension that a line names, for the chat it was typed in; True, so that it can be told from a problem.

        Raises:
            EnvironmentFailure: It failed, or is gone.
        """
        found = self._commands.typed(text)
        if found is None:
            raise EnvironmentFailure(f"The command {text.split(' ', maxsplit=1)[0]} is gone.")
        conversation = await self._opened.harness.conversation(conversation_id)

        async def submit(message: str) -> None:
            is_busy = (await conversation.view()).is_busy
            await conversation.submit(message, mode="steer" if is_busy else "followUp")

        await run(*found, harness=self._opened.harness, conversation=conversation, say=say, submit=submit)
        return True

    async def servers(self) -> tuple[ServerFacts, ...]:
        """The MCP servers as they stand."""
        return self._opened.servers.facts()

    def _question(self, judged: Sequence[Judged]) -> TrustQuestion | None:
        from pi_durable_tui.tui.draw.trust import TrustPart, TrustQuestion  # noqa: PLC0415 - with the app, which is there by now

        self._asked = tuple(judged)
        parts = tuple(TrustPart(kind=kind, name=each.item.shown, standing=each.standing, lines=lines) for each in judged for kind, lines in [told(each)])
        return TrustQuestion(directory=clean_text(str(self._workspace.root)), parts=parts) if parts else None

    def _install(self) -> tuple[str, ...]:
        loaded = self._workspace.load_extensions()
        for extension in replaced(self._installed, loaded.extensions):
            self._opened.harness.install(extension)
        self._installed = tuple(extension.name for extension in loaded.extensions)
        self._commands = self._usable(loaded)
        return (*loaded.warnings, *self._commands.warnings)

    def _usable(self, loaded: Loaded) -> ExtensionCommands:
        from pi_durable_tui.tui.commands import COMMANDS  # noqa: PLC0415 - with the app, which is there by now

        return commands_of(loaded.extensions, (command.name for command in COMMANDS))

    async def _use_servers(self) -> tuple[str, ...]:
        """The servers that are written down now, started in the background."""
        try:
            user = load(folders(self._setup.environ).config, self._setup.environ).mcp_servers
        except ConfigError as error:
            return (f"{error.message.removesuffix(' Nothing was started.')} The MCP servers are as they were. {error.hint}",)
        named = {name for server in self._setup.settings.mcp_servers.values() for name in server.references}
        late = [name for name, server in user.items() if not server.references <= named]  # what is not hidden yet would be stored (rule SA-17)
        found = chosen({name: server for name, server in user.items() if name not in late}, self._workspace, self._setup.place.directory)
        await self._opened.servers.use(found.servers)
        self._opened.servers.connect()
        told_late = (f"The MCP server {name} names a variable of yours that was not named before: it is used from the next start on." for name in late)
        return (*found.warnings, *told_late, *self._opened.servers.warnings)

    async def _take_settings(self) -> None:
        """A new chat that was opened before the answer gets what the project sets, unless the command line or the environment says otherwise."""
        said = {"model": self._wish.model or self._setup.environ.get("PIDURABLE_MODEL"), "thinking": self._wish.thinking}
        changes = {name: value for name, other in said.items() if not other and (value := getattr(self._workspace.settings, name)) is not None}
        if changes and not self._wish.resume:
            await self._opened.conversation.set_agent(**changes)
