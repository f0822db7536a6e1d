"""Every setting of the user's file: what it means, and what it is when nobody says anything. Data; the types stand in `cli/settings.py`."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from pi_durable_tui.cli.settings import ALLOWED, NESTED
from pi_durable_tui.harness.settings import Settings as HarnessSettings
from pi_durable_tui.tools.process import CommandLimits

When: TypeAlias = Literal["now", "new sessions", "next start"]
"""From when on a change counts."""


class Meaning(Struct, frozen=True, kw_only=True):
    """One setting. `key`: its name in the file, in an object behind a dot. `default`: as people read it."""

    key: str
    help: str
    default: str
    when: When = "now"


_HARNESS = HarnessSettings()
_COMMANDS = CommandLimits()


def _meaning(key: str, help_: str, default: object, when: When = "now") -> Meaning:
    return Meaning(key=key, help=help_, default=shown(default), when=when)


def shown(value: object) -> str:
    """A value as people read it."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case float() if value == float("inf"):
            return "unlimited"
        case dict():
            count = len(msgspec.convert(value, dict[str, object]))
            return f"{count} set" if count else "none"
        case list() | tuple():
            return ", ".join(map(str, msgspec.convert(value, list[object]))) or "none"
        case _:
            return str(value)


MEANINGS: tuple[Meaning, ...] = (
    _meaning("model", "The model that new chats ask, as provider/name.", "that of the first key found"),
    _meaning("thinking", "How much the model reasons before it answers.", "off"),
    _meaning("approve", "What the agent may do unasked: nothing but reading, edits too, all, or only plan.", "ask"),
    _meaning("theme", "The colours.", "system"),
    _meaning("mouse", "Whether the app takes the mouse; if not, the terminal keeps it, for selecting in its own way.", "true", "next start"),
    _meaning("bell", "Whether the terminal rings, while its window is not looked at, for a question and for the end of a long run.", "true", "next start"),
    _meaning("max_turns", "A run ends after so many requests to the model; what it did is stored.", _HARNESS.limits.max_turns),
    _meaning("max_cost_usd", "A run ends once it has cost so much; what it did is stored.", _HARNESS.limits.max_cost_usd),
    _meaning("max_time_s", "A run ends once it has worked so long, over all processes; what it did is stored.", None),
    _meaning("steering_mode", "Of several messages sent while the agent works: one after each round of tools, or all at once.", _HARNESS.steering_mode),
    _meaning("follow_up_mode", "Of several messages queued for later: one after each answer, or all at once.", _HARNESS.follow_up_mode),
    _meaning("on_continue", "Whether --continue goes on with unfinished work at once, or asks first.", "go", "next start"),
    _meaning("restart_limit", "How often one piece of work may be cut off by a kill before it is given up.", _HARNESS.restart_limit),
    _meaning("compaction.enabled", "Whether old context is summarized by itself when the model's window gets full.", _HARNESS.compaction.enabled),
    _meaning("compaction.reserve_tokens", "What of the window is kept free for the answer.", _HARNESS.compaction.reserve_tokens),
    _meaning("compaction.keep_tokens", "How much of the newest context is never summarized.", _HARNESS.compaction.keep_tokens),
    _meaning("retry.enabled", "Whether a request that failed for a while is made again.", _HARNESS.retry.enabled),
    _meaning("retry.max_retries", "How often it is made again.", _HARNESS.retry.max_retries),
    _meaning("retry.base_delay_ms", "How long the first wait before that is; each one is twice as long.", _HARNESS.retry.base_delay_ms),
    _meaning("retry.max_delay_ms", "The longest wait.", _HARNESS.retry.max_delay_ms),
    _meaning("store", "How new sessions are stored: one SQLite file, or JSON lines that people can read.", "sqlite", "new sessions"),
    _meaning("commands.background", "How many commands may run on in the background at once.", _HARNESS.limits.background_calls),
    _meaning("commands.processes", "A command with more processes than this at once is ended.", _COMMANDS.processes, "next start"),
    _meaning("commands.open_files", "How many files one process of a command may have open.", _COMMANDS.open_files, "next start"),
    _meaning("commands.file_mb", "How large a file that a command writes may grow.", _COMMANDS.file_bytes // 1_000_000, "next start"),
    _meaning("sandbox", "What is put around commands: nothing, a wall that protects files, or one that takes the network away too.", "off", "next start"),
    _meaning("sandbox_writable", "Folders that commands may write inside of the wall, beside the working directory.", (), "next start"),
    _meaning("models", "What you say of single models: window, prices, thinking levels.", {}, "next start"),
    _meaning("base_urls", "Where providers are reached, other than where they usually are.", {}, "next start"),
    _meaning("keyring", "Keys that are read from the system's keyring (service pidurable), by the names of their variables.", (), "next start"),
    _meaning("mcp_servers", "Servers whose tools the agent may use; /reload takes them over.", {}, "next start"),
)
"""In the order in which people see them."""

UNSHOWN = frozenset({"$schema"})
"""Keys that say nothing to the program."""


def allowed(key: str) -> tuple[object, str]:
    """The type of a setting, and what is allowed in words."""
    name, _, inner = key.partition(".")
    return NESTED[name][inner] if inner else ALLOWED[name]


def choices(key: str) -> tuple[str, ...]:
    """The values of a setting that has few; () where it is a text, a number or an object."""
    kind = allowed(key)[0]
    kind = getattr(kind, "__value__", kind)
    if kind is bool:
        return ("true", "false")
    words = get_args(kind)
    return tuple(words) if words and all(isinstance(word, str) for word in words) else ()
