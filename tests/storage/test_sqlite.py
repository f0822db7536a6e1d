"""What the SQLite backend promises beyond the port: its file, its tables, its levels of durability, its refusals."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
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
from pi_durable_tui.records.commit import DocumentDelta
from pi_durable_tui.records.messages import Problem
from pi_durable_tui.records.task import Completed, Failed, Running, Terminal, Waiting
from pi_durable_tui.storage.lock import acquire
from pi_durable_tui.storage.sqlite import SqliteStorage, open_sqlite
from pi_durable_tui.storage.sqlite.row import row_hash
from tests.support.storage_process import ask, child, kill, line
from tests.support.storage_records import address, base, batch, conversation, dump, entry, first_chat, submission, task

TABLES = ["conversations", "document_revisions", "documents", "durable_metadata", "entries", "record_ids", "submissions", "tasks"]


def sql_of(storage: SqliteStorage) -> Any:
    """The writer's connection, to look at what no caller may see."""
    return vars(storage)["_source"].sql


async def opened(path: Path, **options: Any) -> SqliteStorage:
    return await open_sqlite(path, clock=ManualClock(), inline=True, **options)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "session.sqlite"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStorage]:
    storage = await opened(path)
    yield storage
    await storage.close()


def shell(path: Path, sql: str) -> str:
    """What the sqlite3 shell of the machine prints."""
    done = subprocess.run(["sqlite3", "-nullvalue", "null", str(path), sql], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def spoil(path: Path, sql: str, *values: Any) -> None:
    """Change a closed file from outside."""
    connection = apsw.Connection(str(path))
    connection.execute(sql, values)
    connection.close()


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of every file of a store, copied by another process: opening them here would drop SQLite's locks."""
    with tempfile.TemporaryDirectory() as copies:
        subprocess.run(["cp", "-r", f"{folder}/.", copies], check=True)
        return {item.name: item.read_bytes() for item in Path(copies).iterdir() if not item.name.endswith((".lock", ".reserve"))}


# --------------------------------------------------------------------------------------------------------------- the file


@pytest.mark.rule("ST-14", "SA-16", "CASE-G2")
async def test_every_file_of_a_store_is_private_under_any_umask(path: Path):
    before = os.umask(0)
    try:
        storage = await opened(path)
        await storage.commit(first_chat())
    finally:
        os.umask(before)
    modes = {item.name: stat.S_IMODE(item.stat().st_mode) for item in path.parent.iterdir()}
    assert modes == dict.fromkeys(["session.sqlite", "session.sqlite-wal", "session.sqlite-shm", "session.sqlite.lock", "session.sqlite.reserve"], 0o600)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await storage.close()


@pytest.mark.rule("FB-3")
async def test_the_store_is_a_wal_file_with_foreign_keys_and_a_busy_timeout(store: SqliteStorage, path: Path):
    sql = sql_of(store)
    values = {name: sql.pragma(name) for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "trusted_schema", "cell_size_check")}
    assert values == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 5000, "trusted_schema": 0, "cell_size_check": 1}
    assert shell(path, "PRAGMA journal_mode") == "wal\n"


@pytest.mark.rule("FB-3", "FB-5")
async def test_the_tables_are_the_documented_ones(store: SqliteStorage, path: Path):
    assert sorted(shell(path, ".tables").split()) == TABLES
    await store.commit(first_chat())
    assert shell(path, "SELECT next_id, next_seq, schema_version, last_at_ms FROM durable_metadata") == "3|2|1|1700000000000\n"
    assert shell(path, "SELECT id, kind FROM record_ids") == "1|conversation\n2|entry\n"


@pytest.mark.rule("FB-3", "PR-4")
@pytest.mark.parametrize(("setting", "levels"), [("full", [2, 1, 1, 2, 2]), ("normal", [1, 1, 1, 1, 1])])
async def test_records_and_outcomes_are_synced_and_partials_are_not(path: Path, setting: Any, levels: list[int]):
    storage = await opened(path, synchronous=setting)
    await storage.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {})]))
    seen = []
    for priority in ("record", "partial", "partial", "outcome", "record"):
        await storage.commit(batch(3, priority=priority, documents=[DocumentDelta(document_id=2, ops=[["s", ["n"], priority]])]))
        seen.append(sql_of(storage).pragma("synchronous"))
    assert seen == levels
    await storage.close()


