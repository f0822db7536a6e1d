"""What a screen asks about a session as a whole: how full a context is, what a summary would take, what there is (rules TU-16, TU-17).

Writes nothing, and asks no network.
"""

from __future__ import annotations

from dataclasses import dataclass

from pi_durable_tui.harness import chats as chatting
from pi_durable_tui.harness.chats import Branch
from pi_durable_tui.harness.compaction.estimate import CHARS_PER_TOKEN, context_tokens, entry_tokens
from pi_durable_tui.harness.compaction.select import UNKNOWN_WINDOW_TOKENS, kept_tokens, select_cut, shortened_results
from pi_durable_tui.harness.services import Services
from pi_durable_tui.harness.tool.schema import parameters
from pi_durable_tui.harness.transcript import agent_of, context_entries
from pi_durable_tui.records.codec import encode
from pi_durable_tui.records.entry import SYSTEM

PROMPTS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUse:
    """What fills the model's context, estimated but for `total_tokens`, which holds what the provider counted where it did.

    Attributes:
        window_tokens: None: unknown.
    """

    system_tokens: int
    tool_tokens: int
    summary_tokens: int
    message_tokens: int
    total_tokens: int
    window_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """What a summary that a person asks for would do now. `shortened`: long results whose middle is left out."""

    summarized_entries: int
    summarized_tokens: int
    kept_entries: int
    kept_tokens: int
    shortened: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """A session in numbers. `store` is its path or "memory"."""

    store: str
    commits: int
    chats: int
    forks: int
    subagents: int


class Overview:
    """See the module; made by `Harness.overview`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def window_tokens(self, model: str) -> int | None:
        """The context window of a model; None: unknown."""
        return (await self._services.models.info(model)).context_window_tokens

    async def context(self, conversation_id: int) -> ContextUse:
        """How the context of the next request would be filled."""
        services = self._services
        agent = await agent_of(services, conversation_id)
        entries = await context_entries(services.session.storage, conversation_id)
        tools = services.registry.tools(agent).values()
        tool_chars = sum(len(tool.name) + len(tool.description) + len(encode(parameters(tool))) for tool in tools)
        system = sum(entry_tokens(entry) for entry in entries if entry.kind == SYSTEM)
        summary = sum(entry_tokens(entry) for entry in entries if entry.head is not None)
        messages = sum(entry_tokens(entry) for entry in entries) - system - summary
        return ContextUse(
            system_tokens=system,
            tool_tokens=-(-tool_chars // CHARS_PER_TOKEN),
            summary_tokens=summary,
            message_tokens=messages,
            total_tokens=context_tokens(entries),
            window_tokens=await self.window_tokens(agent.model) if agent.model else None,
        )

    async def compaction(self, conversation_id: int) -> CompactionPlan | None:
        """What `Conversation.compact` would summarize and keep; None: there is nothing to compact."""
        services = self._services
        agent = await agent_of(services, conversation_id)
        entries = await context_entries(services.session.storage, conversation_id)
        window = (await self.window_tokens(agent.model) if agent.model else None) or UNKNOWN_WINDOW_TOKENS
        keep = kept_tokens(entries, window, services.settings.compaction, "manual")
        cut = select_cut(entries, keep_tokens=keep)
        if cut is None or not agent.model:
            return None
        return CompactionPlan(
            summarized_entries=len(cut.summarized),
            summarized_tokens=sum(entry_tokens(entry) for entry in cut.summarized),
            kept_entries=len(cut.kept),
            kept_tokens=sum(entry_tokens(entry) for entry in cut.kept),
            shortened=len(shortened_results(cut.kept, keep_tokens=keep)),
        )

    async def prompts(self) -> tuple[str, ...]:
        """What people asked in the chats of the session, oldest first: the newest chats, at most `PROMPTS` in all."""
        return await chatting.prompts(self._services.session, limit=PROMPTS)

    async def branches(self) -> tuple[Branch, ...]:
        """All conversations of the session, by id."""
        return await chatting.branches(self._services.session)

    async def facts(self) -> SessionFacts:
        """The session in numbers."""
        storage = self._services.session.storage
        chats, forks, subagents = await chatting.counts(self._services.session)
        commits = (await storage.metadata()).next_seq - 1
        return SessionFacts(store=storage.name, commits=commits, chats=chats, forks=forks, subagents=subagents)
