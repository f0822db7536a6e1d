"""Opens the chat that was asked for. Loads all of the harness: the app imports it after its first paint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pi_durable_tui.cli import paths, settings
from pi_durable_tui.cli.chats import choose
from pi_durable_tui.cli.compose import Passed, all_models, open_free, open_harness, open_session, stored_directory, workplace_of
from pi_durable_tui.cli.gateways import Gateways
from pi_durable_tui.cli.local_servers import answering, offer
from pi_durable_tui.cli.project.servers import chosen, servers_of
from pi_durable_tui.cli.project.workspace import open_workspace, trusting_of
from pi_durable_tui.cli.providers import default_model, no_model, unreachable
from pi_durable_tui.cli.report import note
from pi_durable_tui.cli.screen.neighbours import remarks
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.cli.wish import Wish
from pi_durable_tui.context.extensions import Loaded
from pi_durable_tui.context.project_settings import ProjectSettings
from pi_durable_tui.context.workspace import Workspace
from pi_durable_tui.errors import BadRequest, ConfigError
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import Tool
from pi_durable_tui.harness.settings import Limits
from pi_durable_tui.mcp.servers import Servers
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.tools.catalog import all_tools
from pi_durable_tui.tools.history.history import FileHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A chat that is open for work. Its harness must be closed.

    Attributes:
        session: The number of the session that it is stored in; 0: it is not stored.
        models: What it asks; may be warmed up.
        workspace: What the directory brings to its chats.
        loaded: The extensions that were installed from it.
        servers: The MCP servers; those that are not known yet are waited for in print mode only.
        remarks: What a person should know of them.
        history: The files that its agents changed; None: they are not kept.
        problem: Why its model cannot be asked as things are; None: it may work.
    """

    harness: Harness
    conversation: Conversation
    session: int
    models: Gateways
    workspace: Workspace
    loaded: Loaded
    servers: Servers
    remarks: tuple[str, ...]
    history: FileHistory | None
    problem: ConfigError | None

    async def close(self) -> None:
        """End the work cleanly, then what it used."""
        await self.harness.close()
        await self.servers.close()


async def open_wished(setup: Setup, wish: Wish) -> Opened:
    """The chat that is asked for: the one `--continue` takes, with what the options change, or a new one.

    Raises:
        NotFound: There is no chat to continue.
        StoreLocked: The chat to continue is open in another process. Nothing was changed.
        BadRequest: There is no tool of a name that was said. Nothing was started.
    """
    passed: list[Passed] = []
    if wish.resume:
        found = await choose(setup, wish.chat_id, note=note)
        number, storage = found.session, await open_session(setup, found.session)
    else:
        found = None
        number, storage = (1, MemoryStorage()) if wish.in_memory else await open_free(setup, passed)
    models = all_models(setup)
    workspace = open_workspace(setup, trusting=trusting_of(in_print_mode=wish.in_print_mode, trust=wish.trust))
    loaded = workspace.load_extensions()
    workplace = workplace_of(setup, number, storage)
    found_servers = chosen(setup.settings.mcp_servers, workspace, setup.place.directory)
    servers = servers_of(setup, number, found_servers.servers, in_memory=isinstance(storage, MemoryStorage))
    extensions = [workspace.extension(), *servers.extensions(), *loaded.extensions]
    harness = await open_harness(setup, number, storage, models, extensions=extensions, workplace=workplace)
    set_limits(harness.settings.limits, wish)
    servers.begin(harness.install)
    try:
        late = await servers.know() if wish.in_print_mode or wish.tools else ()
        check_tools(wish.tools, [*all_tools(), *(tool for extension in (*servers.extensions(), *loaded.extensions) for tool in extension.tools)])
        if found is None:
            conversation = await harness.create_conversation(new_agent(setup, wish, workspace.settings))
        else:
            conversation = await harness.conversation(found.chat.conversation_id)
        agent = await _changed(conversation, setup, wish, workspace.settings)
    except BaseException:
        await harness.close()
        await servers.close()
        raise
    return Opened(
        harness=harness,
        conversation=conversation,
        session=0 if wish.in_memory else number,
        models=models,
        workspace=workspace,
        loaded=loaded,
        servers=servers,
        remarks=(*(() if wish.in_print_mode else remarks(setup, passed)), *found_servers.warnings, *servers.warnings, *late),
        history=FileHistory(harness.session, workplace.recorder) if workplace.recorder is not None else None,
        problem=await problem_of(setup, agent.model),
    )


def set_limits(limits: Limits, wish: Wish) -> None:
    """What the command line says about the use of a run wins over the settings."""
    limits.max_turns = wish.max_turns if wish.max_turns is not None else limits.max_turns
    limits.max_cost_usd = wish.max_cost_usd if wish.max_cost_usd is not None else limits.max_cost_usd
    limits.max_time_ms = wish.max_time_s * 1_000 if wish.max_time_s is not None else limits.max_time_ms


def check_tools(wanted: Sequence[str] | None, known: Sequence[Tool]) -> None:
    """Return if there is a tool of every name. PURE.

    Raises:
        BadRequest: There is none of that name. Nothing was started.
    """
    names = [tool.name for tool in known]
    unknown = [name for name in wanted or () if name not in names]
    if unknown:
        raise BadRequest(f"There is no tool {unknown[0]!r}. Nothing was started.", hint=f"There are: {', '.join(names)}.")


def new_agent(setup: Setup, wish: Wish, project: ProjectSettings) -> Agent:
    """Who answers in a new chat: options and PIDURABLE_MODEL win over a trusted project, that over the user's settings. PURE."""
    chosen = wish.model or setup.environ.get("PIDURABLE_MODEL") or project.model or setup.settings.model
    return Agent(
        model=chosen or default_model(setup.environ),
        thinking=wish.thinking or project.thinking or setup.settings.thinking or "off",
        approval=wish.approval or setup.settings.approve or "ask",
        cwd=stored_directory(setup),
        tools=wish.tools,
        title=wish.name,
    )


async def problem_of(setup: Setup, model: str | None) -> ConfigError | None:
    """Why `model` cannot be asked as things are (CASE-H2); None: it may work. Without any, servers on this machine are looked for (rule CL-5)."""
    if model is None:
        settings_file = paths.folders(setup.environ).config / settings.NAME
        problem: ConfigError | None = no_model(offer(await answering(setup.clock)), settings_file=str(settings_file))
    else:
        problem = unreachable(model, setup.environ, setup.settings.base_urls)
    if problem is not None and setup.keyring.problem:
        return ConfigError(f"{problem.message} {setup.keyring.problem}", hint=problem.hint)
    return problem


async def _changed(conversation: Conversation, setup: Setup, wish: Wish, project: ProjectSettings) -> Agent:
    """The chat's agent with what the options say; a chat that never had a model gets the default one."""
    agent = await conversation.agent()
    model = wish.model or (None if agent.model else new_agent(setup, wish, project).model)
    wished = {"model": model, "approval": wish.approval, "thinking": wish.thinking, "tools": wish.tools, "title": wish.name or None}
    changes = {name: value for name, value in wished.items() if value is not None and value != getattr(agent, name)}
    return await conversation.set_agent(**changes) if changes else agent
