"""What opening a store had to cut off its files is told in the transcript, once, whatever happens in between (ST-18)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.records.entry import REPAIRED, StoredEntry
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.jsonl.aside import conversation_of
from pi_durable_tui.storage.jsonl.frame import GENESIS, framed
from pi_durable_tui.storage.jsonl.lines import AnyLine, CommitLine, RevisionLine, RowLine
from pi_durable_tui.tui.rows import MarkRow, entry_rows
from tests.support.harness_rig import Folder
from tests.support.scripted_model import ScriptedModel, say

TOLD = "{} bytes at the end of {} were of no stored commit: they were cut off and are kept in {}, beside the session."


async def opened(path: Path, model: ScriptedModel | None = None) -> Harness:
    clock = ManualClock()
    return await Harness.open(
        await open_jsonl(path, clock=clock, inline=True),
        models=model or ScriptedModel(clock),
        clock=clock,
        entropy=SeededEntropy(1),
        environment=lambda _conversation_id, agent: Folder(agent.cwd),
    )


async def mentions(harness: Harness) -> dict[int, list[str]]:
    """What the transcripts tell, by conversation."""
    found: dict[int, list[str]] = {}
    for conversation in (await harness.session.storage.conversations()).items:
        entries = (await harness.session.storage.entries(conversation.id, limit=1_000)).items
        found[conversation.id] = [str((stored.entry.data or {})["message"]) for stored in entries if stored.entry.kind == REPAIRED]
    return {conversation_id: told for conversation_id, told in found.items() if told}


async def two_chats(path: Path) -> tuple[int, int, int]:
    """A closed store with two chats, the second one newer; their ids, and the number of the next commit."""
    harness = await opened(path)
    first, second = [(await harness.create_conversation(Agent(model="test/model"))).id for _ in range(2)]
    for conversation_id in (first, second):
        conversation = await harness.conversation(conversation_id)
        await conversation.submit("remember this", mode="write")
    seq = harness.session.next_seq
    await harness.close()
    return first, second, seq


def tear(path: Path, name: str, data: bytes) -> int:
    """What a process that died in the middle of a commit leaves at the end of a file; its length."""
    with (path / name).open("ab") as file:
        file.write(data)
    return len(data)


def line(said: AnyLine, seq: int) -> bytes:
    return framed(msgspec.json.encode(said), seq=seq, prev=GENESIS)[0]


def row(table: str, record_id: int, record: str) -> RowLine:
    return RowLine(table=table, id=record_id, record=msgspec.Raw(record.encode()))  # type: ignore[arg-type]


@pytest.mark.rule("ST-18")
async def test_what_was_cut_is_told_once_in_the_chat_it_belonged_to(tmp_path: Path):
    first, _second, seq = await two_chats(tmp_path / "s")
    torn = line(row("submission", 900, f'{{"id":900,"conversationId":{first},"mode":"write"}}'), seq)
    size = tear(tmp_path / "s", "main.jsonl", torn + b'{"sum":"')
    size += tear(tmp_path / "s", f"doc-{document_of(tmp_path / 's')}.jsonl", b"half")
    for _ in range(3):
        harness = await opened(tmp_path / "s")
        (told,) = (await mentions(harness)).pop(first)
        assert told == TOLD.format(
            size, f"doc-{document_of(tmp_path / 's')}.jsonl, main.jsonl", f"doc-{document_of(tmp_path / 's')}.jsonl.cut-1, main.jsonl.cut-1"
        )
        await harness.close()


@pytest.mark.rule("ST-18")
async def test_what_cannot_be_told_apart_is_told_in_the_chat_with_the_newest_work_and_shown_there(tmp_path: Path):
    _first, second, _seq = await two_chats(tmp_path / "s")
    tear(tmp_path / "s", "main.jsonl", b"torn")
    harness = await opened(tmp_path / "s")
    told = TOLD.format(4, "main.jsonl", "main.jsonl.cut-1")
    assert await mentions(harness) == {second: [told]}
    stored = (await harness.session.storage.entries(second, descending=True, limit=1)).items[0]
    assert (stored.entry.message, stored.entry.data) == (
        None,
        {"message": told, "files": [{"name": "main.jsonl.cut-1", "cutFrom": "main.jsonl", "bytes": 4}]},
    )
    assert entry_rows(StoredEntry(seq=1, entry=stored.entry)) == (MarkRow(key=f"entry-{stored.entry.id}", tone="warn", text=f"Repaired at opening: {told}"),)
    await harness.close()


@pytest.mark.rule("ST-18")
async def test_a_process_that_dies_between_the_cut_and_the_mention_leaves_the_mention_to_the_next(tmp_path: Path):
    _first, second, _seq = await two_chats(tmp_path / "s")
    tear(tmp_path / "s", "main.jsonl", b"torn")
    await (await open_jsonl(tmp_path / "s", clock=ManualClock(), inline=True)).close()  # cut, and then nothing
    for _ in range(2):
        harness = await opened(tmp_path / "s")
        assert await mentions(harness) == {second: [TOLD.format(4, "main.jsonl", "main.jsonl.cut-1")]}
        await harness.close()


@pytest.mark.rule("ST-18")
async def test_a_second_cut_is_told_too_also_under_the_name_of_one_that_somebody_removed(tmp_path: Path):
    _first, second, _seq = await two_chats(tmp_path / "s")
    told: list[str] = []
    for torn in (b"torn", b"again"):
        tear(tmp_path / "s", "main.jsonl", torn)
        harness = await opened(tmp_path / "s")
        told.append(TOLD.format(len(torn), "main.jsonl", "main.jsonl.cut-1"))
        assert await mentions(harness) == {second: told}
        await harness.close()
        (tmp_path / "s" / "main.jsonl.cut-1").unlink()


@pytest.mark.rule("ST-18")
async def test_without_a_chat_it_is_told_in_the_first_one_there_is_at_a_later_opening(tmp_path: Path):
    await (await opened(tmp_path / "s")).close()
    tear(tmp_path / "s", "main.jsonl", b"torn")
    harness = await opened(tmp_path / "s")
    assert await mentions(harness) == {}
    chat = await harness.create_conversation(Agent())
    await harness.close()
    harness = await opened(tmp_path / "s")
    assert await mentions(harness) == {chat.id: [TOLD.format(4, "main.jsonl", "main.jsonl.cut-1")]}
    await harness.close()


@pytest.mark.rule("ST-18", "CX-1")
async def test_the_model_does_not_see_it(tmp_path: Path):
    _first, second, _seq = await two_chats(tmp_path / "s")
    tear(tmp_path / "s", "main.jsonl", b"torn")
    model = ScriptedModel(ManualClock())
    model.then(say("yes"))
    harness = await opened(tmp_path / "s", model)
    chat = await harness.conversation(second)
    await chat.settled((await chat.submit("are you there?")).id)
    assert "torn" not in str(model.requests[0].messages)
    assert "stored commit" not in str(model.requests[0].messages)
    await harness.close()


@pytest.mark.rule("ST-18")
async def test_what_is_left_of_a_line_tells_whose_it_was(tmp_path: Path):
    first, second, seq = await two_chats(tmp_path / "s")
    storage = await open_jsonl(tmp_path / "s", clock=ManualClock(), inline=True)
    contents = storage._source.memory.contents
    address = next(address for address in contents.live if address.scope == "conversation" and address.scope_id == second)
    document_id = contents.live[address]

    def whose(name: str, *lines: AnyLine, more: bytes = b"") -> int | None:
        return conversation_of(name, b"".join(line(said, seq) for said in lines) + more, contents)

    assert whose("main", row("entry", 900, f'{{"id":900,"conversationId":{first}}}'), more=b"torn") == first
    assert whose("main", row("conversation", first, "{}")) == first
    assert whose("main", row("conversation", 900, "{}")) is None  # was to be made by the commit that was torn
    assert whose("main", row("document", 900, f'{{"id":900,"address":{{"kind":"k","scope":"conversation","scopeId":{second}}}}}')) == second
    assert whose("main", row("document", 900, '{"id":900,"address":{"kind":"k","scope":"session"}}'), row("entry", 901, "[]")) is None
    assert whose("doc-900", RevisionLine(id=document_id, record=msgspec.Raw(b"{}")), CommitLine(next_id=1)) == second
    assert whose(f"doc-{document_id}", more=b"torn") == second
    assert whose("doc-900", RevisionLine(id=900, record=msgspec.Raw(b"{}")), more=b"torn") is None
    assert whose("main", more=framed(b'{"type":"of another time"}', seq=seq, prev=GENESIS)[0]) is None
    await storage.close()


def document_of(path: Path) -> int:
    """The first document of the store."""
    return min(int(item.name.removeprefix("doc-").partition(".")[0]) for item in path.glob("doc-*.jsonl"))