async def test_the_store_works_from_a_thread_of_its_own(path: Path):
    storage = await open_sqlite(path, clock=ManualClock())
    seqs = await asyncio.gather(storage.commit(first_chat()), *(storage.commit(batch(n + 1, entries=[entry(n)])) for n in range(3, 20)))
    assert seqs == list(range(1, 19))
    assert len((await storage.entries(1)).items) == 18
    await storage.close()
    with pytest.raises(SessionClosed):
        await storage.metadata()


async def test_an_opening_that_nobody_waits_for_any_more_gives_the_store_free(path: Path):
    opening = asyncio.ensure_future(open_sqlite(path, clock=ManualClock()))
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await (await opened(path)).close()


# -------------------------------------------------------------------------------------------------------------- the shell


@pytest.mark.rule("FA-9", "FA-37", "FA-43")
async def test_the_documented_queries_run_in_the_shell_on_a_live_file(store: SqliteStorage, path: Path):
    calling = task(3, kind="pi.generation", state=Waiting(checkpoint={"phase": "tools"}, on=(4,)))
    tool = task(4, kind="pi.tool", owner=3, state=Running(checkpoint={"phase": "execute", "arguments": {}, "replay": "unsafe"}), restarts=1)
    counting = task(5, memos={"printed-1": True, "printed-2": True}, state=Running(checkpoint={"phase": "count", "n": 2}))
    ended = task(6, state=Terminal(outcome=Completed(value="counted to 5")))
    await store.commit(first_chat())
    await store.commit(batch(7, tasks=[calling, tool, counting, ended]))
    counters = "SELECT id, status, record ->> '$.state.checkpoint.n' AS n, record ->> '$.memos' AS memos, record ->> '$.restarts' AS restarts FROM tasks;"
    phases = (
        "SELECT id, kind, status, record ->> '$.restarts' AS restarts, record ->> '$.state.checkpoint.phase' AS phase, "
        "record ->> '$.state.checkpoint.replay' AS replay FROM tasks ORDER BY id;"
    )
    assert shell(path, counters) == (
        '3|waiting|null|null|null\n4|running|null|null|1\n5|running|2|{"printed-1":true,"printed-2":true}|null\n6|terminal|null|null|null\n'
    )
    assert shell(path, phases) == (
        "3|pi.generation|waiting|null|tools|null\n4|pi.tool|running|1|execute|unsafe\n5|test.count|running|null|count|null\n6|test.count|terminal|null|null|null\n"
    )


async def test_documents_are_plain_json_text(store: SqliteStorage, path: Path):
    await store.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {"text": "hé"})]))
    await store.commit(batch(3, documents=[DocumentDelta(document_id=2, ops=[["s", ["text"], "x"]])]))
    assert shell(path, "SELECT document_id, seq, type, record FROM document_revisions") == (
        '2|1|base|{"type":"base","version":1,"value":{"text":"hé"}}\n2|2|delta|{"type":"delta","ops":[["s",["text"],"x"]]}\n'
    )
    found = '{"id":2,"address":{"kind":"test.notes","scope":"conversation","scopeId":1},"version":1,"history":"latest"}\n'
    assert shell(path, "SELECT record FROM documents") == found


@pytest.mark.rule("FB-8", "FB-16", "ST-10")
async def test_rows_are_replaced_and_reclaimed_in_place(store: SqliteStorage, path: Path):
    await store.commit(batch(6, conversations=[conversation(1)], tasks=[task(2)], submissions=[submission(3)], documents=[base(4, {})]))
    kept = {"address": address(kind="test.kept"), "history": "rewindable"}
    await store.commit(batch(6, documents=[base(5, {}, **kept)]))
    for n in range(5):
        deltas = [DocumentDelta(document_id=4, ops=[["s", ["n"], n]]), DocumentDelta(document_id=5, ops=[["s", ["n"], n]])]
        await store.commit(batch(6, tasks=[task(2, restarts=n)], submissions=[submission(3)], documents=deltas))
    counts = (
        "SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM submissions), (SELECT group_concat(seq) FROM document_revisions WHERE document_id = {})"
    )
    assert shell(path, counts.format(4)) == "1|1|1,3,4,5,6,7\n"
    await store.commit(batch(6, documents=[base(4, {"n": 9}), base(5, {"n": 9}, **kept)]))
    assert (shell(path, counts.format(4)), shell(path, counts.format(5))) == ("1|1|8\n", "1|1|2,3,4,5,6,7,8\n")


