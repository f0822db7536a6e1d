"""What `pidurable [PROMPT]` does: sorts out what was asked for, then hands over to print mode or to the app."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pi_durable_tui.cli.chats import choose
from pi_durable_tui.cli.compose import Setup, all_models, open_free, open_harness, open_session, set_up, stored_directory, workplace_of
from pi_durable_tui.cli.local_servers import answering, offer
from pi_durable_tui.cli.project.workspace import open_workspace, trusting_of
from pi_durable_tui.cli.providers import default_model, no_model, unreachable
from pi_durable_tui.cli.report import note
from pi_durable_tui.context.extensions import Loaded
from pi_durable_tui.context.project_settings import ProjectSettings
from pi_durable_tui.context.workspace import Workspace
from pi_durable_tui.errors import BadRequest, ConfigError
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.live import Agent, ApprovalMode
from pi_durable_tui.harness.ports import ModelGateway, ThinkingLevel, Tool
from pi_durable_tui.harness.settings import Limits
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.tools.catalog import all_tools
from pi_durable_tui.tools.history.history import FileHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The command line of a chat. None: not said.

    Attributes:
        chat_id: The one to resume; None: the one that --continue takes.
        pick: Let the person choose which one to resume.
        name: What to call the chat; "": it keeps the name it has.
        tools: Names of those that are offered.
        in_memory: Nothing is stored: the chat is gone with the process.
        max_turns, max_cost_usd: What a run may use before it is ended.
    """

    prompt: str = ""
    resume: bool = False
    chat_id: str | None = None
    pick: bool = False
    name: str = ""
    tools: tuple[str, ...] | None = None
    in_memory: bool = False
    max_turns: int | None = None
    max_cost_usd: float | None = None
    in_print_mode: bool = False
    as_json: bool = False
    model: str | None = None
    approval: ApprovalMode | None = None
    thinking: ThinkingLevel | None = None
    cwd: str | None = None
    trust: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A chat that is open for work. Its harness must be closed.

    Attributes:
        models: What it asks; may be warmed up.
        workspace: What the directory brings to its chats.
        loaded: The extensions that were installed from it.
        history: The files that its agents changed; None: they are not kept.
        problem: Why its model cannot be asked as things are; None: it may work.
    """

    harness: Harness
    conversation: Conversation
    models: ModelGateway
    workspace: Workspace
    loaded: Loaded
    history: FileHistory | None
    problem: ConfigError | None


def open_chat(wish: Wish) -> int:
    """Run print mode or the app and return the exit code.

    Raises:
        BadRequest: There is nothing to do, or no terminal for the app. Nothing was started.
        ConfigError: Settings are wrong, or print mode has no model. Nothing was started.
    """
    setup = set_up(wish.cwd, os.environ)
    if not wish.in_memory:
        return _open_chat(setup, wish)
    with tempfile.TemporaryDirectory(prefix="pidurable-") as folder:  # what tools spill; gone with the chat
        return _open_chat(replace(setup, place=replace(setup.place, folder=Path(folder))), wish)


def _open_chat(setup: Setup, wish: Wish) -> int:
    if wish.in_print_mode:
        from pi_durable_tui.cli.print import print_answer  # noqa: PLC0415 - the app does not need it

        return print_answer(setup, wish)
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadRequest("The app needs a terminal for its input and output. Nothing was started.", hint='For use in scripts and pipes: pidurable -p "PROMPT".')
    if wish.pick:
        from pi_durable_tui.cli.sessions.picking import picked  # noqa: PLC0415 - rarely needed

        wish = replace(wish, chat_id=picked(setup))
    from pi_durable_tui.cli.terminal import run_app  # noqa: PLC0415 - imports textual

    return run_app(setup, wish)


async def open_wished(setup: Setup, wish: Wish) -> Opened:
    """The chat that is asked for: the one `--continue` takes, with what the options change, or a new one.

    Raises:
        NotFound: There is no chat to continue.
        StoreLocked: The chat to continue is open in another process. Nothing was changed.
        BadRequest: There is no tool of a name that was said. Nothing was started.
    """
    if wish.resume:
        found = await choose(setup, wish.chat_id, note=note)
        number, storage = found.session, await open_session(setup, found.session)
    else:
        found = None
        number, storage = (1, MemoryStorage()) if wish.in_memory else await open_free(setup)
    models = all_models(setup)
    workspace = open_workspace(setup, trusting=trusting_of(in_print_mode=wish.in_print_mode, trust=wish.trust))
    loaded = workspace.load_extensions()
    workplace = workplace_of(setup, number, storage)
    harness = await open_harness(setup, number, storage, models, extensions=[workspace.extension(), *loaded.extensions], workplace=workplace)
    harness.settings.limits = Limits(max_turns=wish.max_turns, max_cost_usd=wish.max_cost_usd)
    try:
        check_tools(wish.tools, [*all_tools(), *(tool for extension in loaded.extensions for tool in extension.tools)])
        if found is None:
            conversation = await harness.create_conversation(new_agent(setup, wish, workspace.settings))
        else:
            conversation = await harness.conversation(found.chat.conversation_id)
        agent = await _changed(conversation, setup, wish, workspace.settings)
    except BaseException:
        await harness.close()
        raise
    return Opened(
        harness=harness,
        conversation=conversation,
        models=models,
        workspace=workspace,
        loaded=loaded,
        history=FileHistory(harness.session, workplace.recorder) if workplace.recorder is not None else None,
        problem=await problem_of(setup, agent.model),
    )


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
        return no_model(offer(await answering(setup.clock)))
    return unreachable(model, setup.environ, setup.settings.base_urls)


async def _changed(conversation: Conversation, setup: Setup, wish: Wish, project: ProjectSettings) -> Agent:
    """The chat's agent with what the options say; a chat that never had a model gets the default one."""
    agent = await conversation.agent()
    model = wish.model or (None if agent.model else new_agent(setup, wish, project).model)
    wished = {"model": model, "approval": wish.approval, "thinking": wish.thinking, "tools": wish.tools, "title": wish.name or None}
    changes = {name: value for name, value in wished.items() if value is not None and value != getattr(agent, name)}
    return await conversation.set_agent(**changes) if changes else agent
