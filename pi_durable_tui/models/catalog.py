"""What is known of providers and models without asking anybody: where keys and base URLs stand, windows and thinking levels.

Pure: tables and functions of a mapping of environment variables and of LiteLLM's local model table, which the gateway hands in. Never
imports LiteLLM, so that a missing key is told before its slow import (rule CL-5, CASE-H2), and never reads the environment by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pi_durable_tui.harness.ports import ModelFailed, ModelInfo
from pi_durable_tui.records.modes import ThinkingLevel

ModelTable: TypeAlias = Mapping[str, Mapping[str, Any]]
"""LiteLLM's local table: model name -> what is known of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Where the settings of a provider stand in the environment.

    Attributes:
        keys: Variables that may hold the key; the first one that is set counts. Empty: the provider needs none.
        tokens: Variables that LiteLLM reads itself in place of a key.
        bases: Variables that may hold another base URL.
    """

    keys: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()


PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider(keys=("ANTHROPIC_API_KEY",), tokens=("ANTHROPIC_AUTH_TOKEN",), bases=("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE")),
    "cerebras": Provider(keys=("CEREBRAS_API_KEY",), bases=("CEREBRAS_API_BASE",)),
    "cohere": Provider(keys=("COHERE_API_KEY", "CO_API_KEY")),
    "dashscope": Provider(keys=("DASHSCOPE_API_KEY",), bases=("DASHSCOPE_API_BASE",)),
    "deepinfra": Provider(keys=("DEEPINFRA_API_KEY",), bases=("DEEPINFRA_API_BASE",)),
    "deepseek": Provider(keys=("DEEPSEEK_API_KEY",), bases=("DEEPSEEK_API_BASE",)),
    "fireworks_ai": Provider(keys=("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"), bases=("FIREWORKS_API_BASE",)),
    "gemini": Provider(keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"), bases=("GEMINI_API_BASE",)),
    "groq": Provider(keys=("GROQ_API_KEY",), bases=("GROQ_API_BASE",)),
    "hosted_vllm": Provider(bases=("HOSTED_VLLM_API_BASE",)),
    "huggingface": Provider(keys=("HF_TOKEN", "HUGGINGFACE_API_KEY")),
    "llamafile": Provider(bases=("LLAMAFILE_API_BASE",)),
    "lm_studio": Provider(bases=("LM_STUDIO_API_BASE",)),
    "mistral": Provider(keys=("MISTRAL_API_KEY",), bases=("MISTRAL_API_BASE",)),
    "moonshot": Provider(keys=("MOONSHOT_API_KEY",), bases=("MOONSHOT_API_BASE",)),
    "nvidia_nim": Provider(keys=("NVIDIA_NIM_API_KEY",), bases=("NVIDIA_NIM_API_BASE",)),
    "ollama": Provider(bases=("OLLAMA_API_BASE",)),
    "ollama_chat": Provider(bases=("OLLAMA_API_BASE",)),
    "openai": Provider(keys=("OPENAI_API_KEY",), bases=("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    "openrouter": Provider(keys=("OPENROUTER_API_KEY",), bases=("OPENROUTER_API_BASE",)),
    "perplexity": Provider(keys=("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"), bases=("PERPLEXITY_API_BASE",)),
    "together_ai": Provider(keys=("TOGETHERAI_API_KEY", "TOGETHER_API_KEY"), bases=("TOGETHER_AI_API_BASE",)),
    "xai": Provider(keys=("XAI_API_KEY",), bases=("XAI_API_BASE",)),
    "zai": Provider(keys=("ZAI_API_KEY",), bases=("ZAI_API_BASE",)),
}
"""Providers whose key is one variable. Others (clouds with chains of credentials) are left to LiteLLM, which tells what it misses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How a provider is reached; None: as LiteLLM does by itself."""

    api_key: str | None = None
    base_url: str | None = None


def provider_of(model: str) -> str:
    """The part before the first slash; "" when there is none."""
    provider, slash, _ = model.partition("/")
    return provider if slash else ""


def access(model: str, environ: Mapping[str, str], base_urls: Mapping[str, str]) -> Access | ModelFailed:
    """How to reach the provider of `model`, or why it cannot be asked; decided without a request (CASE-H2).

    Args:
        model: "provider/name".
        environ: The user's environment as of the start of the program (rule SA-6).
        base_urls: Provider -> base URL from the user's settings; they win over the environment.

    Returns:
        Access. A server at another base URL may need no key: it is asked with a placeholder, because client libraries insist on one.
        ModelFailed `no_model` for a name without a provider, `auth` for a missing key; neither is retryable.
    """
    name = provider_of(model)
    if not name or model == f"{name}/":
        shown = f"{model!r} names no provider" if model else "No model is set"
        return ModelFailed(reason="no_model", message=f"{shown}. Write provider/name, such as {_examples()}.", retryable=False)
    provider = PROVIDERS.get(name)
    if provider is None:
        return Access(base_url=base_urls.get(name))
    base_url = base_urls.get(name) or first_set(provider.bases, environ)
    key = first_set(provider.keys, environ)
    if key is not None or not provider.keys or first_set(provider.tokens, environ) is not None:
        return Access(api_key=key, base_url=base_url)
    if base_url is not None:
        return Access(api_key="none", base_url=base_url)
    return ModelFailed(reason="auth", message=f"No key for {name}: set {' or '.join(provider.keys)} in the environment. Nothing was sent.", retryable=False)


def first_set(variables: tuple[str, ...], environ: Mapping[str, str]) -> str | None:
    """The value of the first variable that is set and not blank, without surrounding white space."""
    return next((value for name in variables if (value := environ.get(name, "").strip())), None)


def loaded_keys(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Every key of a known provider that stands in the environment, for redaction (rule SA-17)."""
    variables = sorted({name for provider in PROVIDERS.values() for name in (*provider.keys, *provider.tokens)})
    return tuple(value for name in variables if (value := environ.get(name, "").strip()))