@pytest.mark.rule("ST-8", "FB-31", "FB-7")
async def test_the_schema_itself_refuses_a_second_use(store: SqliteStorage, path: Path):
    await store.commit(batch(3, conversations=[conversation(1)], submissions=[submission(2, request_id="r")]))
    again = "INSERT INTO submissions SELECT 9, conversation_id, request_id, status, record, hash FROM submissions"
    assert "UNIQUE constraint failed: submissions.conversation_id, submissions.request_id" in shell(path, again)
    assert "UNIQUE constraint failed: record_ids.id" in shell(path, "INSERT INTO record_ids VALUES (2, 'task')")


# ---------------------------------------------------------------------------------------------------- unknown keys, levels


@pytest.mark.rule("ST-19")
async def test_keys_of_a_later_minor_version_survive_a_rewrite(path: Path):
    storage = await opened(path)
    await storage.commit(batch(4, conversations=[conversation(1)], tasks=[task(2)], submissions=[submission(3)]))
    await storage.close()
    for table, columns in (("tasks", "id, conversation_id, owner, kind, status"), ("submissions", "id, conversation_id, request_id, status")):
        connection = apsw.Connection(str(path))
        [(*row, record)] = connection.execute(f"SELECT {columns}, record FROM {table}").fetchall()  # noqa: S608
        text = json.dumps(json.loads(str(record)) | {"colour": {"of": "later"}})
        connection.execute(f"UPDATE {table} SET record = ?, hash = ?", (text, row_hash(table, row, text.encode())))  # noqa: S608
        connection.close()
    storage = await opened(path)
    await storage.commit(batch(4, tasks=[task(2, state=Terminal(outcome=Failed(problem=Problem(reason="x"))))], submissions=[submission(3, digest="e")]))
    await storage.close()
    wanted = "SELECT record ->> '$.colour.of', record ->> '$.state.outcome.problem.reason', record ->> '$.digest' FROM {}"
    assert (shell(path, wanted.format("tasks")), shell(path, wanted.format("submissions"))) == ("later|x|null\n", "later|null|e\n")


# ------------------------------------------------------------------------------------------------------------- read only


@pytest.mark.rule("ST-11", "FA-13", "FA-14")
async def test_reading_a_closed_store_writes_nothing_and_leaves_nothing(path: Path):
    storage = await opened(path)
    await storage.commit(first_chat())
    expected = await dump(storage)
    await storage.close()
    before = contents(path.parent)
    assert set(before) == {"session.sqlite"}
    reader = await opened(path, read_only=True)
    assert (reader.read_only, await dump(reader), await reader.has_room()) == (True, expected, False)
    with pytest.raises(ReadOnlySession):
        await reader.commit(batch(4, entries=[entry(3)]))
    assert contents(path.parent) == before
    await reader.close()
    assert contents(path.parent) == before


@pytest.mark.rule("ST-11", "OB-6")
@pytest.mark.slow
async def test_a_reader_follows_a_writer_and_changes_no_byte(store: SqliteStorage, path: Path):
    await store.commit(first_chat())
    with child(path, "follow") as reader:
        for n in range(3, 8):
            await store.commit(batch(n + 1, entries=[entry(n)]))
            expected = repr(await dump(store))
            before = contents(path.parent)
            assert ask(reader) == expected
            assert contents(path.parent) == before
        reader.communicate("")
    assert contents(path.parent) == before


@pytest.mark.rule("ST-11", "OB-6")
async def test_a_reader_sees_what_writers_did_that_came_and_went(path: Path):
    storage = await opened(path)
    await storage.commit(first_chat())
    await storage.close()
    reader = await opened(path, read_only=True)
    seen = [await reader.metadata()]
    for n in range(3, 6):
        storage = await opened(path)
        await storage.commit(batch(n + 1, entries=[entry(n)]))
        seen.append(await reader.metadata())
        await storage.close()
        seen.append(await reader.metadata())
    assert [counters.next_seq for counters in seen] == [2, 3, 3, 4, 4, 5, 5]
    await reader.close()


@pytest.mark.rule("ST-11", "FA-13")
@pytest.mark.slow
async def test_reading_the_store_of_a_killed_process_recovers_nothing_on_disk(path: Path):
    with child(path, "commit") as process:
        for _ in range(20):
            line(process)
        kill(process)
    before = contents(path.parent)
    assert {"session.sqlite", "session.sqlite-wal", "session.sqlite-shm"} == set(before)
    reader = await opened(path, read_only=True)
    assert (await reader.metadata()).next_seq > 20
    await reader.close()
    assert contents(path.parent) == before
    (path.parent / "session.sqlite-shm").unlink()
    with pytest.raises(EnvironmentFailure, match="-shm"):
        await opened(path, read_only=True)
    storage = await opened(path)
    assert (await storage.metadata()).next_seq > 20
    await storage.close()


