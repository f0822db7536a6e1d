"""Decides which model answers when nobody names one, and whether a named one can be reached at all (rule CL-5, CASE-H2). PURE.

Where the keys of a provider stand is known to `models/catalog.py`. Keys are asked for their presence only (rule SA-17).
"""

from __future__ import annotations

from collections.abc import Mapping

from pi_durable_tui.errors import ConfigError
from pi_durable_tui.harness.ports import ModelFailed
from pi_durable_tui.models.catalog import PROVIDERS, access, configured

PLAYBACK = "playback/"

DEFAULTS: Mapping[str, str] = {
    "anthropic": "anthropic/claude-sonnet-5-5",
    "openai": "openai/gpt-5.6",
    "gemini": "gemini/gemini-3.8-flash",
    "mistral": "mistral/devstral-medium-latest",
    "deepseek": "deepseek/deepseek-v4-pro",
    "groq": "groq/openai/gpt-oss-120b",
    "xai": "xai/grok-4.7",
}
"""Provider -> the model that is taken when nobody names one, in the order in which keys are looked for."""

_NEXT_STEP = "Without a key: pidurable demo"


def default_model(environ: Mapping[str, str]) -> str | None:
    """The model of the first provider whose key is set; None when there is none. A blank key counts as not set."""
    present = configured(environ)
    return next((model for provider, model in DEFAULTS.items() if provider in present), None)


def unreachable(model: str, environ: Mapping[str, str], base_urls: Mapping[str, str]) -> ConfigError | None:
    """Why `model` cannot be asked: it names no provider, or the provider's key is missing. None: it may work."""
    if model.startswith(PLAYBACK):
        return None
    found = access(model, environ, base_urls)
    return ConfigError(found.message, hint=f"Or choose another model with --model. {_NEXT_STEP}") if isinstance(found, ModelFailed) else None


def no_model(offered: str = "") -> ConfigError:
    """No model was named and no key found: what was looked for and what to do (rule CL-5). `offered`: what can be had on this machine."""
    names = ", ".join(f"{PROVIDERS[provider].keys[0]}" for provider in DEFAULTS)
    return ConfigError(
        f"No model is configured: none was named, and none of {names} is set. Nothing was sent.",
        hint=" ".join(part for part in (offered, "Set one of them, or name a model with --model, PIDURABLE_MODEL or the settings.", _NEXT_STEP) if part),
    )
