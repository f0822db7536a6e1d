"""What is exported: a conversation with those of its subagents, and of theirs. Only reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pi_durable_tui.cli.log import all_entries
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.kinds import SUBAGENT
from pi_durable_tui.harness.subagent.checkpoint import SubagentInput
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.entry import Entry

_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A conversation.

    Attributes:
        name: What a subagent is called; "" at the top.
        entries: Its transcript.
        subagents: The task of each of its subagents -> the subagent's conversation, in the order in which they began.
    """

    name: str = ""
    entries: tuple[Entry, ...]
    subagents: Mapping[int, Talk] = field(default_factory=dict[int, "Talk"])

    def all_entries(self) -> Iterator[Entry]:
        """Its entries, then those of each subagent."""
        yield from self.entries
        for talk in self.subagents.values():
            yield from talk.all_entries()


async def read_talk(harness: Harness, conversation_id: int, name: str = "") -> Talk:
    """The conversation of that id, and what is below it.

    Raises:
        NotFound: There is none of that id.
    """
    conversation = await harness.conversation(conversation_id)
    entries = tuple([stored.entry async for stored in all_entries(conversation)])
    subagents: dict[int, Talk] = {}
    cursor: int | None = None
    while True:
        page = await harness.session.storage.tasks(kind=SUBAGENT, conversation_id=conversation_id, cursor=cursor, limit=_PAGE)
        for task in page.items:
            begun = from_json(task.input, SubagentInput)
            subagents[task.id] = await read_talk(harness, begun.conversation, begun.name)
        if page.next is None:
            return Talk(name=name, entries=entries, subagents=subagents)
        cursor = page.next
