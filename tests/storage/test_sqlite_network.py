"""On a network file system there is no log: a session file is kept there with a rollback journal, and survives what it survives elsewhere.

The kind of the file system is an injected answer; the files are on a disk.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import EnvironmentFailure, StorageRejected
from pi_durable_tui.storage.files import Mount, RealFiles, is_remote, mount_of
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.sqlite import SqliteStorage, open_sqlite
from pi_durable_tui.storage.sqlite.opening import journal_words
from tests.storage.test_sqlite_crash import close_anyhow, failure_of
from tests.storage.test_sqlite_power import found_in, lived
from tests.support.storage_faults import FaultyDisk
from tests.support.storage_histories import History
from tests.support.storage_journal import contents
from tests.support.storage_power_sqlite import RecordingDisk, WrittenDisk
from tests.support.storage_records import batch, dump, entry, first_chat

IMAGES_PER_OPERATION = int(os.environ.get("PIDURABLE_TEST_IMAGES", "1"))
EXTRA = 3


class FilesElsewhere(RealFiles):
    """Files on a network file system, by what the system says."""

    def file_system(self, folder: Path) -> str | None:
        return "nfs4"


async def opened(path: Path, *, is_remote: bool = True, **options: Any) -> SqliteStorage:
    return await open_sqlite(path, clock=ManualClock(), inline=True, files=FilesElsewhere() if is_remote else None, **options)


def names(folder: Path) -> set[str]:
    return {item.name for item in folder.iterdir()}


def mode_of(storage: SqliteStorage) -> tuple[object, object]:
    sql: Any = storage._source.sql  # type: ignore[attr-defined]
    return sql.pragma("journal_mode"), sql.pragma("synchronous")


@pytest.mark.rule("PR-4", "ST-1", "ST-6", "ST-12")
async def test_a_file_on_a_network_file_system_has_no_log_and_every_commit_is_flushed_with_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "session.sqlite"
    storage = await opened(path)
    assert storage.notices == (journal_words(path, "nfs4"),)
    assert mode_of(storage) == ("delete", EXTRA)
    await storage.commit(first_chat())
    await storage.commit(batch(4, entries=[entry(3)], priority="partial"))
    assert mode_of(storage) == ("delete", EXTRA)
    assert names(tmp_path) == {"session.sqlite", "session.sqlite.lock", "session.sqlite.reserve"}
    await storage.close()
    again = await opened(path)
    assert again.notices == ()
    assert (await again.metadata()).next_seq == 3
    await again.close()


@pytest.mark.rule("PR-4", "ST-11")
async def test_a_session_that_is_moved_to_a_network_file_system_and_back_is_kept_as_fits_each(tmp_path: Path) -> None:
    path = tmp_path / "session.sqlite"
    for turn, is_remote_now in enumerate((False, True, False, True), 1):
        storage = await opened(path, is_remote=is_remote_now)
        assert mode_of(storage)[0] == ("delete" if is_remote_now else "wal")
        assert storage.notices == ((journal_words(path, "nfs4"),) if is_remote_now else ())
        await storage.commit(first_chat() if turn == 1 else batch(turn + 2, entries=[entry(turn + 1)]))
        await storage.close()
        before = contents(tmp_path)
        reader = await opened(path, is_remote=is_remote_now, read_only=True)
        assert len((await reader.entries(1)).items) == turn
        await reader.close()
        assert contents(tmp_path) == before


@pytest.mark.rule("OB-6", "ST-11")
async def test_a_reader_follows_a_writer_on_a_network_file_system_and_keeps_it_from_committing_only_while_it_reads(tmp_path: Path) -> None:
    path = tmp_path / "session.sqlite"
    storage = await opened(path)
    await storage.commit(first_chat())
    reader = await opened(path, read_only=True)
    for number in range(3, 8):
        await storage.commit(batch(number + 1, entries=[entry(number)]))
        assert len((await reader.entries(1)).items) == number - 1
        assert names(tmp_path) == {"session.sqlite", "session.sqlite.lock", "session.sqlite.reserve"}
    reading: Any = reader._source._sql  # type: ignore[attr-defined]
    writing: Any = storage._source.sql  # type: ignore[attr-defined]
    writing._connection.set_busy_timeout(1)
    reading.run("BEGIN")
    reading.rows("SELECT id FROM entries")
    with pytest.raises(StorageRejected, match="Another program is reading the session file"):
        await storage.commit(batch(9, entries=[entry(8)]))
    reading.run("ROLLBACK")
    await storage.commit(batch(9, entries=[entry(8)]))
    await reader.close()
    await storage.close()


@pytest.mark.slow
@pytest.mark.rule("ST-1", "PR-1", "PR-13", "ST-15")
@pytest.mark.parametrize("moment", ["before", "short", "after"])
async def test_a_commit_that_is_cut_off_anywhere_is_taken_back_by_the_next_owner_and_called_no_damage(tmp_path: Path, moment: Any) -> None:
    disk = FaultyDisk(f"elsewhere-{moment}")
    asked, states, cut_off = batch(4, entries=[entry(3, text="z" * 10_000)]), set[str](), 0
    try:
        for operation in range(1, 60):
            path = tmp_path / str(operation) / "session.sqlite"
            storage = await opened(path)
            await storage.commit(first_chat())
            before = await dump(storage)
            await storage.close()
            storage = await opened(path, vfs=disk.vfs_name)
            disk.fault.arm(operation, moment, "io", for_good=True)
            error = await failure_of(storage, asked)
            happened = disk.fault.happened
            await close_anyhow(storage)
            disk.fault.disarm()
            if path.with_name("session.sqlite-journal").exists():
                cut_off += 1
                with_journal = contents(path.parent)
                with pytest.raises(EnvironmentFailure):
                    await opened(path, read_only=True)
                assert contents(path.parent) == with_journal
            storage = await opened(path)
            found = await dump(storage)
            await storage.verify()
            await storage.close()
            assert found == before or len(found["entries"][1]) == 2
            assert found != before or error is not None, "an acknowledged commit is lost"
            states.add("before" if found == before else "after")
            if not happened:
                break
    finally:
        disk.unregister()
    assert (states, cut_off > 3) == ({"before", "after"}, True)


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Path]:
    """A folder for images; in memory where the machine has such a place, for flushes cost nothing there."""
    memory = Path("/dev/shm")  # noqa: S108 - a private folder is made in it
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        yield Path(folder)


@pytest.fixture
def disk() -> Iterator[RecordingDisk]:
    recording = RecordingDisk("recording-elsewhere")
    recording.files.file_system = lambda _folder: "nfs4"  # type: ignore[method-assign]
    yield recording
    recording.unregister()


@pytest.mark.rule("PR-4", "ST-1", "ST-6")
@pytest.mark.slow
async def test_every_image_of_a_power_cut_over_a_journal_is_the_store_after_some_commit_and_none_acknowledged_is_missing(
    tmp_path: Path, shelf: Path, disk: RecordingDisk, record_property: Callable[[str, object], None]
) -> None:
    folder = tmp_path / "recorded"
    folder.mkdir()
    states = await lived(folder, disk, History(7), synchronous="full", commits=10)
    written, draw, seen = WrittenDisk(), random.Random(7), set[int]()
    for operation in disk.files.operations:
        written.do(operation)
        for image in written.images(draw, IMAGES_PER_OPERATION):
            key = hash((written.acknowledged, tuple(sorted(image.items()))))
            if key in seen:
                continue
            seen.add(key)
            found = await found_in(image, shelf, draw)
            seq = found.counters.next_seq - 1
            assert found == states[seq], f"a state that never was, at commit {seq}"
            assert seq >= written.told, f"commit {written.told} was acknowledged, {seq} is the newest found"
    record_property("told", f"{len(seen)} different images of power cuts under SQLite with a journal")
    assert len(seen) > 200


MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /srv rw shared:7 master:2 - btrfs /dev/vdb rw,subvol=/home
41 22 0:50 / /mnt/my\\040files rw - nfs4 server:/files rw
42 41 0:51 / /mnt/my\\040files/near rw - tmpfs none rw
43 22 0:52 / /over rw - ext4 /dev/vdc rw
44 22 0:53 / /over rw - fuse.sshfs user@server: rw
odd line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/srvwork", "ext4"),
        ("/srv/somebody", "btrfs"),
        ("/mnt/my files", "nfs4"),
        ("/mnt/my files/a", "nfs4"),
        ("/mnt/my files/near/a", "tmpfs"),
        ("/over/a", "fuse.sshfs"),
    ],
)
def test_the_kind_of_a_file_system_is_that_of_the_nearest_and_latest_mount_above_it(path: str, kind: str) -> None:
    found = mount_of(MOUNTS, path)
    assert found is not None
    assert found.kind == kind
    assert mount_of("", path) is None


def test_the_options_of_a_mount_are_those_of_the_mount_and_of_the_file_system() -> None:
    assert mount_of(MOUNTS, "/srv") == Mount("btrfs", frozenset({"rw", "subvol=/home"}))


def test_what_another_machine_or_a_program_has_a_hand_in_counts_as_a_network() -> None:
    assert [kind for kind in ("nfs", "nfs4", "cifs", "9p", "fuse.sshfs", "fuse", "ceph") if not is_remote(kind)] == []
    assert [kind for kind in ("ext4", "btrfs", "fuseblk", "overlay", "tmpfs", None) if is_remote(kind)] == []


@pytest.mark.skipif(not Path("/proc/self/mountinfo").exists(), reason="this system does not tell")
def test_the_file_system_is_that_of_the_folder() -> None:
    assert RealFiles().file_system(Path("/proc")) == "proc"


async def test_a_folder_of_lines_is_kept_there_as_anywhere(tmp_path: Path) -> None:
    storage = await open_jsonl(tmp_path / "session.jsonl", clock=ManualClock(), inline=True, files=FilesElsewhere())
    assert await storage.commit(first_chat()) == 1
    await storage.close()
