"""Reads the user's settings file and says what is wrong with it (rule CL-4).

`settings.json` in the config folder, JSON with the keys of `ALLOWED`. Later sources win: file, then PIDURABLE_MODEL and PIDURABLE_STORE, then options.
A project's own settings are not read: nothing trusts a project here (rules SA-5, SA-6). Secrets have no key in this file (SA-17).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct, field

from pi_durable_tui.cli.paths import read_text, write_setting_file
from pi_durable_tui.errors import ConfigError
from pi_durable_tui.mcp.config import ALLOWED as ALLOWED_SERVERS
from pi_durable_tui.mcp.config import NAME as SERVER_NAME
from pi_durable_tui.mcp.config import McpServer
from pi_durable_tui.models.overrides import ModelOverride
from pi_durable_tui.records.json import Json
from pi_durable_tui.records.modes import ApprovalMode, ThinkingLevel
from pi_durable_tui.storage.kind import STORE_KINDS, StoreKind

if TYPE_CHECKING:
    from pi_durable_tui.harness.settings import Settings as HarnessSettings
    from pi_durable_tui.tools.process import CommandLimits

LIMIT_BYTES = 100_000
NAME = "settings.json"
SHOWN_CHARS = 120

Theme: TypeAlias = Literal["dark", "light", "ansi", "system"]
Sandbox: TypeAlias = Literal["off", "files", "full"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=1_000)]
_ServerName = Annotated[str, msgspec.Meta(pattern=f"^{SERVER_NAME.pattern}$")]
_Folder = Annotated[str, msgspec.Meta(pattern=r"^(/|~/|~$)")]
_Variable = Annotated[str, msgspec.Meta(pattern=r"^[A-Z][A-Z0-9_]*$")]
_Url = Annotated[str, msgspec.Meta(pattern=r"^https?://[^\s/]+")]
_Delay = Annotated[int, msgspec.Meta(ge=0, le=86_400_000)]
_Tokens = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
_Queue: TypeAlias = Literal["one-at-a-time", "all"]

ALLOWED: dict[str, tuple[object, str]] = {
    "model": (Annotated[str, msgspec.Meta(min_length=1)], 'a model id such as "anthropic/claude-sonnet-4-5"'),
    "approve": (ApprovalMode, '"ask", "edits", "all" or "plan"'),
    "thinking": (ThinkingLevel, '"off", "low", "medium" or "high"'),
    "theme": (Theme, '"dark", "light", "ansi" or "system"'),
    "mouse": (bool, "true or false"),
    "bell": (bool, "true or false"),
    "on_continue": (Literal["go", "ask"], '"go" or "ask"'),
    "max_turns": (Annotated[int, msgspec.Meta(ge=1)], "a whole number from 1"),
    "max_cost_usd": (Annotated[float, msgspec.Meta(ge=0)], "an amount in US dollars, from 0"),
    "max_time_s": (Annotated[int, msgspec.Meta(ge=1)], "whole seconds from 1"),
    "steering_mode": (_Queue, '"one-at-a-time" or "all"'),
    "follow_up_mode": (_Queue, '"one-at-a-time" or "all"'),
    "restart_limit": (Annotated[int, msgspec.Meta(ge=1)] | Literal["unlimited"], 'a whole number from 1, or "unlimited"'),
    "store": (StoreKind, '"sqlite" or "jsonl"'),
    "models": (dict[str, ModelOverride], f"an object: model id -> {{{', '.join(ModelOverride.__struct_fields__)}}}"),
    "base_urls": (dict[str, _Url], "an object: provider -> http:// or https:// URL"),
    "keyring": (list[_Variable], 'a list of variables such as ["ANTHROPIC_API_KEY"]'),
    "sandbox": (Sandbox, '"off", "files" or "full"'),
    "sandbox_writable": (list[_Folder], "a list of folders, absolute or below ~"),
    "mcp_servers": (dict[_ServerName, McpServer], ALLOWED_SERVERS),
    "retry": (dict[str, object], "an object with enabled, max_retries, base_delay_ms, max_delay_ms"),
    "compaction": (dict[str, object], "an object with enabled, reserve_tokens, keep_tokens"),
    "commands": (dict[str, object], "an object with background, processes, open_files, file_mb"),
    "$schema": (str, "the address of a schema, for editors; it is not read"),
}
"""Key -> (type, what is allowed, for people)."""

NESTED: dict[str, dict[str, tuple[object, str]]] = {
    "retry": {
        "enabled": (bool, "true or false"),
        "max_retries": (_Count, "a whole number from 0 to 1000"),
        "base_delay_ms": (_Delay, "milliseconds from 0 to 86400000"),
        "max_delay_ms": (_Delay, "milliseconds from 0 to 86400000"),
    },
    "compaction": {
        "enabled": (bool, "true or false"),
        "reserve_tokens": (_Tokens, "tokens from 0 to 10000000"),
        "keep_tokens": (_Tokens, "tokens from 0 to 10000000"),
    },
    "commands": {
        "background": (Annotated[int, msgspec.Meta(ge=0, le=1_000)], "a whole number from 0 to 1000"),
        "processes": (Annotated[int, msgspec.Meta(ge=16, le=4_000_000)], "a whole number from 16 to 4000000"),
        "open_files": (Annotated[int, msgspec.Meta(ge=64, le=1_048_576)], "a whole number from 64 to 1048576"),
        "file_mb": (Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)], "megabytes from 1 to 1000000000"),
    },
}
"""The same of what stands in the objects among them."""


class UserSettings(Struct, frozen=True, kw_only=True):
    """What the file says; None: it does not say.

    Attributes:
        mouse: Whether the app takes the mouse; if not, the terminal keeps it for selecting in its own way.
        bell: Whether the terminal rings when somebody is wanted who looks elsewhere.
        on_continue: Whether `--continue` goes on with unfinished work at once, or asks before; print mode never asks.
        store: The kind of new sessions; those that are there are opened as what they are.
        keyring: The keys that come from the system's keyring, by the names of their variables.
        sandbox: What is put around commands (rule SA-15): nothing, a wall that protects files, or one that takes the network away too.
        sandbox_writable: Folders that commands may write in it, beside the working directory.
        models: What the person says of single models, see `models/overrides.py`.
        mcp_servers: Name -> what is started or asked, see `mcp/config.py`.
        base_urls: Provider -> where it is reached; wins over the environment. Never from a project (rule SA-6).
    """

    model: str | None = None
    approve: ApprovalMode | None = None
    thinking: ThinkingLevel | None = None
    theme: Theme | None = None
    mouse: bool = True
    bell: bool = True
    on_continue: Literal["go", "ask"] = "go"
    max_turns: int | None = None
    max_cost_usd: float | None = None
    max_time_s: int | None = None
    steering_mode: _Queue | None = None
    follow_up_mode: _Queue | None = None
    restart_limit: float | None = None
    store: StoreKind = "sqlite"
    models: dict[str, ModelOverride] = field(default_factory=dict[str, ModelOverride])
    base_urls: dict[str, str] = field(default_factory=dict[str, str])
    keyring: tuple[str, ...] = ()
    sandbox: Sandbox = "off"
    sandbox_writable: tuple[str, ...] = ()
    mcp_servers: dict[str, McpServer] = field(default_factory=dict[str, McpServer])
    retry: Mapping[str, int | bool] = field(default_factory=dict[str, "int | bool"])
    compaction: Mapping[str, int | bool] = field(default_factory=dict[str, "int | bool"])
    commands: Mapping[str, int] = field(default_factory=dict[str, int])

    def harness(self) -> HarnessSettings:
        """The harness's settings with these laid over its defaults."""
        from pi_durable_tui.harness import settings as harness  # noqa: PLC0415 - the screen is painted before the harness is loaded

        settings = harness.Settings(
            retry=harness.Retry(**self.retry),  # pyright: ignore[reportArgumentType] - checked by NESTED
            compaction=harness.Compaction(**self.compaction),  # pyright: ignore[reportArgumentType] - the same
            limits=harness.Limits(
                max_turns=self.max_turns,
                max_cost_usd=self.max_cost_usd,
                max_time_ms=None if self.max_time_s is None else self.max_time_s * 1_000,
                background_calls=self.commands.get("background", harness.Limits().background_calls),
            ),
        )
        for name in ("restart_limit", "steering_mode", "follow_up_mode"):
            if (value := getattr(self, name)) is not None:
                setattr(settings, name, value)
        return settings

    def command_limits(self) -> CommandLimits:
        """What one command may use (rule SA-11)."""
        from pi_durable_tui.tools.process import CommandLimits  # noqa: PLC0415 - the screen is painted before the tools are loaded

        usual = CommandLimits()
        return CommandLimits(
            processes=self.commands.get("processes", usual.processes),
            open_files=self.commands.get("open_files", usual.open_files),
            file_bytes=self.commands["file_mb"] * 1_000_000 if "file_mb" in self.commands else usual.file_bytes,
        )


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


