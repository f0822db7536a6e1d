"""What a subagent may do: never more than whoever it works for may do now (rule SA-14).

It got its rights when it was started, and a person may take some away from the chat above while it works.
"""

from __future__ import annotations

import msgspec

from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.services import Services
from pi_durable_tui.harness.transcript import agent_of
from pi_durable_tui.records.modes import ApprovalMode

STRICTEST_FIRST: tuple[ApprovalMode, ...] = ("plan", "ask", "edits", "all")


async def with_rights(services: Services, conversation_id: int, agent: Agent) -> Agent:
    """The agent of a conversation, its approval mode no wider than that of any conversation above."""
    storage = services.session.storage
    modes = [agent.approval]
    conversation = await storage.conversation(conversation_id)
    while conversation is not None and conversation.owner is not None:
        owner = await storage.task(conversation.owner)
        if owner is None:
            break
        modes.append((await agent_of(services, owner.conversation_id)).approval)
        conversation = await storage.conversation(owner.conversation_id)
    return msgspec.structs.replace(agent, approval=min(modes, key=STRICTEST_FIRST.index))