@pytest.mark.rule("ST-11")
async def test_reading_what_is_not_there_creates_nothing(tmp_path: Path):
    with pytest.raises(NotFound):
        await opened(tmp_path / "none" / "s.sqlite", read_only=True)
    (tmp_path / "empty.sqlite").touch()
    with pytest.raises(NotFound):
        await opened(tmp_path / "empty.sqlite", read_only=True)
    assert [item.name for item in tmp_path.iterdir()] == ["empty.sqlite"]


# --------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.rule("ST-13", "PR-16")
@pytest.mark.parametrize("read_only", [False, True])
async def test_a_newer_store_is_refused_untouched_with_both_versions_named(path: Path, read_only: bool):
    await (await opened(path)).close()
    spoil(path, "ALTER TABLE durable_metadata ADD COLUMN colour TEXT")
    spoil(path, "UPDATE durable_metadata SET schema_version = 7")
    before = contents(path.parent)
    with pytest.raises(SchemaTooNew, match="schema version 7; this program knows versions up to 1"):
        await opened(path, read_only=read_only)
    assert contents(path.parent) == before


@pytest.mark.rule("ST-13")
async def test_a_newer_store_of_a_killed_process_is_refused_untouched_too(path: Path):
    storage = await opened(path)
    await storage.commit(first_chat())
    shutil.copytree(path.parent, path.parent.with_name("killed"), ignore=shutil.ignore_patterns("*.lock"))
    await storage.close()
    killed = path.parent.with_name("killed") / path.name
    writer = apsw.Connection(str(killed))
    writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    writer.execute("UPDATE durable_metadata SET schema_version = 2")
    writer.close()
    before = contents(killed.parent)
    assert before["session.sqlite-wal"]
    with pytest.raises(SchemaTooNew):
        await opened(killed)
    assert contents(killed.parent) == before


@pytest.mark.rule("ST-15", "PR-15")
@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (b"this is not a session file, it is a letter to somebody else " * 100, "not a database"),
        (b"SQLite format 3\0" + b"\xff" * 5000, "not a database"),
    ],
)
async def test_a_file_that_is_no_store_is_refused_untouched(path: Path, damage: bytes, words: str, read_only: bool):
    path.parent.mkdir()
    path.write_bytes(damage)
    with pytest.raises(StoreCorrupt, match=words):
        await opened(path, read_only=read_only)
    assert contents(path.parent) == {"session.sqlite": damage}


@pytest.mark.rule("ST-15")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("PRAGMA application_id = 5", "another program"),
        ("DROP TABLE document_revisions", "the table document_revisions is missing"),
        ("DROP TABLE durable_metadata", "the table durable_metadata is missing"),
        ("DELETE FROM durable_metadata", "the counters are not there"),
        ("UPDATE durable_metadata SET next_id = 1", "durable_metadata: its checksum does not fit"),
        ("UPDATE durable_metadata SET schema_version = 0", "durable_metadata: its checksum does not fit"),
        ("ALTER TABLE durable_metadata RENAME COLUMN next_id TO other", "no such column"),
    ],
)
async def test_a_store_whose_frame_is_damaged_is_refused_untouched(path: Path, change: str, words: str):
    storage = await opened(path)
    await storage.commit(first_chat())
    await storage.close()
    spoil(path, change)
    before = contents(path.parent)
    for read_only in (False, True):
        with pytest.raises(StoreCorrupt, match=words):
            await opened(path, read_only=read_only)
    assert contents(path.parent) == before
    acquire(path, since_ms=0).release()


@pytest.mark.rule("ST-15", "PR-15")
@pytest.mark.parametrize(
    ("change", "where"),
    [
        ("UPDATE tasks SET record = replace(record, '\"n\":1', '\"n\":2')", "tasks 3"),
        ("UPDATE tasks SET status = 'terminal'", "tasks 3"),
        ("UPDATE tasks SET hash = zeroblob(16)", "tasks 3"),
        ("UPDATE tasks SET id = 9", "tasks 9"),
        ("UPDATE tasks SET record = CAST(x'80' AS TEXT)", "tasks 3"),
        ("UPDATE entries SET commit_seq = 2", "entries 2"),
        ("UPDATE entries SET record = replace(record, 'hello', 'hallo')", "entries 2"),
        ("UPDATE submissions SET request_id = 'other'", "submissions 4"),
        ("UPDATE conversations SET record = '{}'", "conversations 1"),
        ("UPDATE documents SET scope_id = 1, kind = 'test.notes', retired_seq = NULL, record = '{}'", "documents 5"),
        ("UPDATE document_revisions SET record = replace(record, 'x', 'y')", "document_revisions 5 1"),
        ("UPDATE document_revisions SET seq = 0", "document_revisions 5 0"),
    ],
)
async def test_a_changed_row_is_named_and_never_returned(path: Path, change: str, where: str):
    storage = await opened(path)
    await storage.commit(
        batch(6, conversations=[conversation(1)], entries=[entry(2)], tasks=[task(3)], submissions=[submission(4)], documents=[base(5, {"t": "x"})])
    )
    await storage.close()
    spoil(path, change)
    before = path.read_bytes()
    for options in ({"read_only": True}, {}):
        storage = await opened(path, **options)
        with pytest.raises(StoreCorrupt, match=f"{where}: "):
            await dump(storage)
        with pytest.raises(StoreCorrupt):
            await storage.verify()
        await storage.close()
    assert path.read_bytes() == before


