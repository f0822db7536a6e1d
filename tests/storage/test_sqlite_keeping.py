"""Copies of a session file and chats that are taken out of it (ST-1, ST-14, ST-15)."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import NotFound, Refused, StoreCorrupt, StoreLocked
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.storage.dump import Dump
from pi_durable_tui.storage.sqlite import open_sqlite
from pi_durable_tui.storage.sqlite.keeping import copy_to, remove_chat
from tests.support.harness_rig import Rig
from tests.support.scripted_model import Hold, TextDelta, say


async def dump_of(path: Path) -> Dump:
    storage = await open_sqlite(path, clock=ManualClock(), read_only=True, inline=True)
    try:
        await storage.verify()
        return await storage.export()
    finally:
        await storage.close()


async def said(rig: Rig, text: str) -> Conversation:
    chat = await rig.start(say(f"answer to {text}"))
    await chat.submit(text)
    await rig.run_out(chat)
    await rig.close()
    return chat


@pytest.mark.rule("ST-14", "ST-15")
async def test_a_copy_holds_what_the_source_holds_and_is_private(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "source", backend="sqlite")
    await said(rig, "one")
    target = tmp_path / "copy.sqlite"
    copy_to(rig.file, target)
    assert await dump_of(target) == await dump_of(rig.file)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["copy.sqlite"]
    with pytest.raises(FileExistsError):
        copy_to(rig.file, target)


@pytest.mark.rule("ST-15")
async def test_of_a_damaged_source_no_copy_is_left(tmp_path: Path) -> None:
    source = tmp_path / "bad.sqlite"
    source.write_bytes(b"no database" * 1_000)
    with pytest.raises(StoreCorrupt):
        copy_to(source, tmp_path / "copy.sqlite")
    with pytest.raises(NotFound):
        copy_to(tmp_path / "missing.sqlite", tmp_path / "copy.sqlite")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.sqlite"]


@pytest.mark.rule("ST-3", "ST-15")
async def test_a_removed_chat_takes_all_that_is_its_own_and_nothing_else(tmp_path: Path) -> None:
    rig = Rig(tmp_path, backend="sqlite")
    first, second = await said(rig, "the first"), await said(rig, "the second")
    before = await dump_of(rig.file)
    assert remove_chat(rig.file, second.id, clock=rig.clock) == (second.id,)
    after = await dump_of(rig.file)
    assert after.counters == before.counters
    assert set(after.records) < set(before.records)
    gone = [record.text for record in before.records if record not in after.records]
    assert not any("the first" in text for text in gone)
    assert {record.id for record in after.records if record.kind == "conversation"} == {first.id}
    assert b"the second" not in rig.file.read_bytes()
    assert b"the first" in rig.file.read_bytes()


@pytest.mark.rule("ST-12")
async def test_what_is_open_unfinished_forked_or_not_there_is_not_removed(tmp_path: Path) -> None:
    rig = Rig(tmp_path, backend="sqlite")
    chat = await said(rig, "one")
    harness = await rig.open()
    with pytest.raises(StoreLocked):
        remove_chat(rig.file, chat.id, clock=rig.clock)
    fork = await harness.fork(chat.id)
    await rig.close()
    before = await dump_of(rig.file)
    with pytest.raises(Refused, match=rf"has forks that share its entries \({fork.id}\)"):
        remove_chat(rig.file, chat.id, clock=rig.clock)
    with pytest.raises(NotFound):
        remove_chat(rig.file, 999, clock=rig.clock)
    assert await dump_of(rig.file) == before
    assert remove_chat(rig.file, fork.id, clock=rig.clock) == (fork.id,)
    running = await rig.start([TextDelta("half"), Hold()])
    await running.submit("two")
    await rig.settle()
    await rig.kill()
    with pytest.raises(Refused, match="unfinished work"):
        remove_chat(rig.file, running.id, clock=rig.clock)
    assert remove_chat(rig.file, chat.id, clock=rig.clock) == (chat.id,)
