"""What a working directory brings to its chats: prompt sections, skills, templates, agents, extensions, settings; and what still waits for trust.

The files are looked at when it is made, and again whenever one of them has another stamp. A file of the project counts by its content (see
`trust`); while a changed one waits for a decision, the text that was agreed to stays in use. Used on the harness's event loop.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pi_durable_tui.clock import Clock
from pi_durable_tui.context import files, role
from pi_durable_tui.context.commands import Catalogue, catalogue, skills_text
from pi_durable_tui.context.extensions import Loaded, load
from pi_durable_tui.context.profiles import Profiles, profiles, profiles_text
from pi_durable_tui.context.project import Found, Item, find, root_of
from pi_durable_tui.context.project_settings import ProjectSettings, read_settings
from pi_durable_tui.context.trust import Decision, Judged, Trusting, TrustStore, judge
from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import AgentProfile
from pi_durable_tui.records.json import clean_text

NAME = "pidurable.context"


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The folders that count, links resolved where they exist.

    Attributes:
        directory: The working directory.
        config: The user's config folder.
        decisions: The folder of stored decisions.
        home: The home directory; None: there is none.
    """

    directory: Path
    config: Path
    decisions: Path
    home: Path | None


class Workspace:
    """See the module.

    Args:
        trusting: Whose word counts for the project's files.
        tools: The names of the tools there are.

    Attributes:
        root: The project's root.
        judged: The project's files, and how they stand.
        items: The files that count, the user's first.
        warnings: One line for each thing that is not used as it stands there.
        commands: The skills and templates among them.
        profiles: The kinds of subagents among them.
        settings: What the project sets.
    """

    def __init__(self, where: Where, *, trusting: Trusting, tools: frozenset[str], clock: Clock) -> None:
        self._where = where
        self._trusting: Trusting = trusting
        self._tools = tools
        self._clock = clock
        self._store = TrustStore(where.decisions)
        self.root = root_of(where.directory, where.home)
        self.judged: tuple[Judged, ...] = ()
        self.items: tuple[Item, ...] = ()
        self.warnings: tuple[str, ...] = ()
        self.commands = Catalogue((), ())
        self.profiles = Profiles()
        self.settings = ProjectSettings()
        self._stamps: dict[Path, files.Stamp | None] = {}
        self._tell: Callable[[str], object] = lambda _text: None
        self.look()

    # -------------------------------------------------------------------------------------------------------------- files

    def look(self) -> None:
        """Read everything anew. Never raises: what cannot be used is told in `warnings`."""
        found = find(config=self._where.config, directory=self._where.directory, root=self.root)
        self._stamps = {path: files.stamp(path) for path in found.looked_at}
        decisions, problem = self._decisions()
        self._take(found, decisions, problem)

    def refresh(self) -> None:
        """Read everything anew if a file or folder that counts has changed; costs some dozen calls of stat."""
        if any(files.stamp(path) != before for path, before in self._stamps.items()):
            self.look()

    def _decisions(self) -> tuple[dict[str, Decision], tuple[str, ...]]:
        if self._trusting != "decided":
            return {}, ()  # not even looked at
        try:
            return self._store.load(self.root), ()
        except EnvironmentFailure as error:
            return {}, (f"{error.message} {error.hint}",)

    def _take(self, found: Found, decisions: Mapping[str, Decision], problem: tuple[str, ...]) -> None:
        known = {(each.item.shown, each.item.digest) for each in self.judged}
        self.judged = judge((item for item in found.items if item.is_projects), decisions, self._trusting)
        waiting = [each.item.shown for each in self.undecided if (each.item.shown, each.item.digest) not in known]
        in_use = {item.shown: item for item in self.items if item.is_projects}
        counting: list[Item] = [item for item in found.items if not item.is_projects]
        for each in self.judged:
            if each.standing == "trusted":
                counting.append(each.item)
            elif each.standing == "changed" and each.item.shown in in_use:
                counting.append(in_use[each.item.shown])
        self.items = tuple(counting)
        self.commands = catalogue(self.items)
        self.profiles = profiles(self.items)
        self.settings, left_out = read_settings(self.items)
        self.warnings = (*problem, *found.warnings, *self.commands.warnings, *self.profiles.warnings, *left_out)
        if waiting:
            self._tell(f"New or changed, and not used before you say so: {', '.join(waiting)}. /trust shows it.")

    def listen(self, tell: Callable[[str], object]) -> None:
        """From now on hear, once for each change, that a file of the project waits for a decision."""
        self._tell = tell

    # -------------------------------------------------------------------------------------------------------------- trust

    @property
    def undecided(self) -> tuple[Judged, ...]:
        """The project's files about whose content nobody has decided."""
        return tuple(each for each in self.judged if each.is_open)

    @property
    def unused(self) -> tuple[Judged, ...]:
        """The project's files that are not used."""
        return tuple(each for each in self.judged if each.standing != "trusted")

    def decide(self, seen: tuple[Judged, ...], *, is_trusted: bool) -> None:
        """Store a person's word about what they were shown; it counts from now on. What has changed meanwhile stays undecided.

        Raises:
            EnvironmentFailure: It could not be stored and does not count.
        """
        self._store.decide(self.root, (each.item for each in seen), is_trusted=is_trusted, now_ms=self._clock.now_ms())
        self._trusting = "decided"
        self.look()

    # --------------------------------------------------------------------------------------------------------- extensions

    def load_extensions(self) -> Loaded:
        """Run the extensions that count, as they are now."""
        self.refresh()
        return load(self.items)

    # ------------------------------------------------------------------------------------------------------------- prompt

    def extension(self) -> Extension:
        """What the harness installs: the sections of the system prompt, and the kinds of subagents as the files are when one is begun."""

        def current() -> tuple[AgentProfile, ...]:
            self.refresh()
            return self.profiles.found

        return Extension(name=NAME, sections=self.sections, profiles=current)

    def sections(self, agent: Agent) -> Mapping[str, str]:
        """The parts of the system prompt for an agent as the files are now (rule AG-1)."""
        self.refresh()
        offered = self._tools if agent.tools is None else self._tools.intersection(agent.tools)
        directory = agent.cwd or clean_text(str(self._where.directory))
        parts = {
            "role": role.ROLE,
            "tools": role.tools_text(offered),
            "place": role.place_text(directory=directory, root=clean_text(str(self.root)), platform=sys.platform),
        }
        for item in self.items:
            if item.kind == "instructions":
                source = "the project" if item.is_projects else "the user"
                parts[item.shown] = f'<instructions from="{item.shown}" of="{source}">\n{item.text.strip()}\n</instructions>'
        parts["skills"] = skills_text(self.commands.commands) if "read" in offered else ""
        parts["agents"] = profiles_text(self.profiles.found) if "subagent" in offered else ""
        parts["task"] = agent.instructions
        return {name: clean_text(text) for name, text in parts.items()}
