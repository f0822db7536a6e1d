"""Sends each request to the gateway that knows its model: `playback/NAME` to a recorded session, everything else to LiteLLM.

The choice is made per request, because a chat may change its model at any time.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Collection
from pathlib import Path
from typing import Protocol

from pi_durable_tui.cli.providers import PLAYBACK
from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import UsageError
from pi_durable_tui.harness.ports import ModelEvent, ModelFailed, ModelGateway, ModelInfo, ModelRequest
from pi_durable_tui.models.catalog import Offer
from pi_durable_tui.models.playback import PlaybackModel
from pi_durable_tui.playback.folder import Progress, load


class RealModels(ModelGateway, Protocol):
    """A gateway that knows which models there are."""

    async def offers(self, providers: Collection[str]) -> tuple[Offer, ...]: ...


class Gateways:
    """All models (ModelGateway).

    Args:
        live: Makes the gateway to real models when it is first needed.
        progress: The file that counts the requests of recorded sessions.
        clock: Paces recorded answers.
    """

    def __init__(self, *, live: Callable[[], RealModels], progress: Path, clock: Clock) -> None:
        self._make_live = live
        self._live: RealModels | None = None
        self._progress = progress
        self._clock = clock
        self._recorded: dict[str, PlaybackModel] = {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        try:
            gateway = self._of(request.model)
        except UsageError as error:
            yield ModelFailed(reason="no_model", message=f"{error.message} {error.hint}", retryable=False)
            return
        async with contextlib.aclosing(gateway.stream(request)) as events:
            async for event in events:
                yield event

    async def info(self, model: str) -> ModelInfo:
        try:
            return await self._of(model).info(model)
        except UsageError:
            return ModelInfo()

    async def offers(self, providers: Collection[str]) -> tuple[Offer, ...]:
        """The real models of these providers, see `LiteLlmGateway.offers`."""
        return await self._real().offers(providers)

    async def warm_up(self) -> None:
        await self._real().warm_up()

    async def close(self) -> None:
        if self._live is not None:
            await self._live.close()

    def _of(self, model: str) -> ModelGateway:
        if not model.startswith(PLAYBACK):
            return self._real()
        name = model.removeprefix(PLAYBACK)
        if name not in self._recorded:
            story = load(name)
            self._recorded[name] = PlaybackModel(
                name=story.name,
                requests=story.requests,
                progress=Progress(self._progress),
                clock=self._clock,
                window_tokens=story.window_tokens,
            )
        return self._recorded[name]

    def _real(self) -> RealModels:
        if self._live is None:
            self._live = self._make_live()
        return self._live
