"""The parts of a commit that start a subagent: its task, its conversation, its input and its run, all or nothing (rule TO-7)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pi_durable_tui.errors import BadRequest, InternalError
from pi_durable_tui.harness.extensions.registry import Registry
from pi_durable_tui.harness.kinds import SUBAGENT
from pi_durable_tui.harness.live import AGENT, PROVIDER, Agent, Budget, Provider
from pi_durable_tui.harness.ports import AgentProfile, Delegation
from pi_durable_tui.harness.runs import Desk, as_object
from pi_durable_tui.harness.services import Services
from pi_durable_tui.harness.subagent.checkpoint import Report, SubagentInput
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.messages import Text
from pi_durable_tui.records.task import Task, Waiting
from pi_durable_tui.session.transaction import Transaction


def child_agent(parent: Agent, wanted: Delegation, registry: Registry) -> Agent:
    """Who a subagent is: the asking agent with other instructions, and at most its tools and its rights (rule SA-14). PURE.

    Raises:
        BadRequest: There is no profile of the wanted name; the message names those that there are.
    """
    profile = _profile(wanted.profile, registry.profiles(parent))
    offered = [name for name, tool in registry.tools(parent).items() if tool.delegate is None]
    allowed = [names for names in (wanted.tools, profile.tools) if names is not None]
    return msgspec.structs.replace(
        parent,
        model=wanted.model or profile.model or parent.model,
        thinking=profile.thinking or parent.thinking,
        instructions="\n\n".join(text for text in (wanted.instructions, profile.instructions) if text),
        tools=tuple(name for name in offered if all(name in names for names in allowed)),
        title=wanted.name,
        budget=Budget(max_turns=profile.max_turns, max_tokens=profile.max_tokens, max_cost_usd=profile.max_cost_usd) if wanted.profile else None,
    )


def _profile(name: str, known: Mapping[str, AgentProfile]) -> AgentProfile:
    if not name:
        return AgentProfile(name="", description="")
    if name not in known:
        there = f"There are: {', '.join(known)}." if known else "There are none; leave the field out."
        raise BadRequest(f"There is no kind of agent called {name!r}. {there}")
    return known[name]


async def begin_subagent(transaction: Transaction, services: Services, caller: Task, child: Agent, wanted: Delegation) -> Task:
    """Start the subagent `child` for `caller`, which waits for it or, in the background, does not. Returns its task."""
    task_id, conversation_id = transaction.new_id(), transaction.new_id()
    transaction.insert_conversation(Conversation(id=conversation_id, created_at_ms=transaction.now_ms, owner=task_id))
    (await transaction.document(AGENT, conversation_id)).value = as_object(child)
    (await transaction.document(PROVIDER, conversation_id)).value = as_object(Provider(session_id=services.entropy.uuid7()))
    desk = await Desk.take(transaction, conversation_id)
    submission = desk.hand_in("followUp", (Text(text=wanted.prompt),), services.settings, request_id=f"subagent:{caller.id}")
    desk.put_back()
    if desk.live.run is None:
        raise InternalError("a new conversation did not begin a run")
    task = Task(
        id=task_id,
        kind=SUBAGENT,
        conversation_id=caller.conversation_id,
        input=as_object(SubagentInput(name=wanted.name, conversation=conversation_id, submission=submission.id, background=wanted.background)),
        state=Waiting(checkpoint=as_object(Report()), on=(desk.live.run.task_id,)),
        created_at_ms=transaction.now_ms,
        owner=None if wanted.background else caller.id,
        background=wanted.background,
    )
    transaction.put_task(task)
    return task
