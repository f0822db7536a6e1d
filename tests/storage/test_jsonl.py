"""What the JSONL backend promises beyond the port: its files, their order and their lines, reclamation, reading only, its refusals."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import (
    EnvironmentFailure,
    NotFound,
    ReadOnlySession,
    SchemaTooNew,
    SessionClosed,
    SessionFailed,
    StorageRejected,
    StoreCorrupt,
    StoreLocked,
)
from pi_durable_tui.records.commit import DocumentDelta, DocumentRetired
from pi_durable_tui.records.task import Completed, Running, Terminal
from pi_durable_tui.storage.files import RealFiles
from pi_durable_tui.storage.jsonl import JsonlStorage, open_jsonl
from pi_durable_tui.storage.jsonl.frame import chain, framed
from pi_durable_tui.storage.jsonl.reclaim import ReclaimRule
from pi_durable_tui.storage.lock import acquire
from pi_durable_tui.storage.space import PLENTY_BYTES, SpaceRule
from tests.support.storage_cramped import CrampedFiles
from tests.support.storage_journal import JournalFiles, contents, kept_as_killed
from tests.support.storage_records import address, base, batch, conversation, dump, entry, first_chat, submission, task

SET = [["s", ["a"], 2]]
ENDED = Terminal(outcome=Completed())


async def opened(folder: Path, **options: Any) -> JsonlStorage:
    return await open_jsonl(folder, clock=ManualClock(), inline=True, **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "session.jsonl"


@pytest.fixture
async def store(folder: Path) -> AsyncIterator[JsonlStorage]:
    storage = await opened(folder)
    yield storage
    await storage.close()


def said(path: Path) -> list[Any]:
    """What the lines of a file say, read as any tool for JSON would."""
    return [json.loads(text)["data"] for text in path.read_text().splitlines()]


def names(folder: Path) -> list[str]:
    return sorted(item.name for item in folder.glob("*.jsonl"))


# ------------------------------------------------------------------------------------------------------------------ files


@pytest.mark.rule("ST-14", "SA-16")
async def test_every_file_of_a_store_is_private_under_any_umask(folder: Path):
    before = os.umask(0)
    try:
        storage = await opened(folder)
        await storage.commit(batch(4, conversations=[conversation(1)], tasks=[task(2)], documents=[base(3, {})]))
    finally:
        os.umask(before)
    found = {item.name: stat.S_IMODE(item.stat().st_mode) for item in (folder.parent, *folder.parent.iterdir(), *folder.iterdir())}
    assert found == {
        "data": 0o700,
        "session.jsonl": 0o700,
        "session.jsonl.lock": 0o600,
        "session.jsonl.reserve": 0o600,
        "main.jsonl": 0o600,
        "task-2.jsonl": 0o600,
        "doc-3.jsonl": 0o600,
    }
    await storage.close()


@pytest.mark.rule("FB-9")
async def test_main_holds_rows_and_markers_and_sidecars_hold_live_tasks_and_documents(store: JsonlStorage, folder: Path):
    await store.commit(
        batch(6, conversations=[conversation(1)], entries=[entry(2)], tasks=[task(3)], submissions=[submission(4)], documents=[base(5, {"a": 1})])
    )
    await store.commit(batch(6, tasks=[task(3, state=Running(checkpoint={"phase": "x"}))], documents=[DocumentDelta(document_id=5, ops=SET)]))
    lines = [(line["type"], line.get("table"), sorted(line.get("sidecars", ()))) for line in said(folder / "main.jsonl")]
    assert lines == [
        ("store", None, []),
        ("commit", None, []),
        ("row", "conversation", []),
        ("row", "entry", []),
        ("row", "submission", []),
        ("row", "document", []),
        ("commit", None, ["doc-5", "task-3"]),
        ("commit", None, ["doc-5", "task-3"]),
    ]
    assert [line["record"]["state"]["status"] for line in said(folder / "task-3.jsonl")] == ["pending", "running"]
    assert [line["record"] for line in said(folder / "doc-5.jsonl")] == [{"type": "base", "version": 1, "value": {"a": 1}}, {"type": "delta", "ops": SET}]


@pytest.mark.rule("FB-9")
async def test_a_marker_names_the_newest_line_of_each_sidecar_and_lines_are_chained(store: JsonlStorage, folder: Path):
    await store.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {"a": 1})]))
    await store.commit(batch(3, documents=[DocumentDelta(document_id=2, ops=SET)]))
    sidecar = json.loads((folder / "doc-2.jsonl").read_text().splitlines()[-1])
    assert said(folder / "main.jsonl")[-1]["sidecars"] == {"doc-2": sidecar["sum"]}
    for name in names(folder):
        raw = [json.loads(text) for text in (folder / name).read_text().splitlines()]
        assert [line["prev"] for line in raw] == ["0" * 32, *(line["sum"] for line in raw[:-1])]


@pytest.mark.rule("FB-9", "ST-1")
@pytest.mark.parametrize("fsync", [True, False])
async def test_sidecars_come_first_then_the_marker_each_flushed_when_asked_for(folder: Path, fsync: bool):
    files = JournalFiles()
    storage = await opened(folder, files=files, fsync=fsync)
    await storage.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {"a": 1})]))
    files.journal.clear()
    await storage.commit(batch(4, tasks=[task(3)], documents=[DocumentDelta(document_id=2, ops=SET)]))
    flushed = [
        ("create", "task-3.jsonl"),
        ("append", "task-3.jsonl"),
        ("append", "doc-2.jsonl"),
        ("sync", "task-3.jsonl"),
        ("sync", "doc-2.jsonl"),
        ("sync_folder", "session.jsonl"),
        ("append", "main.jsonl"),
        ("sync", "main.jsonl"),
    ]
    assert files.journal == [step for step in flushed if fsync or not step[0].startswith("sync")]
    await storage.close()


@pytest.mark.rule("ST-1", "FB-1")
async def test_memory_shows_a_commit_only_after_its_marker_is_in_the_file(folder: Path):
    seen: list[Any] = []
    known: dict[int, str] = {}
    storage = await opened(folder, files=JournalFiles(lambda kind, name: seen.append((kind, name, sorted(known)))))
    await storage.commit(first_chat())
    known = vars(storage)["_source"].memory.contents.entries.texts
    seen.clear()
    await storage.commit(batch(4, entries=[entry(3)]))
    assert seen == [("append", "main.jsonl", [2]), ("sync", "main.jsonl", [2])]
    assert await storage.entry(3) is not None
    await storage.close()


async def test_the_store_works_from_a_thread_of_its_own(folder: Path):
    async with asyncio.timeout(20):
        storage = await open_jsonl(folder, clock=ManualClock())
        assert await asyncio.gather(storage.commit(first_chat()), storage.commit(batch(4, entries=[entry(3)]))) == [1, 2]
        await storage.close()
        with pytest.raises(SessionClosed):
            await storage.entries(1)
        with pytest.raises(SessionClosed):
            await storage.commit(batch(4))


@pytest.mark.rule("SE-8")
async def test_a_commit_nobody_waits_for_any_more_is_still_stored_and_adopted(folder: Path):
    storage = await open_jsonl(folder, clock=ManualClock())
    waiting = asyncio.ensure_future(storage.commit(first_chat()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await storage.commit(batch(4, entries=[entry(3)])) == 2
    assert [item.entry.id for item in (await storage.entries(1)).items] == [2, 3]
    await storage.close()


async def test_an_opening_that_nobody_waits_for_any_more_gives_the_store_free(folder: Path):
    opening = asyncio.ensure_future(open_jsonl(folder, clock=ManualClock()))
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    acquire(folder, since_ms=0).release()


@pytest.mark.rule("ST-19")
async def test_keys_of_a_later_minor_version_survive_a_rewrite_a_compaction_and_a_reopen(folder: Path):
    storage = await opened(folder)
    await storage.commit(batch(4, conversations=[conversation(1)], tasks=[task(2)], submissions=[submission(3)]))
    await storage.close()
    for name, table in (("main", "submission"), ("task-2", "task")):
        with_key(folder, name, table)
    storage = await opened(folder, reclaim=ReclaimRule(main_bytes=1))
    await storage.commit(batch(4, tasks=[task(2, restarts=1)], submissions=[submission(3, request_id="r")]))
    await storage.commit(batch(4, tasks=[task(2, state=ENDED)]))
    await storage.close()
    found = {line["table"]: line["record"].get("later") for line in said(folder / "main.jsonl") if line["type"] == "row"}
    assert found == {"conversation": None, "submission": 7, "task": 7}


def with_key(folder: Path, name: str, table: str) -> None:
    """Write the lines of a file again, with a key more in the records of a table, and with what names them."""
    path = folder / f"{name}.jsonl"
    before = list(chain(path.read_bytes()))
    prev, text, sums = "0" * 32, b"", {}
    for line in before:
        data = json.loads(line.body)
        if data.get("table") == table:
            data["record"]["later"] = 7
        written, prev = framed(compact(data), seq=line.seq, prev=prev)
        sums[line.sum] = prev
        text += written
    path.write_bytes(text)
    if name != "main":
        main = (folder / "main.jsonl").read_bytes()
        for old, new in sums.items():
            main = main.replace(f'"{name}":"{old}"'.encode(), f'"{name}":"{new}"'.encode())
        (folder / "main.jsonl").write_bytes(rechained(main))


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def rechained(main: bytes) -> bytes:
    prev, text = "0" * 32, b""
    for raw in main.splitlines():
        line = json.loads(raw)
        written, prev = framed(compact(line["data"]), seq=line["seq"], prev=prev)
        text += written
    return text


# -------------------------------------------------------------------------------------------------------------- reclaiming


@pytest.mark.rule("ST-10", "FB-16")
async def test_old_revisions_go_when_a_base_makes_them_superfluous_and_what_stays_keeps_its_bytes(folder: Path):
    storage = await opened(folder, reclaim=ReclaimRule(sidecar_bytes=100))
    await storage.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {"a": "x" * 500})]))
    await storage.commit(batch(3, documents=[DocumentDelta(document_id=2, ops=SET)]))
    assert len(said(folder / "doc-2.jsonl")) == 2
    await storage.commit(batch(3, documents=[base(2, {"a": 3})]))
    (kept,) = (folder / "doc-2.jsonl").read_bytes().splitlines(keepends=True)
    await storage.commit(batch(3, documents=[DocumentDelta(document_id=2, ops=SET)]))
    assert (folder / "doc-2.jsonl").read_bytes().startswith(kept)
    before = await dump(storage)
    await storage.close()
    storage = await opened(folder)
    assert await dump(storage) == before
    await storage.close()


@pytest.mark.rule("ST-10")
async def test_nothing_of_a_rewindable_document_is_ever_reclaimed(folder: Path):
    storage = await opened(folder, reclaim=ReclaimRule(sidecar_bytes=1, main_bytes=1))
    await storage.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {"n": 0}, history="rewindable")]))
    for number in range(1, 6):
        await storage.commit(batch(3, documents=[base(2, {"n": number}, history="rewindable")]))
    await storage.commit(batch(3, documents=[DocumentRetired(document_id=2)]))
    await storage.close()
    assert [line["record"]["value"]["n"] for line in said(folder / "doc-2.jsonl")] == [0, 1, 2, 3, 4, 5]
    storage = await opened(folder)
    found = [await storage.revisions(2, at_seq=seq) for seq in range(1, 7)]
    assert [item and item.base for item in found] == [{"n": number} for number in range(6)]
    await storage.close()


@pytest.mark.rule("ST-10", "TK-9")
@pytest.mark.parametrize("fsync", [True, False])
async def test_the_sidecar_of_an_ended_task_and_of_a_retired_document_goes(folder: Path, fsync: bool):
    storage = await opened(folder, fsync=fsync, reclaim=ReclaimRule(removals=2))
    await storage.commit(batch(5, conversations=[conversation(1)], tasks=[task(2), task(3)], documents=[base(4, {})]))
    await storage.commit(batch(5, tasks=[task(2, state=ENDED)], documents=[DocumentRetired(document_id=4)]))
    assert names(folder) == ["main.jsonl", "task-3.jsonl"]
    await storage.commit(batch(5, tasks=[task(3, state=ENDED)]))
    await storage.close()
    assert names(folder) == ["main.jsonl"]
    storage = await opened(folder)
    assert (await storage.tasks()).items == (task(2, state=ENDED), task(3, state=ENDED))
    await storage.commit(batch(5, tasks=[task(3)]))  # the port allows it: a record is replaced by any other
    await storage.close()
    storage = await opened(folder)
    assert await storage.task(3) == task(3)
    await storage.close()


@pytest.mark.rule("ST-10")
async def test_a_sidecar_that_is_needed_again_before_it_was_removed_stays(folder: Path):
    storage = await opened(folder, fsync=False, reclaim=ReclaimRule(removals=2))
    await storage.commit(batch(4, conversations=[conversation(1)], tasks=[task(2), task(3)]))
    await storage.commit(batch(4, tasks=[task(2, state=ENDED)]))
    await storage.commit(batch(4, tasks=[task(2, restarts=1)]))
    await storage.commit(batch(4, tasks=[task(3, state=ENDED)]))
    assert names(folder) == ["main.jsonl", "task-2.jsonl", "task-3.jsonl"]
    await storage.close()
    assert names(folder) == ["main.jsonl", "task-2.jsonl"]
    storage = await opened(folder)
    assert (await storage.tasks()).items == (task(2, restarts=1), task(3, state=ENDED))
    await storage.close()


@pytest.mark.rule("ST-10", "DO-7")
async def test_a_document_that_ends_in_the_commit_that_changes_or_makes_it_leaves_no_sidecar(folder: Path):
    storage = await opened(folder)
    await storage.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {"a": 1})]))
    await storage.commit(
        batch(4, documents=[DocumentDelta(document_id=2, ops=SET), DocumentRetired(document_id=2), base(3, {}), DocumentRetired(document_id=3)])
    )
    expected = await storage.export()
    assert (names(folder), expected.revisions) == (["main.jsonl"], ())
    await storage.close()
    storage = await opened(folder)
    assert await storage.export() == expected
    await storage.close()


@pytest.mark.rule("ST-10")
async def test_main_stays_in_proportion_to_what_it_holds_however_many_partials_are_committed(folder: Path):
    rule = ReclaimRule(main_bytes=20_000, sidecar_bytes=5_000)
    storage = await opened(folder, fsync=False, reclaim=rule)
    await storage.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {"a": ""})]))
    largest = 0
    for number in range(1_000):
        write = base(2, {"a": "x" * 50}) if number % 64 == 0 else DocumentDelta(document_id=2, ops=SET)
        await storage.commit(batch(3, documents=[write], priority="partial"))
        largest = max(largest, sum(item.stat().st_size for item in folder.iterdir()))
    assert largest < 20_000 + 2_000 + 2 * 64 * 300
    before = await storage.export()
    await storage.close()
    storage = await opened(folder)
    assert await storage.export() == before
    await storage.close()


# ------------------------------------------------------------------------------------------------------------ reading only


@pytest.mark.rule("ST-11")
async def test_reading_a_closed_store_writes_nothing_and_leaves_nothing(folder: Path):
    storage = await opened(folder)
    await storage.commit(first_chat())
    expected = await dump(storage)
    await storage.close()
    before = contents(folder.parent)
    reader = await opened(folder, read_only=True)
    assert (await dump(reader), reader.read_only, await reader.has_room(), reader.notices) == (expected, True, False, ())
    with pytest.raises(ReadOnlySession):
        await reader.commit(batch(4, entries=[entry(3)]))
    await reader.close()
    assert contents(folder.parent) == before


@pytest.mark.rule("ST-11", "OB-6")
async def test_a_reader_follows_a_writer_through_commits_and_reclamations(folder: Path):
    storage = await opened(folder, reclaim=ReclaimRule(main_bytes=500, sidecar_bytes=50))
    reader = await opened(folder, read_only=True)
    await storage.commit(batch(4, conversations=[conversation(1)], tasks=[task(2)], documents=[base(3, {"n": 0})]))
    for number in range(4, 30):
        await storage.commit(batch(number + 1, entries=[entry(number)], documents=[base(3, {"n": number})]))
        assert await dump(reader) == await dump(storage)
    await storage.close()
    await reader.close()


class FastWriter(RealFiles):
    """Commits come faster than files are read: when the sidecars are, `main.jsonl` has long gone on from where it was read to."""

    def __init__(self, main_bytes: int) -> None:
        self._main_bytes = main_bytes

    def read(self, path: Path) -> bytes:
        data = super().read(path)
        return data[: self._main_bytes] if path.name == "main.jsonl" else data


@pytest.mark.rule("OB-6", "ST-15")
@pytest.mark.parametrize("torn_bytes", [0, 9])
async def test_a_reader_that_is_slower_than_the_writer_does_not_take_its_progress_for_damage(folder: Path, torn_bytes: int):
    storage = await opened(folder)
    await storage.commit(batch(4, conversations=[conversation(1)], tasks=[task(2)], documents=[base(3, {"n": 0})]))
    expected, main_bytes = await dump(storage), (folder / "main.jsonl").stat().st_size
    for number in range(1, 6):
        delta = DocumentDelta(document_id=3, ops=[["s", ["n"], number]])
        new = base(3 + number, {}, address=address(kind=f"test.{number}"))
        await storage.commit(batch(4 + number, tasks=[task(2, state=Running(checkpoint={"n": number}))], documents=[delta, new]))
    reader = await opened(folder, read_only=True, files=FastWriter(main_bytes + torn_bytes))
    assert (await dump(reader), reader.notices) == (expected, ())
    await reader.close()
    await storage.close()


@pytest.mark.rule("ST-11", "ST-16")
async def test_reading_the_store_of_a_killed_process_repairs_nothing_on_disk(folder: Path):
    storage = await opened(folder)
    await storage.commit(first_chat())
    expected = await dump(storage)
    killed = kept_as_killed(folder)
    await storage.close()
    with (killed / "main.jsonl").open("ab") as file:
        file.write(b'{"sum":"')
    before = contents(killed.parent)
    reader = await opened(killed, read_only=True)
    assert (await dump(reader), reader.notices) == (expected, ("8 bytes at the end of main.jsonl are of an unfinished commit and were left out.",))
    await reader.verify()
    await reader.close()
    assert contents(killed.parent) == before


@pytest.mark.rule("ST-11")
async def test_reading_what_is_not_there_creates_nothing(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    for name in ("none", "empty"):
        with pytest.raises(NotFound):
            await opened(tmp_path / name, read_only=True)
    assert [item.name for item in tmp_path.iterdir()] == ["empty"]


# ---------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.rule("ST-13", "PR-16")
@pytest.mark.parametrize("read_only", [False, True])
async def test_a_newer_store_is_refused_untouched_with_both_versions_named(folder: Path, read_only: bool):
    await (await opened(folder)).close()
    main = folder / "main.jsonl"
    main.write_bytes(rechained(main.read_bytes().replace(b'"schema":1', b'"schema":7')) + b'{"newer":"form"}\n')
    before = contents(folder)
    with pytest.raises(SchemaTooNew, match="schema version 7; this program knows versions up to 1"):
        await opened(folder, read_only=read_only)
    assert contents(folder) == before


@pytest.mark.rule("ST-15", "PR-15")
@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "main.jsonl").write_bytes(b"this is a letter to somebody else\n"), "main.jsonl line 1: it is not the beginning"),
        (lambda folder: (folder / "main.jsonl").write_bytes(b""), "main.jsonl line 1: it is not the beginning"),
        (lambda folder: (folder / "main.jsonl").unlink(), "main.jsonl: the file is missing"),
        (lambda folder: (folder / "task-3.jsonl").unlink(), "task-3.jsonl: a file of a stored commit is missing"),
        (lambda folder: (folder / "doc-4.jsonl").write_bytes(b""), "doc-4.jsonl line 1: a stored line is damaged or missing"),
        (lambda folder: shutil.copy(folder / "task-3.jsonl", folder / "doc-4.jsonl"), "doc-4.jsonl line 1: it does not belong there"),
        (lambda folder: swap(folder, b'"text":"hello"', b'"text":"hallo"'), "main.jsonl line 4: it is damaged, and line 7 was written after it"),
    ],
)
async def test_a_damaged_store_is_refused_untouched(folder: Path, change: Any, words: str, read_only: bool):
    storage = await opened(folder)
    await storage.commit(batch(5, conversations=[conversation(1)], entries=[entry(2)], tasks=[task(3)], documents=[base(4, {})]))
    await storage.commit(batch(6, entries=[entry(5, text="second")]))
    await storage.close()
    change(folder)
    before = contents(folder)
    with pytest.raises(StoreCorrupt, match=words):
        await opened(folder, read_only=read_only)
    assert contents(folder) == before


def swap(folder: Path, old: bytes, new: bytes) -> None:
    main = folder / "main.jsonl"
    assert old in main.read_bytes()
    main.write_bytes(main.read_bytes().replace(old, new))


@pytest.mark.rule("ST-15")
async def test_damage_that_comes_while_a_store_is_open_is_found_by_a_look_at_the_whole(store: JsonlStorage, folder: Path):
    await store.commit(first_chat())
    await store.commit(batch(4, entries=[entry(3)]))
    await store.verify()
    swap(folder, b'"text":"hello"', b'"text":"hallo"')
    with pytest.raises(StoreCorrupt, match=r"main\.jsonl line"):
        await store.verify()


@pytest.mark.rule("ST-12", "PR-14")
async def test_a_second_owner_is_refused_and_the_store_stays_with_the_first(store: JsonlStorage, folder: Path):
    (folder.parent / "link.jsonl").symlink_to(folder)
    for name in ("session.jsonl", "link.jsonl"):
        with pytest.raises(StoreLocked, match=f"pid {os.getpid()}"):
            await opened(folder.parent / name)
    assert await store.commit(first_chat()) == 1


@pytest.mark.rule("ST-12", "PR-14")
async def test_an_owner_whose_lock_was_got_around_notices_before_it_writes(folder: Path):
    first = await opened(folder)
    await first.commit(first_chat())
    folder.with_name("session.jsonl.lock").unlink()
    second = await opened(folder)
    await second.commit(batch(4, entries=[entry(3)]))
    for _ in range(2):
        with pytest.raises(SessionFailed, match="another process wrote to"):
            await first.commit(batch(4, entries=[entry(3, text="lost")]))
    assert await second.commit(batch(5, entries=[entry(4)])) == 3
    await first.close()
    await second.close()
    storage = await opened(folder)
    assert [item.entry.id for item in (await storage.entries(1)).items] == [2, 3, 4]
    await storage.close()


async def test_a_file_in_the_place_of_the_folder_is_an_error_of_the_environment(tmp_path: Path):
    (tmp_path / "file").write_text("kept")
    for options in ({}, {"read_only": True}):
        with pytest.raises(EnvironmentFailure):
            await opened(tmp_path / "file", **options)
    assert (tmp_path / "file").read_text() == "kept"


# ------------------------------------------------------------------------------------------------------------------- space


@pytest.mark.rule("TO-9", "PR-17")
async def test_a_full_disk_refuses_records_takes_the_outcome_and_recovers(folder: Path):
    files = CrampedFiles(PLENTY_BYTES)
    storage = await opened(folder, files=files, space=SpaceRule(margin_bytes=1000, reserve_bytes=4096))
    await storage.commit(first_chat())
    reserve = folder.with_name("session.jsonl.reserve")
    assert (reserve.stat().st_size, await storage.has_room()) == (4096, True)
    files.free = 500
    before = await dump(storage)
    for priority in ("record", "partial"):
        with pytest.raises(StorageRejected, match="only 500 bytes left") as caught:
            await storage.commit(batch(4, entries=[entry(3)], priority=priority))
        assert (caught.value.reason, await dump(storage)) == ("no_space", before)
    assert await storage.commit(batch(4, entries=[entry(3)], priority="outcome")) == 2
    assert (reserve.exists(), await storage.has_room()) == (False, False)
    files.free = PLENTY_BYTES
    assert (await storage.has_room(), reserve.exists()) == (True, True)
    assert await storage.commit(batch(5, entries=[entry(4)])) == 3
    await storage.close()