def remember(config: Path, key: str, value: Json) -> None:
    """Set one key of the file, or take it out; all else in it stays as it is written, and the file is made when there is none.

    Args:
        key: One in an object behind a dot, such as "retry.max_retries".
        value: None takes the key out.

    Raises:
        ConfigError: The file is no JSON object, or the value is not allowed. The file was not changed.
        EnvironmentFailure: It could not be written. The old one is still there, whole.
    """
    from pi_durable_tui.cli.configuration.editing import edited, removed  # noqa: PLC0415 - only who changes a setting needs it

    path, where = config / NAME, key.split(".")
    text = read_text(path, limit_bytes=LIMIT_BYTES) or "{\n}\n"
    _object(text, str(path))
    if value is not None:
        parse(edited("{}", where, value), str(path))
    write_setting_file(path, (edited(text, where, value) if value is not None else removed(text, where)).encode())


def parse(text: str, where: str) -> dict[str, object]:
    """The checked values of a settings file. `where` names it in errors. PURE.

    Raises:
        ConfigError: It is not JSON, has an unknown key, or a value that is not allowed.
    """
    values = _checked(_object(text, where), ALLOWED, where, "")
    if values.get("restart_limit") == "unlimited":
        values["restart_limit"] = math.inf
    for key, allowed in NESTED.items():
        if key in values:
            values[key] = _checked(msgspec.convert(values[key], dict[str, object]), allowed, where, f"{key}.")
    return values


def _object(text: str, where: str) -> dict[str, object]:
    try:
        decoded: object = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ConfigError(f"The settings {where!r} are not JSON: {error}. Nothing was started.", hint="Correct the file, or remove it.") from error
    if not isinstance(decoded, dict):
        raise ConfigError(f"The settings {where!r} must be a JSON object. Nothing was started.", hint=f"Allowed keys: {', '.join(ALLOWED)}.")
    return msgspec.convert(decoded, dict[str, object])


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
            item, wrong = _culprit(value, kind)
            text = msgspec.json.encode(wrong).decode()
            shown = text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
            of = f"{name!r} ({item!r})" if item is not None else f"{name!r}"
            raise ConfigError(f"The settings {where!r} have the value {shown} for {of}. Nothing was started.", hint=f"Allowed: {words}.") from error
    return dict(values)


def _culprit(value: object, kind: object) -> tuple[str | None, object]:
    """The first item of an object that does not fit, and its name; of anything else the value itself."""
    for item, part in cast("dict[str, object]", value).items() if isinstance(value, dict) else ():
        try:
            msgspec.convert({item: part}, kind)
        except msgspec.ValidationError:
            return item, part
    return None, cast("object", value)
