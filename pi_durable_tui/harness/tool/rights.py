"""What a subagent may do: never more than whoever it works for may do now (rule SA-14).

It got its rights when it was started, a person may take some away from the chat above while it works, and a result may give it more tools.
"""

from __future__ import annotations

import msgspec

from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.services import Services
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.harness.transcript import agent_of
from pi_durable_tui.records.modes import ApprovalMode

STRICTEST_FIRST: tuple[ApprovalMode, ...] = ("plan", "ask", "edits", "all")


async def with_rights(services: Services, conversation_id: int, agent: Agent) -> Agent:
    """The agent of a conversation: of a subagent its approval mode and its tools are no wider than those of any conversation above.

    A subagent has no tools that start others.
    """
    storage = services.session.storage
    modes, selections = [agent.approval], list[tuple[str, ...]]()
    conversation = await storage.conversation(conversation_id)
    while conversation is not None and conversation.owner is not None:
        owner = await storage.task(conversation.owner)
        if owner is None:
            break
        above = await agent_of(services, owner.conversation_id)
        modes.append(above.approval)
        selections.append(tuple(name for name, tool in services.registry.tools(above).items() if tool.delegate is None))
        conversation = await storage.conversation(owner.conversation_id)
    if not selections:
        return agent
    own = services.registry.tools(agent)
    tools = tuple(name for name in own if all(name in selection for selection in selections))
    return msgspec.structs.replace(agent, approval=min(modes, key=STRICTEST_FIRST.index), tools=tools)


async def acting(runtime: TaskRuntime) -> Agent:
    """The agent of a task's conversation with the rights that it has now."""
    services, conversation_id = runtime.services, runtime.task.conversation_id
    return await with_rights(services, conversation_id, await agent_of(services, conversation_id))
