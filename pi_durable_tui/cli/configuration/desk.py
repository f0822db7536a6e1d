"""The user's settings while the program runs: implements `tui.house.SettingsPort`.

Each value is the newest word on it: the command line's, the environment's, a trusted project's, the file's, or the default. A change goes
into the file first and is then used at once, as far as it can be.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from pi_durable_tui.cli import settings as file
from pi_durable_tui.cli.configuration.table import MEANINGS, Meaning, allowed, choices, shown
from pi_durable_tui.cli.paths import folders, read_text
from pi_durable_tui.cli.providers import default_model
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.cli.wish import Wish
from pi_durable_tui.context.project_settings import ProjectSettings
from pi_durable_tui.errors import ConfigError
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.settings import Settings as HarnessSettings
from pi_durable_tui.records.json import Json

if TYPE_CHECKING:
    from pi_durable_tui.tui.house import Changed, Setting, Source

_OF_AGENT = {"model": "model", "thinking": "thinking", "approve": "approval"}


class Said(Struct, frozen=True, kw_only=True):
    """Who says what: key -> value. The first one that says something of a key wins."""

    option: Mapping[str, object]
    environment: Mapping[str, object]
    project: Mapping[str, object]
    file: Mapping[str, object]

    def of(self, meaning: Meaning) -> tuple[str, Source]:
        """What a setting is, as people read it, and who says so."""
        sources: tuple[tuple[Source, Mapping[str, object]], ...] = (
            ("option", self.option),
            ("environment", self.environment),
            ("project file", self.project),
            ("your file", self.file),
        )
        for source, values in sources:
            if meaning.key in values:
                return shown(values[meaning.key]), source
        return meaning.default, "default"


class SettingsDesk:
    """See the module. Used on the harness's loop.

    Args:
        project: What the trusted project says now.
        settings: Of the open harness; changed in place.
    """

    def __init__(self, setup: Setup, wish: Wish, project: Callable[[], ProjectSettings], settings: HarnessSettings) -> None:
        self._config = folders(setup.environ).config
        self._environ = setup.environ
        self._project = project
        self._settings = settings
        self._options = {
            key: value
            for key, value in (
                ("model", wish.model),
                ("thinking", wish.thinking),
                ("approve", wish.approval),
                ("max_turns", wish.max_turns),
                ("max_cost_usd", wish.max_cost_usd),
                ("max_time_s", wish.max_time_s),
            )
            if value is not None
        }

    @property
    def file(self) -> str:
        """See `SettingsPort`."""
        return str(self._config / file.NAME)

    async def all(self, agent: Agent | None) -> tuple[Setting, ...]:
        """See `SettingsPort`."""
        said = await self._said()
        return tuple(_row(meaning, said, agent) for meaning in self._meanings())

    async def change(self, key: str, typed: str | None) -> Changed:
        """See `SettingsPort`."""
        from pi_durable_tui.tui.house import Changed  # noqa: PLC0415 - with the app, which is there by now

        value = None if typed is None else parsed(key, typed)
        try:
            await asyncio.to_thread(file.remember, self._config, key, value)
        except ConfigError as error:
            raise ConfigError(error.message.replace("Nothing was started.", "Nothing was changed."), hint=error.hint) from error
        self._options.pop(key, None)  # a later word of the same person
        use(self._settings, key, value)
        meaning = next(meaning for meaning in self._meanings() if meaning.key == key)
        told, source = (await self._said()).of(meaning)
        overruled_by = {"environment": "the environment", "project file": "the project"}.get(source, "") if typed is not None else ""
        return Changed(value=None if key == "model" and source == "default" and default_model(self._environ) is None else told, overruled_by=overruled_by)

    def _meanings(self) -> tuple[Meaning, ...]:
        """The table, with the model that is taken here when nobody names one."""
        model = default_model(self._environ)
        return tuple(Meaning(key=each.key, help=each.help, default=model, when=each.when) if each.key == "model" and model else each for each in MEANINGS)

    async def _said(self) -> Said:
        text = await asyncio.to_thread(read_text, self._config / file.NAME, limit_bytes=file.LIMIT_BYTES)
        project = self._project()
        variables = {"model": "PIDURABLE_MODEL", "store": "PIDURABLE_STORE"}
        return Said(
            option=self._options,
            environment={key: value for key, name in variables.items() if (value := self._environ.get(name))},
            project={key: value for key, value in (("model", project.model), ("thinking", project.thinking)) if value is not None},
            file=flat(file.parse(text, self.file)) if text is not None else {},
        )


def _row(meaning: Meaning, said: Said, agent: Agent | None) -> Setting:
    from pi_durable_tui.tui.house import Setting  # noqa: PLC0415 - with the app, which is there by now

    value, source = said.of(meaning)
    own = getattr(agent, _OF_AGENT[meaning.key]) if agent is not None and meaning.key in _OF_AGENT else None
    if own is not None and own != value:
        value, source = own, "this chat"
    kind, words = allowed(meaning.key)
    return Setting(
        key=meaning.key,
        help=meaning.help,
        value=value,
        source=source,
        choices=choices(meaning.key),
        allowed=words,
        is_own=meaning.key in said.file,
        is_edited_here=getattr(kind, "__origin__", None) not in {dict, list},
        when=meaning.when,
    )


def flat(values: Mapping[str, object]) -> dict[str, object]:
    """The values of a file by key, those in an object behind a dot. PURE."""
    found: dict[str, object] = {}
    for key, value in values.items():
        inner = msgspec.convert(value, dict[str, object]) if key in file.NESTED else None
        found |= {key: value} if inner is None else {f"{key}.{name}": each for name, each in inner.items()}
    return found


def parsed(key: str, typed: str) -> Json:
    """The value that a person means by what they typed. PURE.

    Raises:
        ConfigError: It is not allowed, or there is no such key.
    """
    if not any(meaning.key == key for meaning in MEANINGS):
        raise ConfigError(f"There is no setting {key!r}. Nothing was changed.")
    kind, words = allowed(key)
    readings: list[Json] = [typed]
    try:
        decoded: Json = json.loads(typed)
        readings.insert(0, decoded)
    except ValueError:
        pass  # a text
    for reading in readings:
        try:
            msgspec.convert(reading, kind)
        except msgspec.ValidationError:
            continue
        return reading
    raise ConfigError(f"{typed[:80]!r} is not allowed for {key}. Nothing was changed.", hint=f"Allowed: {words}.")


def use(settings: HarnessSettings, key: str, value: Json) -> None:
    """Put a value in force in a running harness; None: the default. What the harness does not go by is left to whoever reads it."""
    name, _, inner = key.partition(".")
    default = HarnessSettings()
    match name:
        case "retry" | "compaction":
            part = getattr(settings, name)
            setattr(part, inner, getattr(getattr(default, name), inner) if value is None else value)
        case "max_turns" | "max_cost_usd":
            setattr(settings.limits, name, value)
        case "max_time_s":
            settings.limits.max_time_ms = None if value is None else int(str(value)) * 1_000
        case "commands" if inner == "background":
            settings.limits.background_calls = default.limits.background_calls if value is None else int(str(value))
        case "restart_limit":
            settings.restart_limit = default.restart_limit if value is None else math.inf if value == "unlimited" else float(str(value))
        case "steering_mode" | "follow_up_mode":
            setattr(settings, name, getattr(default, name) if value is None else value)
        case _:
            pass
