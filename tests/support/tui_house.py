"""The program around the app for tests: settings in memory, models and sessions that a test decides on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from pi_durable_tui.errors import ConfigError
from pi_durable_tui.tui.house import Changed, KnownModel, Setting

SETTINGS = (
    Setting(
        key="model",
        help="The model that new chats ask.",
        value="playback/story",
        source="default",
        choices=(),
        allowed="a model id",
        is_own=False,
        is_edited_here=True,
        when="now",
    ),
    Setting(
        key="thinking",
        help="How much the model reasons.",
        value="off",
        source="project file",
        choices=("off", "low", "high"),
        allowed='"off", "low" or "high"',
        is_own=False,
        is_edited_here=True,
        when="now",
    ),
    Setting(
        key="theme",
        help="The colours.",
        value="dark",
        source="your file",
        choices=("dark", "light", "ansi", "system"),
        allowed="a theme",
        is_own=True,
        is_edited_here=True,
        when="now",
    ),
    Setting(
        key="max_turns",
        help="A run ends after so many requests.",
        value="none",
        source="default",
        choices=(),
        allowed="a whole number from 1",
        is_own=False,
        is_edited_here=True,
        when="now",
    ),
    Setting(
        key="on_continue",
        help="Whether --continue asks first.",
        value="go",
        source="environment",
        choices=("go", "ask"),
        allowed='"go" or "ask"',
        is_own=False,
        is_edited_here=True,
        when="next start",
    ),
    Setting(
        key="base_urls",
        help="Where providers are reached.",
        value="none",
        source="default",
        choices=(),
        allowed="an object",
        is_own=False,
        is_edited_here=False,
        when="next start",
    ),
)


@dataclass
class FakeSettings:
    """Keeps what is changed. `refuse`: raised by the next call."""

    rows: tuple[Setting, ...] = SETTINGS
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    overruled_by: str = ""
    refuse: ConfigError | None = None
    file: str = "~/.config/pidurable/settings.json"

    async def all(self, agent: Any) -> tuple[Setting, ...]:
        self._refuse()
        return self.rows

    async def change(self, key: str, typed: str | None) -> Changed:
        self._refuse()
        self.asked.append((key, typed))
        value = typed if typed is not None else "dark" if key == "theme" else "by default"
        self.rows = tuple(
            msgspec.structs.replace(row, value=value, source="your file" if typed else "default", is_own=typed is not None) if row.key == key else row
            for row in self.rows
        )
        return Changed(value="other" if self.overruled_by else value, overruled_by=self.overruled_by)

    def _refuse(self) -> None:
        refuse, self.refuse = self.refuse, None
        if refuse is not None:
            raise refuse


@dataclass
class FakeModels:
    models: tuple[KnownModel, ...] = ()

    async def known(self) -> tuple[KnownModel, ...]:
        return self.models


@dataclass
class FakeHouse:
    settings: FakeSettings = field(default_factory=FakeSettings)
    models: FakeModels = field(default_factory=FakeModels)
    export: Any = None
    sessions: Any = None
    rings: bool = True
