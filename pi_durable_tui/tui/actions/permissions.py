"""What /permissions does: lists the standing permissions, revokes them, and makes new ones (rule TU-19)."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pi_durable_tui.harness.approval import Decision, Granted, Rule, rule_text
from pi_durable_tui.tui.actions.moves import when
from pi_durable_tui.tui.bridge import Bridge
from pi_durable_tui.tui.ports import HarnessPort
from pi_durable_tui.tui.screens.picker import Choice, PickerScreen

if TYPE_CHECKING:
    from pi_durable_tui.tui.app import PidurableApp

USE = "/permissions allow|ask|deny and the first words of a command makes a rule; a folder that ends in / is about changes to its files."


class PermissionList:
    """See the module. Used on the screen's loop."""

    def __init__(self, app: PidurableApp) -> None:
        self._app = app

    def show(self, argument: str) -> None:
        """List the rules, or make the one that is said."""
        bridge = self._app.bridge
        if bridge is not None:
            self._app.run_worker(self._make(bridge, argument) if argument else self._list(bridge))

    async def _make(self, bridge: Bridge, argument: str) -> None:
        rule = rule_of(argument)
        if rule is None:
            self._app.tell("warn", USE)
            return
        made = await bridge.ask(lambda harness: harness.permissions.grant(rule, by="the user"))
        if made is not None:
            self._app.tell("good", f"From now on: {rule_text(made.rule)}. /permissions lists and revokes.")

    async def _list(self, bridge: Bridge) -> None:
        granted = await bridge.ask(lambda harness: harness.permissions.list())
        if granted is None:
            return
        if not granted:
            self._app.tell("info", f"There are no standing permissions in this session. {USE}")
            return
        now_ms = self._app.clock.now_ms()
        choices = [self._choice(each, now_ms) for each in granted]
        picked = await self._app.push_screen_wait(PickerScreen(self._app.palette, "Standing permissions", choices, keys={"d": "revokes"}))
        if picked is None or picked.key != "d":
            return
        chosen = picked.value
        if await bridge.ask(lambda harness: _revoked(harness, chosen.id)):
            self._app.tell("good", f"Revoked: {rule_text(chosen.rule)}.")

    def _choice(self, granted: Granted, now_ms: int) -> Choice[Granted]:
        told = f"by {granted.by}, {when(granted.at_ms, now_ms)}"
        return Choice(value=granted, label=rule_text(granted.rule), detail=told, preview=f"{rule_text(granted.rule)}\n\nMade {told}.")


async def _revoked(harness: HarnessPort, grant_id: int) -> bool:
    """True, so that it can be told from a problem."""
    await harness.permissions.revoke(grant_id)
    return True


def rule_of(argument: str) -> Rule | None:
    """The rule that a person typed: a decision, then words or a folder; None when it is not one. PURE."""
    name, _, rest = argument.strip().partition(" ")
    decisions: dict[str, Decision] = {"allow": "allow", "ask": "ask", "deny": "deny"}
    try:
        words = shlex.split(rest)
    except ValueError:
        return None
    if name not in decisions or not words or any(" " in word for word in words):
        return None
    if len(words) == 1 and words[0].startswith("/") and words[0].endswith("/"):
        return Rule(kind="path", text=words[0], decision=decisions[name])
    return Rule(kind="command", text=" ".join(words), decision=decisions[name])
