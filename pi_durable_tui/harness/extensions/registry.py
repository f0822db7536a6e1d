"""What is installed: named bundles of tools, prompt sections, hooks, wraps, documents, task kinds and commands (durable.md, section 11).

The registry is in memory; conversations store names only. Installing a name again replaces it in place, while running; work
already started keeps the code it took (rule EX-1).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from pi_durable_tui.errors import BadRequest
from pi_durable_tui.harness.extensions.hooks import Hooks
from pi_durable_tui.harness.extensions.task_definition import TaskDefinition
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import AgentProfile, Tool
from pi_durable_tui.records.document import Definition
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.records.json import JsonObject

T = TypeVar("T")

Sections: TypeAlias = Callable[[Agent], Mapping[str, str]]
"""Named parts of the system prompt; an empty text means: no such part."""


class EntriesOf(Protocol):
    """Reads the entries of a conversation; `Conversation.entries` is one."""

    async def __call__(self, *, before: int | None = None, limit: int = 200) -> tuple[StoredEntry, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """What a slash command is given.

    Attributes:
        conversation_id: The chat that it was typed in.
        directory: Where that chat works.
        say: Tells the person something. It is not stored, and no model reads it.
        submit: Hands a text in as if the person had typed it; returns once it is stored.
        entries: (before=None, limit=200) -> the newest entries of the chat, oldest first, or those before one.
        document: Gives the committed value of a document of the chat, the command's own copy.
        start_task: (kind, input, first checkpoint) -> id of a task in the background of the chat; returns once it is stored. It goes on
            after a kill, unlike the command itself.
    """

    conversation_id: int
    directory: str
    say: Callable[[str], None]
    submit: Callable[[str], Awaitable[None]]
    entries: EntriesOf
    document: Callable[[Definition], Awaitable[JsonObject]]
    start_task: Callable[[str, JsonObject, JsonObject], Awaitable[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A slash command of an extension.

    Attributes:
        name: Without the slash: letters, digits and dashes.
        help: What it does, one line.
        argument: How its argument is shown in the list; "": it takes none.
        run: (what was typed after the name, context). What it raises is told; a kill ends it, and it is not run again.
    """

    name: str
    help: str
    run: Callable[[str, CommandContext], Awaitable[None]]
    argument: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """A named bundle.

    Attributes:
        tools: Later same-name tools replace earlier ones.
        wraps: (tool) -> tool by tool name; decorates what won, in order of installation.
        documents: Definitions whose fork policy counts when a conversation is forked.
        commands: For people; offered where there is somebody to type them.
        profiles: The kinds of subagents there are now; asked whenever one is begun. Later same-name ones replace earlier ones.
    """

    name: str
    tools: tuple[Tool, ...] = ()
    sections: Sections | None = None
    hooks: Hooks = Hooks()
    wraps: Mapping[str, Callable[[Tool], Tool]] = field(default_factory=dict[str, Callable[[Tool], Tool]])
    tasks: tuple[TaskDefinition, ...] = ()
    documents: tuple[Definition, ...] = ()
    commands: tuple[Command, ...] = ()
    profiles: Callable[[], tuple[AgentProfile, ...]] | None = None


@dataclass(slots=True)
class Registry:
    """The installed extensions in order of their first installation."""

    extensions: dict[str, Extension] = field(default_factory=dict[str, Extension])

    def install(self, extension: Extension) -> None:
        """Add an extension, or replace the one of that name in its place."""
        self.extensions[extension.name] = extension

    def remove(self, name: str) -> None:
        """Take an extension away; without effect when it is not there."""
        self.extensions.pop(name, None)

    def selected(self, agent: Agent) -> tuple[Extension, ...]:
        """The extensions of a conversation: all, or those its agent names."""
        return tuple(extension for extension in self.extensions.values() if agent.extensions is None or extension.name in agent.extensions)

    def tools(self, agent: Agent) -> dict[str, Tool]:
        """The tools of a conversation by name, in order of installation, wrapped.

        Raises:
            BadRequest: A wrap failed, and no tool is offered without it: it may be a guard. Names the extension; so do the others below.
        """
        selected = self.selected(agent)
        offered = {tool.name: tool for extension in selected for tool in extension.tools}
        chosen = {name: tool for name, tool in offered.items() if agent.tools is None or name in agent.tools}
        for extension in selected:
            for name, wrap in extension.wraps.items():
                if name in chosen:
                    chosen[name] = _given(extension, f"its {name}", partial(_wrapped, wrap, chosen[name]))
        return chosen

    def sections(self, agent: Agent) -> dict[str, str]:
        """The parts of the system prompt that are not empty."""
        parts: dict[str, str] = {}
        for extension in self.selected(agent):
            parts |= _given(extension, "its sections", partial(_texts, extension.sections, agent)) if extension.sections is not None else {}
        return {name: text for name, text in parts.items() if text.strip()}

    def profiles(self, agent: Agent) -> dict[str, AgentProfile]:
        """The kinds of subagents that a conversation can ask for, by name."""
        asked = [(extension, extension.profiles) for extension in self.selected(agent) if extension.profiles is not None]
        return {profile.name: profile for extension, profiles in asked for profile in _given(extension, "its profiles", profiles)}

    def hooks(self, agent: Agent) -> tuple[Hooks, ...]:
        """The hooks of a conversation, in order."""
        return tuple(extension.hooks for extension in self.selected(agent))

    def task(self, kind: str) -> TaskDefinition | None:
        """The newest installed definition of a task kind."""
        found = [definition for extension in self.extensions.values() for definition in extension.tasks if definition.kind == kind]
        return found[-1] if found else None

    def documents(self) -> dict[str, Definition]:
        """The installed document definitions by kind."""
        return {definition.kind: definition for extension in self.extensions.values() for definition in extension.documents}


def _given(extension: Extension, what: str, give: Callable[[], T]) -> T:
    """What foreign code gives, or an error that says whose code it was."""
    try:
        return give()
    except Exception as error:
        raise BadRequest(f"The extension {extension.name} could not give {what}: {type(error).__name__}: {error}") from error


def _wrapped(wrap: Callable[[Tool], object], tool: Tool) -> Tool:
    wrapped = wrap(tool)
    if not isinstance(wrapped, Tool):
        raise TypeError(f"it gave {type(wrapped).__name__} where Tool is wanted")
    return wrapped


def _texts(sections: Callable[[Agent], Mapping[str, object]], agent: Agent) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, text in sections(agent).items():
        if not isinstance(text, str):
            raise TypeError(f"{name} is {type(text).__name__} and no text")
        texts[name] = text
    return texts
