"""Example 02: documents, which are JSON values that change and are stored as what changed.

A definition names the kind of a document and what it belongs to. The draft inside a commit is a plain value to change in place.
When the meaning of the value changes, the version rises, and `migrate` makes older ones new.

    python -m tests.examples.e02_documents

It prints:

    created: [["r", {"text": "one two", "tags": []}]]
    changed: [["a", ["text"], " three"], ["l", ["tags"], 0, 0, ["done"]]]
    as stored: {'text': 'one two three', 'tags': ['done']}
    read by newer code: {'words': ['one', 'two', 'three'], 'tags': ['done']}
    still stored: {'text': 'one two three', 'tags': ['done']}
"""

from __future__ import annotations

import asyncio
import json

from pi_durable_tui.library import Commit, Definition, JsonObject, MemoryStorage, Session, SystemClock, Transaction

NOTES = Definition(kind="example.notes", scope="session", initial=lambda: {"text": "", "tags": []})


def words(value: JsonObject, _version: int) -> JsonObject:
    """Version 1 had one text, version 2 has a list of words."""
    return {"words": [*str(value["text"]).split()], "tags": value["tags"]}


NEWER_NOTES = Definition(kind="example.notes", scope="session", version=2, migrate=words)


async def main() -> None:
    """Create a document, change it, and read it with newer code."""
    session = await Session.open(MemoryStorage(), clock=SystemClock())
    stored: list[str] = []

    def hear(commit: Commit) -> None:
        stored.extend(json.dumps(change.ops) for change in commit.documents)

    session.subscribe(hear)

    async def create(transaction: Transaction) -> None:
        draft = await transaction.document(NOTES)
        draft.value["text"] = "one two"

    async def change(transaction: Transaction) -> None:
        draft = await transaction.document(NOTES)
        draft.value["text"] = f"{draft.value['text']} three"
        draft.value["tags"] = ["done"]

    await session.commit(create)
    print("created:", stored[0])
    await session.commit(change)
    print("changed:", stored[1])
    print("as stored:", await session.snapshot(NOTES))
    print("read by newer code:", await session.snapshot(NEWER_NOTES))  # reading never writes, so nothing is migrated in the store
    print("still stored:", await session.snapshot(NOTES))
    await session.close()


if __name__ == "__main__":
    asyncio.run(main())