@pytest.mark.rule("ST-15", "PR-15")
async def test_a_whole_store_is_found_sound_and_a_hidden_row_is_found_missing(path: Path):
    storage = await opened(path)
    await storage.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {})]))
    await storage.verify()
    await storage.close()
    data = path.read_bytes()
    assert data.count(b"conversationtest.notes") == 1  # the entry of the document in the index of live ones
    path.write_bytes(data.replace(b"conversationtest.notes", b"conversationtest.moter"))
    storage = await opened(path)
    assert await storage.document(address()) is None
    with pytest.raises(StoreCorrupt, match="documents_live"):
        await storage.verify()
    await storage.close()


@pytest.mark.rule("ST-15")
async def test_a_commit_that_builds_on_a_damaged_row_stores_nothing_and_stops_the_owner(path: Path):
    storage = await opened(path)
    await storage.commit(batch(3, conversations=[conversation(1)], tasks=[task(2)]))
    await storage.close()
    spoil(path, "UPDATE tasks SET kind = 'other'")
    storage = await opened(path)
    with pytest.raises(StoreCorrupt, match="tasks 2"):
        await storage.commit(batch(4, tasks=[task(2)], entries=[entry(3)]))
    assert ((await storage.metadata()).next_seq, await storage.entry(3)) == (2, None)
    with pytest.raises(SessionFailed):
        await storage.commit(batch(4, entries=[entry(3)]))
    await storage.close()


@pytest.mark.rule("ST-1", "ST-15")
@pytest.mark.parametrize("beginning", ["empty", "wal"])
async def test_a_creation_that_was_cut_off_is_finished_by_the_next_opening(path: Path, beginning: str):
    path.parent.mkdir()
    path.touch()
    if beginning == "wal":
        spoil(path, "PRAGMA journal_mode = WAL")
    storage = await opened(path)
    assert await storage.commit(first_chat()) == 1
    await storage.close()


@pytest.mark.rule("ST-6")
async def test_a_foreign_write_transaction_makes_a_commit_wait_and_then_be_refused(store: SqliteStorage, path: Path):
    await store.commit(first_chat())
    sql_of(store)._connection.set_busy_timeout(1)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageRejected) as caught:
        await store.commit(batch(4, entries=[entry(3)]))
    other.close()
    assert (caught.value.reason, await store.commit(batch(4, entries=[entry(3)]))) == ("busy", 2)


@pytest.mark.rule("ST-12", "PR-14")
async def test_an_owner_whose_lock_was_got_around_notices_before_it_writes(path: Path):
    first = await opened(path)
    await first.commit(first_chat())
    path.with_name("session.sqlite.lock").unlink()
    second = await opened(path)
    await second.commit(batch(4, entries=[entry(3)]))
    with pytest.raises(SessionFailed, match="another process wrote commit 2"):
        await first.commit(batch(4, entries=[entry(3, text="lost")]))
    assert await second.commit(batch(5, entries=[entry(4)])) == 3
    await first.close()
    await second.close()
    storage = await opened(path)
    assert [item.entry.id for item in (await storage.entries(1)).items] == [2, 3, 4]
    await storage.close()


@pytest.mark.rule("ST-12")
async def test_a_second_owner_is_refused_and_the_store_stays_with_the_first(store: SqliteStorage, path: Path):
    (path.parent / "link.sqlite").symlink_to(path)
    for name in ("session.sqlite", "link.sqlite"):
        with pytest.raises(StoreLocked, match=f"pid {os.getpid()}"):
            await opened(path.parent / name)
    assert await store.commit(first_chat()) == 1
