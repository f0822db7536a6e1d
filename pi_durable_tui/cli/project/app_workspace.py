"""The workspace as the app sees it: questions of trust as plain data, commands for the menu, messages ready to hand in (rules SA-5, AG-3).

Used on the harness's loop; `offers` alone may be read from anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pi_durable_tui.cli.chat import Opened
from pi_durable_tui.cli.project.prompting import Prepared, prepared
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.cli.wish import Wish
from pi_durable_tui.context.extensions import replaced
from pi_durable_tui.context.trust import Judged
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

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The skills and templates, for the list of commands."""
        from pi_durable_tui.tui.commands import Offer  # noqa: PLC0415 - with the app, which is there by now

        return tuple(Offer(name=command.name, argument=command.hint, help=command.description) for command in self._workspace.commands.commands)

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
        remarks = self._install()
        await self._take_settings()
        return remarks

    async def reload(self) -> tuple[str, ...]:
        """Read everything anew and put the extensions in the places of the old ones; what a person should know of it."""
        self._workspace.look()
        return (*self._workspace.warnings, *self._install())

    async def prepared(self, text: str, model: str | None) -> Prepared:
        """What to hand in for a typed text."""
        return await prepared(text, setup=self._setup, opened=self._opened, model=model)

    def _question(self, judged: Sequence[Judged]) -> TrustQuestion | None:
        from pi_durable_tui.tui.draw.trust import TrustPart, TrustQuestion  # noqa: PLC0415 - with the app, which is there by now

        self._asked = tuple(judged)
        parts = tuple(TrustPart(kind=each.item.kind, name=each.item.shown, standing=each.standing, lines=each.lines) for each in judged)
        return TrustQuestion(directory=clean_text(str(self._workspace.root)), parts=parts) if parts else None

    def _install(self) -> tuple[str, ...]:
        loaded = self._workspace.load_extensions()
        for extension in replaced(self._installed, loaded.extensions):
            self._opened.harness.install(extension)
        self._installed = tuple(extension.name for extension in loaded.extensions)
        return loaded.warnings

    async def _take_settings(self) -> None:
        """A new chat that was opened before the answer gets what the project sets, unless the command line or the environment says otherwise."""
        said = {"model": self._wish.model or self._setup.environ.get("PIDURABLE_MODEL"), "thinking": self._wish.thinking}
        changes = {name: value for name, other in said.items() if not other and (value := getattr(self._workspace.settings, name)) is not None}
        if changes and not self._wish.resume:
            await self._opened.conversation.set_agent(**changes)
