"""Keys are taken out of every text that a provider or library says (rule SA-17). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = "[redacted]"
SHORTEST_SECRET_CHARS = 6
"""Shorter values would blank out ordinary words; no provider hands out such keys."""

_SHAPES = re.compile(
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_\-]{8,}"  # OpenAI, Anthropic, OpenRouter, DeepSeek and many others
    r"|\bAIza[A-Za-z0-9_\-]{20,}"  # Google
    r"|\b(?:gsk|xai|hf|csk|nvapi|fw|pplx|tgp|r8)[_\-][A-Za-z0-9_\-]{12,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|(?<=Bearer )[A-Za-z0-9._~+/\-]{8,}=*"
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The same text with each of `secrets` and everything that has the shape of a known key replaced.

    Args:
        secrets: The loaded keys; the longest is looked for first, so that no tail of one stays.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET_CHARS:
            text = text.replace(secret, HIDDEN)
    return _SHAPES.sub(HIDDEN, text)
