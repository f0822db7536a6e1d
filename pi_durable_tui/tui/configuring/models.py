"""Choosing a model (Alt+P, /model): those that can be asked here, what they cost and how much they read; any other can be typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_durable_tui.tui.bridge import Bridge
from pi_durable_tui.tui.house import KnownModel
from pi_durable_tui.tui.screens.picker import Choice, PickerScreen
from pi_durable_tui.tui.status import count_text

if TYPE_CHECKING:
    from pi_durable_tui.tui.app import PidurableApp


class ModelChoice:
    """See the module. Used on the screen's loop."""

    def __init__(self, app: PidurableApp) -> None:
        self._app = app

    def choose(self) -> None:
        """Let the person choose the model of the chat that is shown."""
        bridge = self._app.bridge
        if bridge is not None and self._app.view is not None and not self._app.chat.is_look:
            self._app.run_worker(self._choose(bridge), group="models", exclusive=True)

    async def pick(self, current: str | None) -> str | None:
        """The model that the person picks or types; None: they want none. The list is there at once, and full when what is known is loaded."""
        bridge, agent = self._app.bridge, self._app.view.agent if self._app.view is not None else None
        if bridge is None:
            return None
        chats = await bridge.ask(lambda harness: harness.chats()) or ()
        recent = tuple(dict.fromkeys(model for model in (current, agent.model if agent is not None else None, *(chat.model for chat in chats)) if model))
        house = bridge.house
        screen: PickerScreen[str] = PickerScreen(
            self._app.palette,
            "Model" if house is None else "Model · loading what is known …",
            model_choices(recent, (), current),
            own=lambda typed: Choice(value=typed, label=typed, note="as typed"),
        )
        if house is not None:
            self._app.run_worker(self._fill(bridge, screen, recent, current), group="models-known", exclusive=True)
        picked = await self._app.push_screen_wait(screen)
        return picked.value if picked is not None else None

    async def _choose(self, bridge: Bridge) -> None:
        view = self._app.view
        picked = await self.pick(view.agent.model if view is not None else None)
        if picked is not None:
            bridge.set_agent(model=picked)

    async def _fill(self, bridge: Bridge, screen: PickerScreen[str], recent: tuple[str, ...], current: str | None) -> None:
        house = bridge.house
        known = await bridge.ask(lambda _harness: house.models.known()) if house is not None else None
        screen.refill("Model", model_choices(recent, known or (), current))


def model_choices(recent: tuple[str, ...], known: tuple[KnownModel, ...], current: str | None) -> list[Choice[str]]:
    """Those used before first, newest first, then the others by name. PURE."""
    facts = {model.name: model for model in known}
    names = dict.fromkeys((*recent, *facts))
    return [_line(name, facts.get(name), is_current=name == current, is_recent=name in recent) for name in names]


def _line(name: str, known: KnownModel | None, *, is_current: bool, is_recent: bool) -> Choice[str]:
    return Choice(
        value=name,
        label=name,
        badge="now" if is_current else "used before" if is_recent else "",
        detail=" · ".join(_facts(known)) if known is not None else "",
        preview=_told(known) if known is not None else "",
    )


def _facts(known: KnownModel) -> list[str]:
    window = [count_text(known.window_tokens).replace(".0", "")] if known.window_tokens is not None else []
    prices = [f"${_price(known.input_usd)} / ${_price(known.output_usd)}"] if known.input_usd is not None and known.output_usd is not None else []
    return [*window, *prices]


def _told(known: KnownModel) -> str:
    window = f"It reads {known.window_tokens:,} tokens at most." if known.window_tokens is not None else "How much it reads is not known."
    if known.input_usd is None or known.output_usd is None:
        return f"{window} Its price is not known."
    return f"{window} A million tokens cost ${_price(known.input_usd)} to read and ${_price(known.output_usd)} to write."


def _price(usd: float) -> str:
    """An amount for a million tokens, without needless places."""
    return f"{usd:.3f}".rstrip("0").rstrip(".") or "0"
