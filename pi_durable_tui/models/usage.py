"""Tokens of one request as we count them: each once, whatever the provider's form (CASE-F5). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pi_durable_tui.records.messages import Usage


def usage_of(counts: Mapping[str, Any], *, cost_usd: float | None) -> Usage:
    """The usage in `counts`, which is in the OpenAI form, with the cached tokens inside the prompt's or beside them.

    The OpenAI form counts cached tokens in the prompt; Anthropic's own form counts them beside it. More cached tokens than prompt tokens
    can only be the second.
    """
    details = _mapping(counts.get("prompt_tokens_details"))
    read = _count(details, "cached_tokens") or _count(counts, "cache_read_input_tokens")
    written = _count(counts, "cache_creation_input_tokens") or _count(details, "cache_creation_tokens")
    prompt = _count(counts, "prompt_tokens")
    if read + written > prompt:
        prompt += read + written
    return Usage(input_tokens=prompt, output_tokens=_count(counts, "completion_tokens"), cache_read_tokens=read, cache_write_tokens=written, cost_usd=cost_usd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """US dollars per million tokens, of what a person has set; cached tokens cost as much as others unless their price is set too."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    def of(self, usage: Usage) -> float:
        """What a request of `usage` costs in US dollars."""
        read, written = usage.cache_read_tokens, usage.cache_write_tokens
        read_price = self.input if self.cache_read is None else self.cache_read
        write_price = self.input if self.cache_write is None else self.cache_write
        fresh = max(0, usage.input_tokens - read - written)
        return (fresh * self.input + read * read_price + written * write_price + usage.output_tokens * self.output) / 1_000_000


def _count(counts: Mapping[str, Any], name: str) -> int:
    value = counts.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
