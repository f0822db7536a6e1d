"""What a reader gets while others write the file that it took as unchanging."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.storage.files import RealFiles
from pi_durable_tui.storage.sqlite import open_sqlite
from pi_durable_tui.storage.sqlite.keeping import copy_to, remove_chat
from pi_durable_tui.storage.sqlite.reads import Condition, Reads
from pi_durable_tui.storage.sqlite.row import CONVERSATIONS
from pi_durable_tui.storage.sqlite.source import Follower
from tests.support.storage_records import batch, conversation, entry


async def two_chats(folder: Path) -> Path:
    """A closed file of two chats with twenty long entries each."""
    path = folder / "session.sqlite"
    storage = await open_sqlite(path, clock=ManualClock(), inline=True)
    entries = [entry(number, 1 + number % 2, text="x" * 3_000) for number in range(3, 43)]
    await storage.commit(batch(43, conversations=[conversation(1), conversation(2)], entries=entries))
    await storage.close()
    return path


@pytest.mark.rule("OB-6", "ST-1")
async def test_a_read_of_several_tables_is_of_one_commit_though_the_file_is_written_between_them(tmp_path: Path):
    path = await two_chats(tmp_path)
    written: list[tuple[int, ...]] = []

    def chats_and_lengths(reads: Reads) -> dict[int, int]:
        chats = reads.page(CONVERSATIONS, Condition(), cursor=None, limit=10, descending=False).items
        if not written:
            written.append(remove_chat(path, 2, clock=ManualClock()))
        return {chat.id: len(reads.entries(chat.id, cursor=None, limit=100, descending=False).items) for chat in chats}

    follower = Follower(path, RealFiles())
    assert follower.read(chats_and_lengths) == {1: 20}
    follower.close()
    assert written == [(2,)]


class WrittenMeanwhile(RealFiles):
    """Between the beginning and the end of a copy somebody removes a chat: the file is looked at before and after."""

    def __init__(self) -> None:
        self.looks = 0

    def changed_at_ns(self, path: Path) -> int | None:
        self.looks += 1
        if self.looks == 2:
            remove_chat(path, 2, clock=ManualClock())
        return super().changed_at_ns(path)


@pytest.mark.rule("ST-15", "ST-1")
async def test_a_copy_of_a_file_that_is_written_meanwhile_is_made_again(tmp_path: Path):
    path, files = await two_chats(tmp_path), WrittenMeanwhile()
    copy_to(path, tmp_path / "copy.sqlite", files=files)
    storage = await open_sqlite(tmp_path / "copy.sqlite", clock=ManualClock(), inline=True, read_only=True)
    assert [chat.id for chat in (await storage.conversations()).items] == [1]
    await storage.close()
    assert files.looks == 4
