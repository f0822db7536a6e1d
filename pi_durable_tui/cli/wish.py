"""What `pidurable [PROMPT]` does: sorts out what was asked for, then hands over to print mode or to the app.

Nothing heavy is imported at the top: the app paints first, and the harness is loaded while a person reads.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from pi_durable_tui.cli.setup import Setup, set_up
from pi_durable_tui.errors import BadRequest
from pi_durable_tui.records.modes import ApprovalMode, ThinkingLevel

COMMANDS = frozenset({"chat", "completion", "demo", "demo-player", "doctor", "export", "inspect", "log", "selftest", "sessions", "watch"})
"""The names of the commands: a first word that is none of them begins a prompt."""

HIDDEN = frozenset({"chat", "demo-player"})
"""Those that no person types."""

COMPLETING = "_PIDURABLE_COMPLETE"
"""The variable by which a shell asks for completions."""


class Wish(Struct, frozen=True, kw_only=True):
    """The command line of a chat. None: not said.

    Attributes:
        chat_id: The one to resume; None: the one that --continue takes.
        pick: Let the person choose which one to resume.
        name: What to call the chat; "": it keeps the name it has.
        tools: Names of those that are offered.
        in_memory: Nothing is stored: the chat is gone with the process.
        max_turns, max_cost_usd, max_time_s: What a run may use before it is ended.
    """

    prompt: str = ""
    resume: bool = False
    chat_id: str | None = None
    pick: bool = False
    name: str = ""
    tools: tuple[str, ...] | None = None
    in_memory: bool = False
    max_turns: int | None = None
    max_cost_usd: float | None = None
    max_time_s: int | None = None
    in_print_mode: bool = False
    as_json: bool = False
    model: str | None = None
    approval: ApprovalMode | None = None
    thinking: ThinkingLevel | None = None
    cwd: str | None = None
    trust: bool = False


def as_typed(argument: str) -> str:
    """A word of the command line as it stands in the prompt: `@a b` as one word stays one mention of a file. PURE."""
    has_blanks = argument.startswith("@") and any(char.isspace() for char in argument) and '"' not in argument and "\n" not in argument
    return f'@"{argument[1:]}"' if has_blanks and len(argument) > 1 else argument


def plain_wish(arguments: Sequence[str]) -> Wish | None:
    """The wish of a command line that is only words, or `--continue` with or without words behind it; None: it takes a parser to tell. PURE."""
    resume = list(arguments[:1]) in (["-c"], ["--continue"])
    words = list(arguments[1:] if resume else arguments)
    if any(word.startswith("-") for word in words) or (not resume and words[:1] and words[0] in COMMANDS):
        return None
    return Wish(prompt=" ".join(as_typed(word) for word in words), resume=resume)


def open_chat(wish: Wish) -> int:
    """Run print mode or the app and return the exit code.

    Raises:
        BadRequest: There is nothing to do, or no terminal for the app. Nothing was started.
        ConfigError: Settings are wrong, or print mode has no model. Nothing was started.
    """
    setup = set_up(wish.cwd, os.environ)
    if not wish.in_memory:
        return _open_chat(setup, wish)
    with tempfile.TemporaryDirectory(prefix="pidurable-") as folder:  # what tools spill; gone with the chat
        return _open_chat(replace(setup, place=replace(setup.place, folder=Path(folder))), wish)


def _open_chat(setup: Setup, wish: Wish) -> int:
    if wish.in_print_mode:
        from pi_durable_tui.cli.print import print_answer  # noqa: PLC0415 - the app does not need it

        return print_answer(setup, wish)
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadRequest("The app needs a terminal for its input and output. Nothing was started.", hint='For use in scripts and pipes: pidurable -p "PROMPT".')
    if wish.pick:
        from pi_durable_tui.cli.sessions.picking import picked  # noqa: PLC0415 - rarely needed

        wish = replace(wish, chat_id=picked(setup))
    from pi_durable_tui.cli.terminal import run_app  # noqa: PLC0415 - imports textual

    return run_app(setup, wish)
