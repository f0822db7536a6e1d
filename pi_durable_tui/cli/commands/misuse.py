"""What is said to a command line that cannot be understood: what is wrong, that nothing was started, and what to type instead. PURE.

The parser's own words are taken where they say what is allowed; they are put into the form that all errors have (rule CL-6).
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from pi_durable_tui.errors import BadRequest

if TYPE_CHECKING:
    from typer.exceptions import TyperException

_NOTHING = "Nothing was started."
_PROMPTS = "words after -- are always a prompt"


def misuse(error: TyperException) -> BadRequest:
    """The error of the parser as one of ours."""
    # Only for what went wrong: a prompt of one word is looked at without the parser.
    from typer._click.exceptions import BadParameter, MissingParameter, NoSuchOption, UsageError  # noqa: PLC0415

    from pi_durable_tui.cli.routing import CHAT  # noqa: PLC0415

    context = error.ctx if isinstance(error, UsageError) else None
    path = context.command_path if context is not None else "pidurable"
    see = f"See {path} --help." if path not in ("pidurable", f"pidurable {CHAT}") else f"See pidurable --help; {_PROMPTS}."
    match error:
        case NoSuchOption(option_name=name, possibilities=possible):
            near = " or ".join(difflib.get_close_matches(name, possible or (), n=2, cutoff=0.75))
            return BadRequest(f"There is no option {name} here. {_NOTHING}", hint=f"{f'Did you mean {near}? ' if near else ''}{see}")
        case MissingParameter():
            return BadRequest(f"{_parameter(error)} is missing. {_NOTHING}", hint=see)
        case BadParameter(message=message):
            return BadRequest(f"The value of {_parameter(error)} does not fit: {_as_clause(message)}. {_NOTHING}", hint=see)
        case _:
            return BadRequest(f"{error.format_message().rstrip('.?')}{'?' if error.format_message().endswith('?') else '.'} {_NOTHING}", hint=see)


def _parameter(error: object) -> str:
    """What a person calls the parameter: its option, or its name in the help."""
    param = getattr(error, "param", None)
    if param is None:
        return "A parameter"
    options = [option for option in param.opts if option.startswith("-")]
    return max(options, key=len) if options else str(param.metavar or param.name).strip("[]").upper()


def _as_clause(message: str) -> str:
    """The parser's words in the middle of a sentence."""
    text = message.removeprefix("Value error, ").strip().rstrip(".")
    return text[:1].lower() + text[1:]


def near_miss(words: Sequence[str], commands: Collection[str]) -> BadRequest | None:
    """What to say to a single word that is nearly a command: as a prompt it would be sent to a model. None: it is a prompt."""
    if len(words) != 1 or words[0] in commands:
        return None
    (word,) = words
    near = "--help" if word == "help" else "--version" if word == "version" else next(iter(difflib.get_close_matches(word, commands, n=1, cutoff=0.81)), None)
    if near is None:
        return None
    return BadRequest(f"{word!r} is no command. {_NOTHING}", hint=f"Did you mean pidurable {near}? As a prompt: pidurable -- {word}")
