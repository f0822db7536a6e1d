"""What a person says of a model in the settings, in place of what the local table says or where it says nothing (rule AG-5). Pure.

In `settings.json`: `"models": {"openai/my-model": {"context_window_tokens": 131072, "input_usd_per_million": 0.5, "output_usd_per_million": 1.5}}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from pi_durable_tui.models.usage import Prices
from pi_durable_tui.records.modes import ThinkingLevel

_Tokens = Annotated[int, msgspec.Meta(ge=1)]
_Price = Annotated[float, msgspec.Meta(ge=0)]


class ModelOverride(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One model's; None: as the table says. Decoded from the settings by msgspec, which names what is wrong.

    Attributes:
        max_output_tokens: Is asked for with each request that does not ask for another.
        thinking_levels: What can be asked for; ["off"]: the model is never asked to think.
        input_usd_per_million: With `output_usd_per_million`, in place of the table's prices; one alone says nothing.
        cache_read_usd_per_million: Of tokens the provider had kept; None: as other tokens. The same for those that it keeps anew.
    """

    context_window_tokens: _Tokens | None = None
    max_output_tokens: _Tokens | None = None
    thinking_levels: tuple[ThinkingLevel, ...] | None = None
    takes_images: bool | None = None
    input_usd_per_million: _Price | None = None
    output_usd_per_million: _Price | None = None
    cache_read_usd_per_million: _Price | None = None
    cache_write_usd_per_million: _Price | None = None

    @property
    def prices(self) -> Prices | None:
        """The prices, when both of the ones that count always are set."""
        if self.input_usd_per_million is None or self.output_usd_per_million is None:
            return None
        return Prices(
            input=self.input_usd_per_million,
            output=self.output_usd_per_million,
            cache_read=self.cache_read_usd_per_million,
            cache_write=self.cache_write_usd_per_million,
        )


NOTHING = ModelOverride()


def overridden(entry: Mapping[str, Any] | None, override: ModelOverride) -> Mapping[str, Any] | None:
    """The table's entry with what `override` says laid over it, in the table's words; None: neither says anything."""
    said: dict[str, Any] = {}
    if override.context_window_tokens is not None:
        said["max_input_tokens"] = override.context_window_tokens
    if override.max_output_tokens is not None:
        said["max_output_tokens"] = override.max_output_tokens
    if override.takes_images is not None:
        said["supports_vision"] = override.takes_images
    if override.thinking_levels is not None:
        said["supports_reasoning"] = any(level != "off" for level in override.thinking_levels)
        said["reasoning_effort_levels"] = list(override.thinking_levels)
    return {**(entry or {}), **said} if entry is not None or said else None
