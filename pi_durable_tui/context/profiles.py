"""What kinds of subagents there are: how their files are read, and listed for the model (rules AG-3, SA-14). PURE.

A profile is a Markdown file: a head that says when it is the right one and what it may use, and below it what the agent is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar, get_args

from pi_durable_tui.context.commands import DESCRIPTION_CHARS, NAME
from pi_durable_tui.context.front_matter import Head, split
from pi_durable_tui.context.project import Item
from pi_durable_tui.context.text import one_line
from pi_durable_tui.harness.ports import AgentProfile
from pi_durable_tui.records.modes import ThinkingLevel

KEYS = ("description", "model", "thinking", "tools", "max-turns", "max-tokens", "max-cost")
"""What the head may say. The name is that of the file."""

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profiles by name, the first of a name counts, and one line for each file that is none."""

    found: tuple[AgentProfile, ...] = ()
    warnings: tuple[str, ...] = ()


def profiles(items: Iterable[Item]) -> Profiles:
    """The profiles among files. The project's come after the user's and do not replace them."""
    found: dict[str, AgentProfile] = {}
    warnings: list[str] = []
    for item in items:
        if item.kind != "agent":
            continue
        try:
            profile = _read(item)
        except ValueError as error:
            warnings.append(f"{item.shown} is not used: {error}.")
            continue
        if profile.name in found:
            warnings.append(f"{item.shown} is not used: there is another {profile.name}.")
        else:
            found[profile.name] = profile
    return Profiles(tuple(found[name] for name in sorted(found)), tuple(warnings))


def _read(item: Item) -> AgentProfile:
    document = split(item.text)
    head = document.head
    if not NAME.fullmatch(item.name):
        raise ValueError("the name of an agent is made of letters, digits and dashes")
    if not head.get("description"):
        raise ValueError("an agent needs a description, which says when it is the right one")
    if unknown := sorted(head.keys() - {*KEYS, "name"}):
        raise ValueError(f"its head says {', '.join(unknown)}, and may say {', '.join(KEYS)}")
    thinking = next((level for level in get_args(ThinkingLevel) if level == head.get("thinking")), None)
    if head.get("thinking") and thinking is None:
        raise ValueError(f"thinking is {head['thinking']!r}, and may be {', '.join(get_args(ThinkingLevel))}")
    tools = [name.strip() for name in head.get("tools", "").strip("[]").split(",") if name.strip()]
    return AgentProfile(
        name=item.name,
        description=one_line(head["description"], limit_chars=DESCRIPTION_CHARS),
        instructions=document.body.strip(),
        model=head.get("model") or None,
        thinking=thinking,
        tools=tuple(tools) if tools else None,
        max_turns=_number(head, "max-turns", int, least=1),
        max_tokens=_number(head, "max-tokens", int, least=1),
        max_cost_usd=_number(head, "max-cost", float, least=0),
    )


def _number(head: Head, key: str, kind: type[_Number], *, least: int) -> _Number | None:
    text = head.get(key, "").removeprefix("$")
    if not text:
        return None
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not least <= value < float("inf"):
        raise ValueError(f"{key} is {text!r}, and must be a number from {least}")
    return value


def profiles_text(found: Iterable[AgentProfile]) -> str:
    """The list of profiles as the model reads it; "" without any."""
    lines = [f"- {profile.name}: {profile.description}" for profile in found]
    return "\n".join(["Kinds of agents for the field agent of subagent:", *lines]) if lines else ""
