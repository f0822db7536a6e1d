"""Decides which model answers when nobody names one, and whether a named one can be reached at all (rule CL-5, CASE-H2). PURE.

One table: providers by the prefix of their model ids, with the environment variables their keys are looked for in. Keys are only
asked for their presence here, never read into anything that is kept or shown (rule SA-17).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pi_durable_tui.errors import ConfigError

PLAYBACK = "playback/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One provider.

    Attributes:
        prefix: What its model ids start with, before the slash.
        variables: Environment variables, any of which holds its key.
        bases: Environment variables that name another server, which may need no key.
        model: The model that is taken when nobody names one; None: it is no default.
    """

    prefix: str
    name: str
    variables: tuple[str, ...]
    bases: tuple[str, ...] = ()
    model: str | None = None


PROVIDERS = (
    Provider(
        prefix="anthropic",
        name="Anthropic",
        variables=("ANTHROPIC_API_KEY",),
        bases=("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
        model="anthropic/claude-sonnet-5-5",
    ),
    Provider(prefix="openai", name="OpenAI", variables=("OPENAI_API_KEY",), bases=("OPENAI_API_BASE", "OPENAI_BASE_URL"), model="openai/gpt-5.6"),
    Provider(prefix="gemini", name="Google", variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"), model="gemini/gemini-3.8-flash"),
    Provider(prefix="mistral", name="Mistral", variables=("MISTRAL_API_KEY",), bases=("MISTRAL_API_BASE",), model="mistral/devstral-medium-latest"),
    Provider(prefix="deepseek", name="DeepSeek", variables=("DEEPSEEK_API_KEY",), bases=("DEEPSEEK_API_BASE",), model="deepseek/deepseek-v4-pro"),
    Provider(prefix="groq", name="Groq", variables=("GROQ_API_KEY",), model="groq/openai/gpt-oss-120b"),
    Provider(prefix="xai", name="xAI", variables=("XAI_API_KEY",), model="xai/grok-4.7"),
    Provider(prefix="openrouter", name="OpenRouter", variables=("OPENROUTER_API_KEY",), bases=("OPENROUTER_API_BASE",)),
)
"""In the order in which a default is looked for."""


def default_model(environ: Mapping[str, str]) -> str | None:
    """The model of the first provider whose key is set; None when there is none. An empty key counts as not set."""
    return next((provider.model for provider in PROVIDERS if provider.model is not None and _has_key(provider, environ)), None)


def missing_key(model: str, environ: Mapping[str, str]) -> ConfigError | None:
    """Why `model` cannot be asked: the key of its provider is not set. None: it may work, or the provider is not in the table."""
    provider = next((provider for provider in PROVIDERS if model.startswith(provider.prefix + "/")), None)
    if provider is None or _has_key(provider, environ) or any(environ.get(name, "").strip() for name in provider.bases):
        return None
    return ConfigError(
        f"The model {model} needs a key of {provider.name}, and {' or '.join(provider.variables)} is not set. Nothing was sent.",
        hint=f"Set {provider.variables[0]}, or choose another model with --model. Without a key: pidurable demo",
    )


def no_model() -> ConfigError:
    """No model was named and no key found: what was looked for and what to do (rule CL-5)."""
    names = ", ".join(f"{provider.variables[0]} ({provider.name})" for provider in PROVIDERS if provider.model is not None)
    return ConfigError(
        f"No model is configured: none was named, and none of these is set: {names}. Nothing was sent.",
        hint="Set one of them, or name a model with --model, PIDURABLE_MODEL or the settings. Without a key: pidurable demo",
    )


def _has_key(provider: Provider, environ: Mapping[str, str]) -> bool:
    return any(environ.get(name, "").strip() for name in provider.variables)
