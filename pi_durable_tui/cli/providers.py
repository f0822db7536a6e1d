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
    return ConfigError(found.message, hint=f"Or choose another model: --model, or /model in the app. {_NEXT_STEP}") if isinstance(found, ModelFailed) else None


def no_model(offered: str = "", *, settings_file: str = "settings.json") -> ConfigError:
    """No model was named and no key found: every way to one, each in a line of its own, short enough for a small screen (rule CL-5).

    Args:
        offered: What can be had on this machine; "": no server answers.
        settings_file: Where a model can be named for good.
    """
    keys = ", ".join(PROVIDERS[provider].keys[0] for provider in DEFAULTS)
    ways = (
        offered,
        f"With a key: set one of {keys}, and start again.",
        "" if offered else "With a model on this machine: start Ollama, llama.cpp or LM Studio, and start again.",
        "With another server: set OPENAI_BASE_URL, and start again with --model openai/NAME.",
        f'For good: name it as "model" in {settings_file}.',
        _NEXT_STEP,
    )
    return ConfigError("No model is chosen, and no key was found. Nothing was sent.", hint="\n".join(way for way in ways if way))
