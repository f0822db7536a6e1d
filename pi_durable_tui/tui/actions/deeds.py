"""All that commands and keys do, each part loaded when it is first used: the screen is painted before any of it (speed.md)."""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pi_durable_tui.tui.actions.directory import Directory
    from pi_durable_tui.tui.actions.moves import Moves
    from pi_durable_tui.tui.actions.outbox import Outbox
    from pi_durable_tui.tui.actions.project import Project
    from pi_durable_tui.tui.actions.stopping import Stopping
    from pi_durable_tui.tui.app import PidurableApp
    from pi_durable_tui.tui.configuring.models import ModelChoice
    from pi_durable_tui.tui.extensions.actions import Extensions
    from pi_durable_tui.tui.linking.opening import Links


class Deeds:
    """See the module.

    Args:
        first_prompt: See `Outbox`.
        typing_gap_s: See `Project`.
    """

    def __init__(self, app: PidurableApp, *, first_prompt: str, typing_gap_s: float) -> None:
        self._app, self._first_prompt, self._typing_gap_s = app, first_prompt, typing_gap_s

    @cached_property
    def commands(self) -> dict[str, Callable[[str], None]]:
        """What each slash command does, by its name."""
        from pi_durable_tui.tui.actions.acts import commands_of

        return commands_of(self._app)

    @cached_property
    def extensions(self) -> Extensions:
        """What extensions and MCP servers bring."""
        from pi_durable_tui.tui.extensions.actions import Extensions

        return Extensions(self._app)

    @cached_property
    def models(self) -> ModelChoice:
        """Choosing a model."""
        from pi_durable_tui.tui.configuring.models import ModelChoice

        return ModelChoice(self._app)

    @cached_property
    def links(self) -> Links:
        """Opening links."""
        from pi_durable_tui.tui.linking.opening import Links

        return Links(self._app)

    @cached_property
    def moves(self) -> Moves:
        """Going to another conversation."""
        from pi_durable_tui.tui.actions.moves import Moves

        return Moves(self._app)

    @cached_property
    def directory(self) -> Directory:
        """The chats of the directory."""
        from pi_durable_tui.tui.actions.directory import Directory

        return Directory(self._app, self.moves)

    @cached_property
    def outbox(self) -> Outbox:
        """What leaves the composer and comes back into it."""
        from pi_durable_tui.tui.actions.outbox import Outbox

        return Outbox(self._app, self._first_prompt)

    @cached_property
    def project(self) -> Project:
        """What the working directory brings."""
        from pi_durable_tui.tui.actions.project import Project

        return Project(self._app, typing_gap_s=self._typing_gap_s)

    @cached_property
    def stopping(self) -> Stopping:
        """What Esc does."""
        from pi_durable_tui.tui.actions.stopping import Stopping

        return Stopping(self._app)
