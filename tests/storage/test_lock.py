"""One writer per store: the lock beside it, between real processes."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path

import msgspec
import pytest

from pi_durable_tui.errors import EnvironmentFailure, StoreLocked
from pi_durable_tui.storage.lock import acquire, holder, lock_path
from tests.support.sometimes import happened
from tests.support.storage_process import child, kill, line

SINCE_MS = 1_700_000_000_000


def holder_of(store: Path) -> str:
    with pytest.raises(StoreLocked) as caught:
        acquire(store, since_ms=SINCE_MS)
    return str(caught.value)


@pytest.mark.rule("ST-12", "ST-14", "SA-16")
def test_the_lock_file_is_private_under_any_umask_and_says_who_holds_it(tmp_path: Path):
    before = os.umask(0)
    try:
        lock = acquire(tmp_path / "s.sqlite", since_ms=SINCE_MS)
    finally:
        os.umask(before)
    path = tmp_path / "s.sqlite.lock"
    text = json.loads(path.read_text())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (text["pid"], text["sinceMs"], set(text)) == (os.getpid(), SINCE_MS, {"pid", "host", "sinceMs", "bootId", "startTicks"})
    lock.release()


@pytest.mark.rule("ST-12")
def test_a_second_owner_is_refused_and_told_who_the_first_is(tmp_path: Path):
    store = tmp_path / "s.sqlite"
    lock = acquire(store, since_ms=SINCE_MS)
    assert f"pid {os.getpid()} on {os.uname().nodename}, since 2023-11-14 22:13 UTC" in holder_of(store)
    lock.release()
    lock.release()
    acquire(store, since_ms=SINCE_MS).release()


@pytest.mark.rule("ST-12", "PR-14")
def test_every_path_to_a_store_has_the_same_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = tmp_path / "data" / "s.sqlite"
    store.parent.mkdir()
    store.touch()
    (tmp_path / "file-link").symlink_to(store)
    (tmp_path / "folder-link").symlink_to(store.parent)
    monkeypatch.chdir(store.parent)
    lock = acquire(store, since_ms=SINCE_MS)
    for path in (tmp_path / "file-link", tmp_path / "folder-link" / "s.sqlite", Path("s.sqlite"), Path("../data/s.sqlite")):
        assert lock_path(path) == tmp_path / "data" / "s.sqlite.lock"
        assert "open in another process" in holder_of(path)
    lock.release()


@pytest.mark.rule("ST-12")
@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe", b'{"pid": "x"}', b'{"pid":1,"host":"h","sinceMs":99999999999999999999}', b"[1]", b"9" * 10_000])
def test_the_text_of_a_lock_file_decides_nothing(tmp_path: Path, text: bytes):
    store = tmp_path / "s.sqlite"
    (tmp_path / "s.sqlite.lock").write_bytes(text)
    lock = acquire(store, since_ms=SINCE_MS)  # nobody holds it, whatever it says
    (tmp_path / "s.sqlite.lock").write_bytes(text)
    assert "open in another process" in holder_of(store)  # somebody holds it, whatever it says
    lock.release()


@pytest.mark.rule("ST-12")
@pytest.mark.parametrize("change", [{"startTicks": 1}, {"bootId": "another"}])
def test_a_dead_holder_is_never_named_as_the_living_one(tmp_path: Path, change: dict[str, object]):
    store = tmp_path / "s.sqlite"
    lock = acquire(store, since_ms=SINCE_MS)
    path = lock_path(store)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert "it did not say which" in holder_of(store)
    lock.release()


@pytest.mark.rule("ST-12", "SA-16")
def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path):
    target = tmp_path / "target"
    (tmp_path / "s.sqlite.lock").symlink_to(target)
    with pytest.raises(EnvironmentFailure):
        acquire(tmp_path / "s.sqlite", since_ms=SINCE_MS)
    assert not target.exists()


@pytest.mark.rule("ST-12", "FB-34", "PR-14", "CASE-A3")
@pytest.mark.slow
def test_another_process_is_refused_until_the_holder_closes_or_dies(tmp_path: Path):
    store = tmp_path / "s.sqlite"
    with child(store, "hold") as first, child(store, "hold") as second:
        said = [line(first), line(second)]
        winner, loser = (first, second) if said[0] == "open" else (second, first)
        refused = said[1] if said[0] == "open" else said[0]
        assert f"pid {winner.pid} on " in refused
        loser.wait()
        assert "open in another process" in holder_of(store)
        kill(winner)
    with child(store, "try") as third:
        assert line(third) == "owner"
        happened("a lock taken over")
    with child(store, "hold") as fourth:
        assert line(fourth) == "open"
        assert fourth.communicate("")[0] == "closed\n"
    acquire(store, since_ms=SINCE_MS).release()


@pytest.mark.rule("ST-12", "PR-14")
@pytest.mark.slow
def test_of_many_starters_exactly_one_becomes_the_owner(tmp_path: Path):
    for turn in range(2):
        store = tmp_path / f"{turn}.sqlite"
        with contextlib.ExitStack() as stack:
            said = [line(process) for process in [stack.enter_context(child(store, "hold")) for _ in range(4)]]
        assert sorted(text == "open" for text in said) == [False, False, False, True]


@pytest.mark.rule("OB-6", "ST-12")
def test_the_holder_is_told_without_a_lock_until_he_lets_go_or_dies(tmp_path: Path):
    store = tmp_path / "s.sqlite"
    assert holder(store) is None
    assert not lock_path(store).exists()
    lock = acquire(store, since_ms=SINCE_MS)
    found = holder(store)
    assert found is not None
    assert (found.pid, found.since_ms) == (os.getpid(), SINCE_MS)
    lock.release()
    assert holder(store) is None
    dead = found.__class__(**{name: getattr(found, name) for name in found.__struct_fields__} | {"start_ticks": 1})
    lock_path(store).write_bytes(msgspec.json.encode(dead))
    assert holder(store) is None
