"""The program around the app, put together: implements `tui.house.HousePort`."""

from __future__ import annotations

from dataclasses import dataclass

from pi_durable_tui.cli.chat import Opened
from pi_durable_tui.cli.configuration.desk import SettingsDesk
from pi_durable_tui.cli.configuration.models import KnownModels
from pi_durable_tui.cli.export.exports import Exports
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.cli.wish import Wish


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """See the module."""

    settings: SettingsDesk
    models: KnownModels
    export: Exports


def house_of(setup: Setup, wish: Wish, opened: Opened) -> House:
    """The house of an open chat."""
    return House(
        settings=SettingsDesk(setup, wish, lambda: opened.workspace.settings, opened.harness.settings),
        models=KnownModels(setup, opened.models),
        export=Exports(setup, opened),
    )
