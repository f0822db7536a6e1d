"""What a provider said, out of what the model library wraps around it. Pure.

A server that keeps to the form of an error object is quoted by the library; of any other body, such as `{"error": "text"}`, `{"detail": …}`, plain text
or a page of HTML, it says no more than "Error code: 500". Such bodies are read here, so that the person and the tables of words get to know them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import unescape
from typing import cast

MAX_BODY_CHARS = 500

_PREFIX = re.compile(r"^(?:(?:litellm\.)?[A-Z]\w*(?:Error|Timeout|Exception)(?:: |:? - )|litellm\.\w+: |Error code: \d{3} - )")
_NOISE = re.compile(
    r"\s*(?:Original exception: .*|Handle with `litellm\.\w+`\.?|\s?ssl:<[^>]*>|\bssl:default\b|, no content string given\. Received Chunk=.*)", re.DOTALL
)
_BARE = re.compile(r"(?:[\w ]+: \w+ - )?Error code: (\d{3})")
_TITLE = re.compile(r"<title[^>]*>([^<]*)</title", re.IGNORECASE)
_TAGS = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)


def said(texts: Iterable[str], bodies: Iterable[object]) -> tuple[str, ...]:
    """What was said, the most telling first, each once.

    Args:
        texts: Of the exceptions, outermost first.
        bodies: Of the answers they carry, as objects or as text. They count only where the first text is no more than the number of the status.
    """
    clean = [text for text in map(cleaned, texts) if text]
    bare = _BARE.fullmatch(clean[0]) if clean else None
    more = [f"{text} (HTTP {bare[1]})" for text in map(_words_of, bodies) if text] if bare is not None else []
    return tuple(dict.fromkeys([*more, *clean]))


def cleaned(text: str) -> str:
    """What the provider said, without what the library puts before, behind and around it."""
    text = stripped(text)
    return message_in(packed(text)) or text


def stripped(text: str) -> str:
    """The text without the library's prefixes and advice."""
    text = _NOISE.sub("", text.strip())
    while match := _PREFIX.match(text):
        text = text[match.end() :]
    return text.strip()


def packed(text: str) -> object:
    """The error object that was given as text; None where it is none."""
    if not text.startswith(("{", "b'{", 'b"{')):
        return None
    try:
        return json.loads(text.removeprefix("b").strip("'\""))
    except ValueError:
        return None


def message_in(value: object) -> str:
    """The message of an error object, however deep it is packed; "" where there is none."""
    if isinstance(value, list):
        return message_in(next(iter(cast("list[object]", value)), None))
    if not isinstance(value, dict):
        return ""
    mapping = cast("dict[str, object]", value)
    inner = mapping.get("error", mapping.get("message"))
    return inner if isinstance(inner, str) else message_in(inner)


def _words_of(body: object) -> str:
    """A body in a line: the message of an object, the object itself, or the text; of a page its title or what it shows."""
    if body is None or isinstance(body, str):
        text = body or ""
        if "<" in text[:200]:
            title = _TITLE.search(text)
            text = unescape(title[1] if title is not None and title[1].strip() else _TAGS.sub(" ", text))
    else:
        mapping = cast("dict[str, object]", body) if isinstance(body, dict) else {}
        detail = mapping.get("detail")
        text = message_in(cast("object", body)) or (detail if isinstance(detail, str) else json.dumps(body, ensure_ascii=False))
    text = " ".join(text[: 20 * MAX_BODY_CHARS].split())
    return text if len(text) <= MAX_BODY_CHARS else text[: MAX_BODY_CHARS - 1] + "…"
