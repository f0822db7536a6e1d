"""What /settings does: shows every setting with its meaning, its value and who says so; changes one in the file, at once in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_durable_tui.tui.bridge import Bridge
from pi_durable_tui.tui.house import Changed, Setting, SettingsPort
from pi_durable_tui.tui.palette import THEMES
from pi_durable_tui.tui.ports import HarnessPort
from pi_durable_tui.tui.screens.picker import Choice, PickerScreen

if TYPE_CHECKING:
    from pi_durable_tui.harness.live import Agent
    from pi_durable_tui.tui.app import PidurableApp

AGENT_FIELDS = {"model": "model", "thinking": "thinking", "approve": "approval"}
"""Settings that the chat that is shown takes over at once."""
_COUNTS = {"now": "", "new sessions": " A change counts for new sessions.", "next start": " A change counts from the next start on."}


class SettingsList:
    """See the module. Used on the screen's loop."""

    def __init__(self, app: PidurableApp) -> None:
        self._app = app

    def show(self, argument: str) -> None:
        """Show them all; with a key, that one; with a key and a value, set it."""
        bridge = self._app.bridge
        if bridge is None or self._app.view is None:
            return
        if bridge.house is None:
            self._app.tell("info", "There are no settings here.")
        else:
            self._app.run_worker(self._run(bridge, bridge.house.settings, argument))

    async def _run(self, bridge: Bridge, port: SettingsPort, argument: str) -> None:
        key, _, value = argument.partition(" ")
        agent = self._app.view.agent if self._app.view is not None else None
        settings = await bridge.ask(lambda _harness: port.all(agent))
        if settings is None:
            return
        named = next((setting for setting in settings if setting.key == key), None)
        if not argument:
            await self._choose(bridge, port, settings)
        elif named is None:
            self._app.tell("warn", f"There is no setting {key}. /settings shows them all.")
        elif value:
            await self._set(bridge, port, named, value.strip())
        else:
            await self._ask(bridge, port, named)

    async def _choose(self, bridge: Bridge, port: SettingsPort, settings: tuple[Setting, ...]) -> None:
        """The list, until it is left; after each change as it is then: the file may have been changed elsewhere, too."""
        at = 0
        agent = self._app.view.agent if self._app.view is not None else None
        while True:
            title, keys = f"Settings · {port.file}", {"delete": "unsets it"}
            screen = PickerScreen(self._app.palette, title, [_line(setting) for setting in settings], keys=keys, start=at, enter="changes it")
            picked = await self._app.push_screen_wait(screen)
            if picked is None:
                return
            at = next(index for index, setting in enumerate(settings) if setting.key == picked.value.key)
            if picked.key != "delete":
                agent = await self._ask(bridge, port, picked.value) or agent
            elif picked.value.is_own:
                agent = await self._set(bridge, port, picked.value, None) or agent
            settings = await bridge.ask(lambda _harness, agent=agent: port.all(agent)) or settings

    async def _ask(self, bridge: Bridge, port: SettingsPort, setting: Setting) -> Agent | None:
        """Ask for a value and set it. Returns what `_set` does."""
        if not setting.is_edited_here:
            self._app.tell("info", f"{setting.key} is written in {port.file}: {setting.allowed}.")
            return None
        value = await self._app.deeds.models.pick(setting.value) if setting.key == "model" else await self._value(setting)
        return await self._set(bridge, port, setting, value) if value is not None else None

    async def _value(self, setting: Setting) -> str | None:
        choices = [Choice(value=choice, label=choice, badge="now" if choice == setting.value else "", preview=setting.help) for choice in setting.choices]
        start = setting.choices.index(setting.value) if setting.value in setting.choices else 0
        title = setting.key if setting.choices else f"{setting.key} · type {setting.allowed}"
        own = None if setting.choices else lambda typed: _typed(setting, typed)
        picked = await self._app.push_screen_wait(PickerScreen(self._app.palette, title, choices, start=start, own=own))
        return picked.value if picked is not None else None

    async def _set(self, bridge: Bridge, port: SettingsPort, setting: Setting, value: str | None) -> Agent | None:
        """Store it and use it. Returns the agent of the shown chat when it took the value over."""
        changed = await bridge.ask(lambda _harness: port.change(setting.key, value))
        if changed is None:
            return None
        self._app.tell("good", _told(setting, changed, value))
        if setting.key == "theme" and changed.value in THEMES:
            self._app.wear(changed.value)
        if setting.key not in AGENT_FIELDS:
            return None
        shown, changes = bridge.conversation_id, {AGENT_FIELDS[setting.key]: changed.value if value is None else value}

        async def take_over(harness: HarnessPort) -> Agent:
            return await (await harness.conversation(shown)).set_agent(**changes)

        return await bridge.ask(take_over)


def _line(setting: Setting) -> Choice[Setting]:
    return Choice(
        value=setting,
        label=setting.key,
        note=setting.value,
        detail=setting.source,
        preview=f"{setting.help}{_COUNTS[setting.when]}\n\nAllowed: {setting.allowed}.",
    )


def _typed(setting: Setting, typed: str) -> Choice[str]:
    return Choice(value=typed, label=typed, preview=f"{setting.help}\n\nAllowed: {setting.allowed}.")


def _told(setting: Setting, changed: Changed, value: str | None) -> str:
    what = f"{setting.key} is {value} now, and stored." if value is not None else f"{setting.key} is out of your file: {changed.value or 'none'} holds again."
    over = f" New chats still get {changed.value}: {changed.overruled_by} says so." if changed.overruled_by else ""
    return f"{what}{_COUNTS[setting.when]}{over}"
