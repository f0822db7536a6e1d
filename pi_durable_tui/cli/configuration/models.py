"""The models that can be asked here: implements `tui.house.ModelsPort`. Asks this machine only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_durable_tui.cli.gateways import Gateways
from pi_durable_tui.cli.local_servers import answering
from pi_durable_tui.cli.providers import DEFAULTS
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.models.catalog import configured

if TYPE_CHECKING:
    from pi_durable_tui.tui.house import KnownModel


class KnownModels:
    """See the module. Used on the harness's loop."""

    def __init__(self, setup: Setup, gateways: Gateways) -> None:
        self._setup, self._gateways = setup, gateways

    async def known(self) -> tuple[KnownModel, ...]:
        """See `ModelsPort`."""
        from pi_durable_tui.tui.house import KnownModel  # noqa: PLC0415 - with the app, which is there by now

        providers = configured(self._setup.environ)
        settings = self._setup.settings
        listed = {offer.name: offer for offer in await self._gateways.offers(providers)}
        names = [*listed, *settings.models, *(DEFAULTS[provider] for provider in providers if provider in DEFAULTS)]
        names += [name for server in await answering(self._setup.clock) for name in server.models]
        found: list[KnownModel] = []
        for name in sorted(dict.fromkeys(names)):
            offer, own = listed.get(name), settings.models.get(name)
            prices = own.prices if own is not None else None
            found.append(
                KnownModel(
                    name=name,
                    window_tokens=(own.context_window_tokens if own is not None else None) or (offer.window_tokens if offer is not None else None),
                    input_usd=prices.input if prices is not None else offer.input_usd if offer is not None else None,
                    output_usd=prices.output if prices is not None else offer.output_usd if offer is not None else None,
                )
            )
        return tuple(found)
