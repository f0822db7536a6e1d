"""Stores of any size, written as one dump: chats of equal length, each a row of questions and answers with their tasks and submissions."""

from __future__ import annotations

from pi_durable_tui.harness.live import AGENT, Agent
from pi_durable_tui.harness.runs import as_object
from pi_durable_tui.records.codec import encode
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.document import StoredDocument
from pi_durable_tui.records.entry import ASSISTANT, USER, Entry
from pi_durable_tui.records.messages import AssistantMessage, Text, UserMessage
from pi_durable_tui.records.submission import Done, Submission, content_digest
from pi_durable_tui.records.task import Completed, Task, Terminal
from pi_durable_tui.storage.dump import Dump, StoredRevision, StoredText
from pi_durable_tui.storage.port import SCHEMA_VERSION, Metadata
from pi_durable_tui.storage.revision import BaseRevision
from tests.support.storage_records import AT_MS

_AGENT = as_object(Agent(model="test/model", approval="all"))


def big(entries: int, chats: int) -> Dump:
    """So many entries in so many chats; all work has ended."""
    records: list[StoredText] = []
    revisions: list[StoredRevision] = []
    for number in range(chats):
        chat, document = 1 + 2 * number, 2 + 2 * number
        stored = StoredDocument(id=document, address=AGENT.address(chat), version=AGENT.version, history=AGENT.history)
        records.append(StoredText("conversation", chat, 0, encode(Conversation(id=chat, created_at_ms=AT_MS))))
        records.append(StoredText("document", document, 0, encode(stored)))
        revisions.append(StoredRevision(document, 1, encode(BaseRevision(version=AGENT.version, value=_AGENT))))
    next_id, seq = 1 + 2 * chats, 2
    for number in range(entries // 2):
        records += _round(next_id, 1 + 2 * (number % chats), number, seq)
        next_id, seq = next_id + 4, seq + 2
    counters = Metadata(next_id=next_id, next_seq=seq, schema_version=SCHEMA_VERSION, last_at_ms=AT_MS + seq)
    kinds = ("conversation", "entry", "task", "submission", "document")
    return Dump(counters=counters, records=tuple(sorted(records, key=lambda one: (kinds.index(one.kind), one.id))), revisions=tuple(revisions))


def _round(first_id: int, chat: int, number: int, seq: int) -> list[StoredText]:
    """A question with its submission, and an answer with its task."""
    asked, handed_in, answered, worked = range(first_id, first_id + 4)
    words = (Text(text=f"question {number}"),)
    question = Entry(id=asked, conversation_id=chat, kind=USER, at_ms=AT_MS + seq, message=UserMessage(content=words), data={"submissionId": handed_in})
    said = AssistantMessage(content=(Text(text=f"answer {number}: {'word ' * 40}"),), model="test/model", stop_reason="stop")
    done = Done(entry_id=asked, answer_entry_id=answered)
    digest = content_digest("followUp", words)
    submission = Submission(id=handed_in, conversation_id=chat, mode="followUp", content=words, digest=digest, at_ms=AT_MS + seq, state=done)
    ended = Terminal(outcome=Completed(value=answered))
    task = Task(id=worked, kind="pi.generation", conversation_id=chat, input={}, state=ended, created_at_ms=AT_MS, ended_at_ms=AT_MS)
    return [
        StoredText("entry", asked, seq, encode(question)),
        StoredText("entry", answered, seq + 1, encode(Entry(id=answered, conversation_id=chat, kind=ASSISTANT, at_ms=AT_MS + seq, message=said))),
        StoredText("task", worked, 0, encode(task)),
        StoredText("submission", handed_in, 0, encode(submission)),
    ]
