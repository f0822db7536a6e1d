"""What the line above the composer and the footer say (rule TU-11). PURE: a view and the time in, words out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from pi_durable_tui.records.messages import Text, Thinking, Usage
from pi_durable_tui.tui.draw.paint import duration_text
from pi_durable_tui.tui.safe_text import safe_line

if TYPE_CHECKING:
    from pi_durable_tui.harness.view import ConversationView
    from pi_durable_tui.tui.following import Sight

Light: TypeAlias = Literal["opening", "stored", "storing", "failed"]
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧"
SPINNER_STEP_MS = 250
MAX_DIRECTORY_CHARS = 32
FULL_PERCENT = 80
"""From here on the footer warns that the context gets full."""


class Place(Struct, frozen=True, kw_only=True):
    """Where the work is done, as the command line knows it; foreign text is allowed."""

    directory: str
    branch: str = ""


class FooterPart(Struct, frozen=True, kw_only=True):
    """A piece of the footer. Pieces of lower `rank` stay when the line gets narrow."""

    text: str
    rank: int
    tone: Literal["text", "muted", "good", "warn", "bad"] = "muted"


def spinner(now_ms: int) -> str:
    """The sign of work going on; changes every SPINNER_STEP_MS."""
    return _SPINNER[now_ms // SPINNER_STEP_MS % len(_SPINNER)]


def activity(sight: Sight, now_ms: int) -> str:
    """What is going on, and for how long; "" when nothing is."""
    view = sight.view
    run, compactions = view.live.run, view.live.compactions
    if run is None and view.live.commands:
        return f"Running your command · {age_text(view.live.commands[-1].started_at_ms, now_ms)}"
    if run is None:
        return f"Summarizing what came before · {age_text(compactions[-1].started_at_ms, now_ms)}" if compactions else ""
    if any(compaction.is_blocking for compaction in compactions):
        words = "Summarizing what came before, then going on"
    elif any(slot.status == "asking" for subagent in sight.subagents if subagent.view is not None for slot in subagent.view.live.tools):
        words = "Waiting for your answer"
    else:
        words = work_words(view)
    beside = " · a summary is being made" if any(not compaction.is_blocking for compaction in compactions) else ""
    return f"{words} · {age_text(run.started_at_ms, now_ms)}{beside}"


def age_text(since_ms: int, now_ms: int) -> str:
    """How long something has been going on, in whole seconds."""
    return duration_text(max(0, now_ms - since_ms) // 1000 * 1000).replace(".0s", "s")


def ends_with_us(view: ConversationView | None) -> str:
    """What a person is told who is about to leave: what goes on in the background ends with the program; "" when nothing does. PURE."""
    number = len(view.live.background) if view is not None else 0
    return f" and ends {number} background command{'s' if number > 1 else ''}" if number else ""


def work_words(view: ConversationView) -> str:
    """What the run of a conversation is doing."""
    generation, tools = view.live.generation, view.live.tools
    if any(slot.status == "asking" for slot in tools):
        return "Waiting for your answer"
    if tools:
        names = ", ".join(dict.fromkeys(safe_line(slot.name, max_cells=30) for slot in tools))
        return f"Running {names}"
    if generation is None:
        return "Working"
    if generation.retry is not None:
        return "Waiting to try again"
    parts = generation.message.content if generation.message is not None else ()
    match parts[-1] if parts else None:
        case Thinking():
            return "Thinking"
        case Text():
            return "Answering"
        case None:
            return f"Waiting for {safe_line(view.agent.model or 'the model', max_cells=50)}"
        case _:
            return "Preparing a call"


def footer_parts(
    sight: Sight | None, place: Place, *, light: Light, now_ms: int, window_tokens: int | None = None
) -> tuple[list[FooterPart], list[FooterPart]]:
    """The pieces at the left and at the right of the footer. `window_tokens`: of the model; None: unknown."""
    view = sight.view if sight is not None else None
    left = [FooterPart(text=_short(safe_line(place.directory)), rank=3, tone="text")]
    if place.branch:
        left.append(FooterPart(text=safe_line(place.branch, max_cells=30), rank=5))
    right: list[FooterPart] = []
    if view is not None:
        model = safe_line(view.agent.model, max_cells=48) if view.agent.model else "no model"
        right.append(FooterPart(text=model, rank=1, tone="text" if view.agent.model else "warn"))
        if view.agent.thinking != "off":
            right.append(FooterPart(text=f"thinking {view.agent.thinking}", rank=6))
        right.append(FooterPart(text=f"approve {view.agent.approval}", rank=2, tone="warn" if view.agent.approval == "all" else "muted"))
        right += _usage_parts(view, window_tokens)
    right.append(_light_part(sight, light, now_ms))
    return left, right


def fit(left: Sequence[FooterPart], right: Sequence[FooterPart], width: int) -> tuple[list[FooterPart], list[FooterPart]]:
    """The pieces that fit into `width` cells; what has the highest rank goes first, at least one stays."""
    kept = [*left, *right]
    while len(kept) > 1 and sum(len(part.text) + 3 for part in kept) - 3 > width:
        kept.remove(max(kept, key=lambda part: part.rank))
    return [part for part in left if part in kept], [part for part in right if part in kept]


def _usage_parts(view: ConversationView, window_tokens: int | None) -> list[FooterPart]:
    parts: list[FooterPart] = []
    used = view.usage.context_tokens
    if used and window_tokens:
        percent = used * 100 // window_tokens
        parts.append(FooterPart(text=f"{percent}% context", rank=4, tone="warn" if percent >= FULL_PERCENT else "muted"))
    elif used:
        parts.append(FooterPart(text=f"{count_text(used)} context", rank=4))
    total = sum(view.usage.models.values(), Usage())
    if total.cost_usd is not None:
        parts.append(FooterPart(text=money_text(total.cost_usd), rank=4))
    elif total.input_tokens:
        parts.append(FooterPart(text="price unknown", rank=7))
    return parts


def _light_part(sight: Sight | None, light: Light, now_ms: int) -> FooterPart:
    match light:
        case "opening":
            return FooterPart(text="○ opening", rank=0, tone="warn")
        case "failed":
            return FooterPart(text="● not stored any more", rank=0, tone="bad")
        case "stored":
            return FooterPart(text="● stored", rank=0, tone="good")
        case "storing":  # the age is no fault, however old: a quiet command has nothing to store
            since_ms = sight.committed_at_ms if sight is not None else now_ms
            return FooterPart(text=f"● stored {age_text(since_ms, now_ms)} ago" if now_ms - since_ms >= 1000 else "● stored now", rank=0, tone="good")


def _short(directory: str) -> str:
    """A long path by its end, which tells directories apart."""
    while len(directory) > MAX_DIRECTORY_CHARS and "/" in directory.removeprefix("…/"):
        directory = "…/" + directory.removeprefix("…/").partition("/")[2]
    return directory if len(directory) <= MAX_DIRECTORY_CHARS else directory[: MAX_DIRECTORY_CHARS - 1] + "…"


def count_text(tokens: int) -> str:
    """A number of tokens for people: 940, 18.4k, 1.2M."""
    if tokens >= 999_950:
        return f"{tokens / 1_000_000:.1f}M"
    return f"{tokens / 1000:.1f}k" if tokens >= 1000 else str(tokens)


def money_text(usd: float) -> str:
    """An amount with as many places as it needs."""
    return f"${usd:.2f}" if usd >= 0.1 or not usd else f"${usd:.4f}"
