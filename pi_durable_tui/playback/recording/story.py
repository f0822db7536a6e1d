"""A recorded session put together: the texts of its files, without keys and without the names of the machine's folders. PURE."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from pi_durable_tui.errors import Refused
from pi_durable_tui.models.playback import WINDOW_TOKENS, Request, text_of
from pi_durable_tui.playback.folder import CARD, INPUT, MODEL
from pi_durable_tui.playback.recording.answers import requests_of
from pi_durable_tui.playback.recording.person import missing_from, steps_of
from pi_durable_tui.playback.recording.source import Source
from pi_durable_tui.playback.steps import Fork, Step, text_of_steps
from pi_durable_tui.records.json import Json
from pi_durable_tui.records.keys import mapped

TITLE_CHARS = 72


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The texts of the files, and what happened and is not in them, one line each."""

    texts: dict[str, str]
    missing: tuple[str, ...]


def recorded(source: Source, clean: Callable[[str], str], *, window_tokens: int | None, remarks: Sequence[str]) -> Recorded:
    """The story of a chat.

    Args:
        clean: Takes out of a text what must not be given away (`cleaning`).
        window_tokens: How much its model could read; None: more than was ever needed.
        remarks: What else a person should know, one line each.

    Raises:
        Refused: There is nothing to play, or a fork that cannot be found again in what is said.
    """
    steps = steps_of(source)
    if not steps:
        raise Refused("Nobody has said anything in that chat. Nothing was written.")
    if any(isinstance(step, Fork) and not step.at.strip() for step in steps):
        raise Refused("The chat was forked at an entry without words, which no recording can name. Nothing was written.", hint="Record the chat it comes from.")
    missing = (*missing_from(source), *remarks)
    title = clean(" ".join(source.title.split()))[:TITLE_CHARS] or "A chat"
    lines = [
        f"title = {_quoted(title)}",
        'shows = "A chat as it was recorded."',
        f'approve = "{source.approval}"',
        *([f"window_tokens = {window_tokens}"] if window_tokens not in (None, WINDOW_TOKENS) else []),
        *(["", "# What happened and is not in it, or not as it was:"] if missing else []),
        *(f"# - {' '.join(clean(line).split())}" for line in missing),
    ]
    texts = {
        CARD: "".join(f"{line}\n" for line in lines),
        INPUT: text_of_steps(_clean_steps(steps, clean)),
        MODEL: text_of(_clean_requests(requests_of(source), clean)),
    }
    return Recorded(texts=texts, missing=missing)


def _clean_steps(steps: Sequence[Step], clean: Callable[[str], str]) -> tuple[Step, ...]:
    return tuple(msgspec.convert(mapped(_plain(step), clean), type(step)) for step in steps)


def _clean_requests(requests: Sequence[Request], clean: Callable[[str], str]) -> tuple[Request, ...]:
    return tuple(msgspec.convert(mapped(_plain(request), clean), Request) for request in requests)


def _plain(value: object) -> Json:
    plain: Json = msgspec.to_builtins(value, builtin_types=())
    return json.loads(json.dumps(plain))


def _quoted(text: str) -> str:
    """As a TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def cleaning(redact: Callable[[str], str], *, directory: str, home: str) -> Callable[[str], str]:
    """What takes keys out of a text, and makes paths below the directory relative to it and paths below the home begin with `~`.

    Args:
        redact: Takes out keys.
        directory: The working directory of the chat, absolute.
        home: The person's home, absolute; "": not known.
    """
    inside = re.compile(rf"{re.escape(directory)}/(?=[\w.@+-])")
    itself = re.compile(rf"{re.escape(directory)}(?![\w@+-])/?")
    below_home = re.compile(rf"{re.escape(home.rstrip('/'))}(?![\w.@+-])") if home.strip("/") else None

    def clean(text: str) -> str:
        text = itself.sub(".", inside.sub("", text)) if directory in text else text
        return redact(below_home.sub("~", text) if below_home is not None else text)

    return clean