def configured(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The providers that have a key in the environment, in order of their names (rule CL-5)."""
    return tuple(name for name, provider in PROVIDERS.items() if provider.keys and first_set((*provider.keys, *provider.tokens), environ) is not None)


def table_entry(table: ModelTable, model: str) -> Mapping[str, Any] | None:
    """What the table says of `model`; None: it is not in it. A name without its provider counts only where the provider agrees."""
    entry = table.get(model)
    if entry is not None:
        return entry
    provider, _, name = model.partition("/")
    entry = table.get(name)
    return entry if entry is not None and str(entry.get("litellm_provider", "")).startswith(provider) else None


def model_info(entry: Mapping[str, Any] | None) -> ModelInfo:
    """The table's entry as the harness needs it; all unknown for None (rule AG-5)."""
    if entry is None:
        return ModelInfo()
    return ModelInfo(
        context_window_tokens=_whole(entry.get("max_input_tokens")),
        max_output_tokens=_whole(entry.get("max_output_tokens")),
        thinking_levels=_levels(entry),
        takes_images=bool(entry.get("supports_vision")),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A model of the table. Prices are US dollars for a million tokens; None: unknown."""

    name: str
    window_tokens: int | None
    input_usd: float | None
    output_usd: float | None


def offers(table: ModelTable, providers: Collection[str]) -> tuple[Offer, ...]:
    """The models of these providers that answer in a chat, as "provider/name", in order of their names."""
    found: dict[str, Offer] = {}
    for key, entry in table.items():
        provider = str(entry.get("litellm_provider", ""))
        if provider not in providers or entry.get("mode") not in ("chat", "responses") or "ft:" in key:  # somebody's own fine-tuning
            continue
        name = key if key.startswith(f"{provider}/") else f"{provider}/{key}"
        is_priced = has_price(entry)
        found[name] = Offer(
            name=name,
            window_tokens=_whole(entry.get("max_input_tokens")),
            input_usd=_for_a_million(entry.get("input_cost_per_token")) if is_priced else None,
            output_usd=_for_a_million(entry.get("output_cost_per_token")) if is_priced else None,
        )
    return tuple(found[name] for name in sorted(found))


def _for_a_million(cost: object) -> float | None:
    return round(float(cost) * 1_000_000, 6) if isinstance(cost, int | float) and not isinstance(cost, bool) else None


def has_price(entry: Mapping[str, Any] | None) -> bool:
    """True when the table knows what the model costs; a price of 0 in it means unknown."""
    return entry is not None and bool(entry.get("input_cost_per_token") or entry.get("output_cost_per_token"))


def _levels(entry: Mapping[str, Any]) -> tuple[ThinkingLevel, ...]:
    if not entry.get("supports_reasoning"):
        return ("off",)
    named = entry.get("reasoning_effort_levels")
    levels: tuple[ThinkingLevel, ...] = ("low", "medium", "high")
    return ("off", *(level for level in levels if not isinstance(named, list) or level in named))


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def _examples() -> str:
    return "anthropic/claude-sonnet-4-5, openai/gpt-5 or ollama_chat/qwen3"
