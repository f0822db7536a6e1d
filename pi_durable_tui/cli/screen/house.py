"""The program around the app, put together: implements `tui.house.HousePort`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pi_durable_tui.cli.chat import Opened
from pi_durable_tui.cli.configuration.desk import SettingsDesk
from pi_durable_tui.cli.configuration.models import KnownModels
from pi_durable_tui.cli.export.exports import Exports
from pi_durable_tui.cli.screen.sessions import Sessions
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.cli.wish import Wish

if TYPE_CHECKING:
    from pi_durable_tui.tui.bridge import Opened as Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """See the module."""

    rings: bool
    settings: SettingsDesk
    models: KnownModels
    export: Exports
    sessions: Sessions


def house_of(setup: Setup, wish: Wish, opened: Opened, enter: Callable[[int, int], Awaitable[Shown]]) -> House:
    """The house of an open chat. `enter`: see `Sessions`."""
    return House(
        rings=setup.settings.bell,
        settings=SettingsDesk(setup, wish, lambda: opened.workspace.settings, opened.harness.settings),
        models=KnownModels(setup, opened.models),
        export=Exports(setup, opened),
        sessions=Sessions(setup, opened.session, enter),
    )
