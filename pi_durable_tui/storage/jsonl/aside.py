"""Whose were the bytes that recovery cut off: the conversation that what can still be read of them names. PURE.

The bytes are what is left of a commit that was never stored, so nothing in them is believed further than that.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pi_durable_tui.records import codec
from pi_durable_tui.storage.contents import Contents
from pi_durable_tui.storage.jsonl.frame import valid_lines
from pi_durable_tui.storage.jsonl.lines import RevisionLine, RowLine, decoded, document_name, task_name, text_of


def conversation_of(name: str, data: bytes, contents: Contents) -> int | None:
    """The stored conversation that the bytes cut from a file belonged to; None when that cannot be told.

    Args:
        name: Of the file: "main" or a sidecar.
        contents: What is stored.
    """
    return next((found for found in _named(name, data, contents) if found in contents.conversations.seen), None)


def _named(name: str, data: bytes, contents: Contents) -> Iterator[int]:
    for line in valid_lines(data, 0):
        try:
            said = decoded(line.body)
        except msgspec.MsgspecError:
            continue
        match said:
            case RowLine(table="conversation"):
                yield said.id
            case RowLine():
                yield from _named_by(text_of(said.record))
            case RevisionLine():
                yield from _owner_of(said.id, contents)
            case _:
                pass
    for task in contents.tasks.seen.values():
        if task_name(task.id) == name:
            yield task.conversation_id
    for document_id in contents.documents.seen:
        if document_name(document_id) == name:
            yield from _owner_of(document_id, contents)


def _named_by(text: str) -> Iterator[int]:
    """What a record says of itself: its conversation, or that of the document that it is."""
    record = codec.decode_json(text)
    if not isinstance(record, dict):
        return
    if isinstance(found := record.get("conversationId"), int):
        yield found
    address = record.get("address")
    if isinstance(address, dict) and address.get("scope") == "conversation" and isinstance(found := address.get("scopeId"), int):
        yield found


def _owner_of(document_id: int, contents: Contents) -> Iterator[int]:
    document = contents.documents.seen.get(document_id)
    if document is None or document.address.scope_id is None:
        return
    if document.address.scope == "conversation":
        yield document.address.scope_id
    task = contents.tasks.seen.get(document.address.scope_id)
    if document.address.scope == "task" and task is not None:
        yield task.conversation_id
