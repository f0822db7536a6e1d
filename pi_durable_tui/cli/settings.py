"""Reads the user's settings file and says what is wrong with it (rule CL-4).

`settings.json` in the config folder, JSON with the keys of `ALLOWED`. Later sources win: file, then PIDURABLE_MODEL and PIDURABLE_STORE, then options.
A project's own settings are not read: nothing trusts a project here (rules SA-5, SA-6). Secrets have no key in this file (SA-17).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import msgspec

from pi_durable_tui.cli.paths import read_text, write_setting_file
from pi_durable_tui.errors import ConfigError
from pi_durable_tui.models.overrides import ModelOverride
from pi_durable_tui.records.modes import ApprovalMode, ThinkingLevel
from pi_durable_tui.storage.kind import STORE_KINDS, StoreKind

if TYPE_CHECKING:
    from pi_durable_tui.harness.settings import Settings as HarnessSettings

LIMIT_BYTES = 100_000
NAME = "settings.json"

Theme: TypeAlias = Literal["dark", "light", "ansi", "system"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=1_000)]
_Url = Annotated[str, msgspec.Meta(pattern=r"^https?://[^\s/]+")]
_Delay = Annotated[int, msgspec.Meta(ge=0, le=86_400_000)]

ALLOWED: dict[str, tuple[object, str]] = {
    "model": (Annotated[str, msgspec.Meta(min_length=1)], 'a model id such as "anthropic/claude-sonnet-4-5"'),
    "approve": (ApprovalMode, '"ask", "edits", "all" or "plan"'),
    "thinking": (ThinkingLevel, '"off", "low", "medium" or "high"'),
    "theme": (Theme, '"dark", "light", "ansi" or "system"'),
    "on_continue": (Literal["go", "ask"], '"go" or "ask"'),
    "restart_limit": (Annotated[int, msgspec.Meta(ge=1)] | Literal["unlimited"], 'a whole number from 1, or "unlimited"'),
    "store": (StoreKind, '"sqlite" or "jsonl"'),
    "models": (dict[str, ModelOverride], f"an object: model id -> {{{', '.join(ModelOverride.__struct_fields__)}}}"),
    "base_urls": (dict[str, _Url], "an object: provider -> http:// or https:// URL"),
    "retry": (dict[str, object], "an object with enabled, max_retries, base_delay_ms, max_delay_ms"),
}
"""Key -> (type, what is allowed, for people)."""

_RETRY_ALLOWED: dict[str, tuple[object, str]] = {
    "enabled": (bool, "true or false"),
    "max_retries": (_Count, "a whole number from 0 to 1000"),
    "base_delay_ms": (_Delay, "milliseconds from 0 to 86400000"),
    "max_delay_ms": (_Delay, "milliseconds from 0 to 86400000"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSettings:
    """What the file says; None: it does not say.

    Attributes:
        on_continue: Whether `--continue` goes on with unfinished work at once, or asks before; print mode never asks.
        store: The kind of new sessions; those that are there are opened as what they are.
        models: What the person says of single models, see `models/overrides.py`.
        base_urls: Provider -> where it is reached; wins over the environment. Never from a project (rule SA-6).
    """

    model: str | None = None
    approve: ApprovalMode | None = None
    thinking: ThinkingLevel | None = None
    theme: Theme | None = None
    on_continue: Literal["go", "ask"] = "go"
    restart_limit: float | None = None
    store: StoreKind = "sqlite"
    models: dict[str, ModelOverride] = field(default_factory=dict[str, ModelOverride])
    base_urls: dict[str, str] = field(default_factory=dict[str, str])
    retry: Mapping[str, int | bool] = field(default_factory=dict[str, "int | bool"])

    def harness(self) -> HarnessSettings:
        """The harness's settings with these laid over its defaults."""
        from pi_durable_tui.harness.settings import Retry  # noqa: PLC0415 - the screen is painted before the harness is loaded
        from pi_durable_tui.harness.settings import Settings as HarnessSettings  # noqa: PLC0415 - the same

        settings = HarnessSettings(retry=Retry(**self.retry))  # pyright: ignore[reportArgumentType] - checked by _RETRY_ALLOWED
        if self.restart_limit is not None:
            settings.restart_limit = self.restart_limit
        return settings


def load(config: Path, environ: Mapping[str, str]) -> UserSettings:
    """The settings of this user; without a file the empty ones. PIDURABLE_MODEL and PIDURABLE_STORE win over the file.

    Raises:
        ConfigError: Names the file, the key and what is allowed. Nothing was started.
    """
    path = config / NAME
    text = read_text(path, limit_bytes=LIMIT_BYTES)
    values = {} if text is None else parse(text, str(path))
    if environ.get("PIDURABLE_MODEL"):
        values = {**values, "model": environ["PIDURABLE_MODEL"]}
    if environ.get("PIDURABLE_STORE"):
        values = {**values, "store": environ["PIDURABLE_STORE"]}
        if values["store"] not in STORE_KINDS:
            raise ConfigError(f"PIDURABLE_STORE is {values['store']!r}. Nothing was started.", hint=f"Allowed: {ALLOWED['store'][1]}.")
    return msgspec.convert(values, UserSettings)


def remember(config: Path, key: str, value: str) -> None:
    """Set one key of the file and leave the others as they are; the file is made when there is none.

    Raises:
        ConfigError: The file is wrong as it stands, or the value is not allowed. The file was not changed.
        EnvironmentFailure: It could not be written. The old one is still there, whole.
    """
    path = config / NAME
    text = read_text(path, limit_bytes=LIMIT_BYTES)
    if text is not None:
        parse(text, str(path))
    stored = msgspec.json.decode(text or "{}", type=dict[str, object]) | {key: value}
    content = msgspec.json.format(msgspec.json.encode(stored), indent=2) + b"\n"
    parse(content.decode(), str(path))
    write_setting_file(path, content)


def parse(text: str, where: str) -> dict[str, object]:
    """The checked values of a settings file. `where` names it in errors. PURE.

    Raises:
        ConfigError: It is not JSON, has an unknown key, or a value that is not allowed.
    """
    try:
        decoded: object = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ConfigError(f"The settings {where!r} are not JSON: {error}. Nothing was started.", hint="Correct the file, or remove it.") from error
    if not isinstance(decoded, dict):
        raise ConfigError(f"The settings {where!r} must be a JSON object. Nothing was started.", hint=f"Allowed keys: {', '.join(ALLOWED)}.")
    values = _checked(msgspec.convert(decoded, dict[str, object]), ALLOWED, where, "")
    if values.get("restart_limit") == "unlimited":
        values["restart_limit"] = math.inf
    if "retry" in values:
        values["retry"] = _checked(msgspec.convert(values["retry"], dict[str, object]), _RETRY_ALLOWED, where, "retry.")
    return values


def _checked(values: dict[str, object], allowed: Mapping[str, tuple[object, str]], where: str, prefix: str) -> dict[str, object]:
    for key, value in values.items():
        name = prefix + key
        if key not in allowed:
            names = ", ".join(prefix + known for known in allowed)
            raise ConfigError(f"The settings {where!r} have the unknown key {name!r}. Nothing was started.", hint=f"Allowed keys: {names}.")
        kind, words = allowed[key]
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            shown = msgspec.json.encode(value).decode()[:80]
            raise ConfigError(f"The settings {where!r} have the value {shown} for {name!r}. Nothing was started.", hint=f"Allowed: {words}.") from error
    return dict(values)
