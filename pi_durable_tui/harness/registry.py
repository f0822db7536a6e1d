"""What is installed: named bundles of tools, prompt sections, hooks and task kinds (durable.md, section 11).

The registry is in memory; conversations store names only. Installing a name again replaces it in place, while running; work
already started keeps the code it took (rule EX-1).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import Tool
from pi_durable_tui.harness.tasks.definition import TaskDefinition
from pi_durable_tui.records.json import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedCall:
    """A tool call as a hook sees it."""

    conversation_id: int
    task_id: int
    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class Blocked:
    """A hook's no; the message goes to the model and the screen."""

    message: str


BeforeTool: TypeAlias = Callable[[HookedCall], Awaitable[Blocked | JsonObject | None]]
"""Returns None (go on), other arguments (validated again), or Blocked. An exception blocks the call."""

Sections: TypeAlias = Callable[[Agent], Mapping[str, str]]
"""Named parts of the system prompt; an empty text means: no such part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """A named bundle. Later same-name tools replace earlier ones."""

    name: str
    tools: tuple[Tool, ...] = ()
    sections: Sections | None = None
    before_tool: BeforeTool | None = None
    tasks: tuple[TaskDefinition, ...] = ()


@dataclass(slots=True)
class Registry:
    """The installed extensions in order of their first installation."""

    extensions: dict[str, Extension] = field(default_factory=dict[str, Extension])

    def install(self, extension: Extension) -> None:
        """Add an extension, or replace the one of that name in its place."""
        self.extensions[extension.name] = extension

    def selected(self, agent: Agent) -> tuple[Extension, ...]:
        """The extensions of a conversation: all, or those its agent names."""
        return tuple(extension for extension in self.extensions.values() if agent.extensions is None or extension.name in agent.extensions)

    def tools(self, agent: Agent) -> dict[str, Tool]:
        """The tools of a conversation by name, in order of installation."""
        offered = {tool.name: tool for extension in self.selected(agent) for tool in extension.tools}
        return {name: tool for name, tool in offered.items() if agent.tools is None or name in agent.tools}

    def sections(self, agent: Agent) -> dict[str, str]:
        """The parts of the system prompt that are not empty."""
        parts: dict[str, str] = {}
        for extension in self.selected(agent):
            parts |= dict(extension.sections(agent)) if extension.sections is not None else {}
        return {name: text for name, text in parts.items() if text.strip()}

    def before_tool(self, agent: Agent) -> tuple[BeforeTool, ...]:
        """The hooks before a tool call, in order."""
        return tuple(extension.before_tool for extension in self.selected(agent) if extension.before_tool is not None)

    def task(self, kind: str) -> TaskDefinition | None:
        """The newest installed definition of a task kind."""
        found = [definition for extension in self.extensions.values() for definition in extension.tasks if definition.kind == kind]
        return found[-1] if found else None
