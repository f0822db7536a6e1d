"""The composition root: the only place that puts concrete stores, models, tools and doors together.

It opens; it decides nothing about what then happens. Nothing here imports textual or litellm.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from pi_durable_tui.cli import local_servers, paths
from pi_durable_tui.cli.gateways import Gateways
from pi_durable_tui.cli.report import note
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.clock import SystemClock
from pi_durable_tui.errors import Refused, StoreCorrupt, StoreLocked
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import ModelGateway
from pi_durable_tui.harness.tasks.table import LIVE_STATUSES
from pi_durable_tui.models.catalog import loaded_keys
from pi_durable_tui.models.litellm_gateway import LiteLlmGateway
from pi_durable_tui.permissions.approver import approver
from pi_durable_tui.records.json import clean_text
from pi_durable_tui.records.keys import hiding
from pi_durable_tui.storage.conversion import open_store
from pi_durable_tui.storage.jsonl import JsonlStorage
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.port import Storage
from pi_durable_tui.storage.sqlite import SqliteStorage
from pi_durable_tui.tools.catalog import all_tools
from pi_durable_tui.tools.environment import LocalEnvironment
from pi_durable_tui.tools.history.recorder import FileRecorder
from pi_durable_tui.tools.sandbox.sandbox import Sandbox


class Environments:
    """The tools' environments of an open session, one for each conversation and directory.

    What they keep on disk (the directory that `cd` led to, long outputs) lies beside the session, in a folder of the conversation:
    a new chat or a subagent does not start where another one went.
    """

    def __init__(self, setup: Setup, number: int) -> None:
        self._setup = setup
        self._state = paths.session_files(setup.place, number)
        self._made: dict[tuple[int, str], LocalEnvironment] = {}
        self._sandbox = sandbox_of(setup)

    def __call__(self, conversation_id: int, agent: Agent) -> LocalEnvironment:
        key = (conversation_id, agent.cwd)
        if key not in self._made:
            place = self._setup.place.directory
            cwd = str(place) if agent.cwd in ("", clean_text(str(place))) else agent.cwd
            # Processes keep the machine's time, also where the rest is paced.
            self._made[key] = LocalEnvironment(
                cwd,
                self._state / str(conversation_id),
                SystemClock(),
                self._setup.environ,
                keys=hidden_keys(self._setup),
                sandbox=self._sandbox,
                limits=self._setup.settings.command_limits(),
            )
        return self._made[key]


@dataclass(frozen=True, slots=True)
class Passed:
    """A session that a new chat was not put into: another process holds it, or something in it is unfinished."""

    number: int
    is_held: bool


async def open_free(setup: Setup, passed: list[Passed] | None = None) -> tuple[int, Storage]:
    """The first session of the place that is free for a new chat, opened for writing, and its number (rule CL-3).

    Free means: no other process holds it, and nothing in it is unfinished. The harness works on all chats of a session, so a new
    chat must not be put beside a killed run: that one goes on when somebody asks for it with --continue, not before. A session that
    is damaged, or of a newer program, stands in nobody's way either; `pidurable sessions` tells of it.

    Args:
        passed: Gets the sessions that are held or unfinished.

    Raises:
        Refused: All of the possible files are held, or the folder is another directory's.
    """
    paths.prepare(setup.place)
    passed = [] if passed is None else passed
    for number in range(1, paths.MAX_SESSIONS + 1):
        try:
            storage = await open_session(setup, number)
        except StoreLocked:
            passed.append(Passed(number, is_held=True))
            continue
        except (Refused, StoreCorrupt):  # of a newer program, converted by half
            continue
        if not (await storage.tasks(statuses=LIVE_STATUSES, limit=1)).items:
            return number, storage
        passed.append(Passed(number, is_held=False))
        await storage.close()
    raise Refused(
        f"All {paths.MAX_SESSIONS} sessions of {str(setup.place.directory)!r} are open in other processes or unfinished.", hint="Finish one with --continue."
    )


async def open_session(setup: Setup, number: int, *, read_only: bool = False) -> Storage:
    """Session `number` of the place; a new one is of the kind that the settings say. What had to be cut from its files is told.

    Raises:
        Refused: It is there in both kinds.
        StoreLocked: Another process holds it (not for reading only).
        NotFound, SchemaTooNew, StoreCorrupt, EnvironmentFailure: As `open_store`.
    """
    kinds = paths.session_kinds(setup.place, number)
    if len(kinds) > 1:
        hint = f"End it with pidurable sessions convert {number} --to {kinds[-1]}."
        raise Refused(f"Session {number} of {str(setup.place.directory)!r} is there in two kinds: its conversion was cut off.", hint=hint)
    kind = kinds[0] if kinds else setup.settings.store
    if not read_only:
        paths.tighten(setup.place)
    storage = await open_store(kind, paths.session_path(setup.place, number, kind), clock=setup.clock, read_only=read_only)
    if isinstance(storage, JsonlStorage | SqliteStorage) and not read_only:
        for text in storage.notices:
            note(f"session {number}: {text}")
    return storage


def all_models(setup: Setup) -> Gateways:
    """The gateway to every model; loads nothing yet."""
    return Gateways(
        live=lambda: LiteLlmGateway(
            clock=setup.clock,
            entropy=setup.entropy,
            environ=setup.environ,
            base_urls=local_servers.base_urls(setup.environ) | setup.settings.base_urls,
            models=setup.settings.models,
        ),
        progress=setup.place.folder / "playback.txt",
        clock=setup.clock,
    )


async def open_harness(
    setup: Setup, number: int, storage: Storage, models: ModelGateway, *, extensions: Sequence[Extension] = (), workplace: Workplace | None = None
) -> Harness:
    """A harness over open session `number`, which it owns from now on; recovered, and running nothing yet."""
    workplace = workplace or workplace_of(setup, number, storage)
    keeping = () if workplace.recorder is None else (workplace.recorder.extension(),)
    return await Harness.open(
        storage,
        models=models,
        tools=all_tools(),
        environment=workplace.environments,
        clock=setup.clock,
        entropy=setup.entropy,
        extensions=[*keeping, *extensions],
        settings=setup.settings.harness(),
        approver=approver(own_folders(setup), home=home_folder(setup)),
        hide=hiding(hidden_keys(setup)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """Where the agents of a session work, and what keeps the files that they change (rule TU-18); None: nothing keeps them."""

    environments: Environments
    recorder: FileRecorder | None


def workplace_of(setup: Setup, number: int, storage: Storage) -> Workplace:
    """The workplace of session `number`. Writes nothing. A session that is kept in memory only keeps no files either."""
    environments = Environments(setup, number)
    if isinstance(storage, MemoryStorage):
        return Workplace(environments=environments, recorder=None)
    agent = Agent(cwd=stored_directory(setup))
    recorder = FileRecorder(
        root=str(setup.place.directory),
        folder=paths.session_files(setup.place, number) / "contents",
        clock=setup.clock,
        reading=frozenset(tool.name for tool in all_tools() if tool.access == "read"),
        resolve=lambda conversation_id, path: environments(conversation_id, agent).resolve(path),
        keys=hidden_keys(setup),
    )
    return Workplace(environments=environments, recorder=recorder)


def sandbox_of(setup: Setup) -> Sandbox | None:
    """What the person wants around commands (rule SA-15); None: nothing."""
    mode, home = setup.settings.sandbox, setup.environ.get("HOME", "/")
    if mode == "off":
        return None
    folders = (f"{home}{folder[1:]}" if folder.startswith("~") else folder for folder in setup.settings.sandbox_writable)
    return Sandbox(mode, tuple(os.path.realpath(folder) for folder in folders))


def hidden_keys(setup: Setup) -> tuple[str, ...]:
    """What is never written down: the keys of providers, and the variables that the user's MCP servers are given (rule SA-17)."""
    named = sorted({name for server in setup.settings.mcp_servers.values() for name in server.references})
    return (*loaded_keys(setup.environ), *(value for name in named if (value := setup.environ.get(name, "").strip())))


def own_folders(setup: Setup) -> tuple[str, ...]:
    """Where this program keeps settings and sessions, links resolved: the agent is asked about before it changes anything there (rule SA-12)."""
    roots = paths.folders(setup.environ)
    return tuple(os.path.realpath(folder) for folder in (roots.data, roots.config))


def home_folder(setup: Setup) -> str | None:
    """The person's home, links resolved; None where there is none."""
    home = setup.environ.get("HOME", "")
    return os.path.realpath(home) if os.path.isabs(home) else None  # noqa: PTH117 - a name of odd bytes is a text here


def stored_directory(setup: Setup) -> str:
    """The working directory as records can hold it: a name that is not UTF-8 has marks in place of its odd bytes."""
    return clean_text(str(setup.place.directory))
