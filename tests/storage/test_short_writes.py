"""Wherever a file of ours is written: a write that the system cuts short is noticed, and nothing of it stays (ST-18).

The system itself writes short: the process may make no file longer than a few bytes. Stores are in test_jsonl_faults and test_sqlite_crash.
"""

from __future__ import annotations

import contextlib
import hashlib
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pi_durable_tui.cli.paths import write_setting_file, write_whole
from pi_durable_tui.clock import ManualClock
from pi_durable_tui.context.files import write_private
from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.playback.folder import append_line, save
from pi_durable_tui.storage.files import RealFiles
from pi_durable_tui.storage.lock import acquire, holder
from pi_durable_tui.tools.environment import LocalEnvironment
from pi_durable_tui.tools.files import replace
from pi_durable_tui.tools.history.contents import Contents
from pi_durable_tui.tools.output import OutputCollector

BEFORE = b"before"
LONG = b"much more than fits"
MOST_BYTES = 10


@contextlib.contextmanager
def no_file_longer_than(size_bytes: int) -> Iterator[None]:
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def all_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


WRITERS: dict[str, Callable[[Path], object]] = {
    "an append to a store": lambda path: RealFiles().append(path, LONG),
    "a settings file": lambda path: write_setting_file(path, LONG),
    "a file of the data folder": lambda path: write_whole(path, LONG),
    "a private file": lambda path: write_private(path, LONG),
    "a line of a log": lambda path: append_line(path, LONG.decode()),
    "a file that the agent changes": lambda path: replace(str(path), LONG, expected=hashlib.sha256(BEFORE).hexdigest(), token="t"),
    "a new story": lambda path: save(path.with_name("story"), {"session.toml": LONG.decode()}, {}),
}


@pytest.mark.rule("ST-18")
@pytest.mark.parametrize("name", WRITERS)
def test_a_short_write_leaves_what_was_there_and_nothing_beside_it(tmp_path: Path, name: str):
    path = tmp_path / "file"
    path.write_bytes(BEFORE)
    with no_file_longer_than(MOST_BYTES), pytest.raises((OSError, EnvironmentFailure)):
        WRITERS[name](path)
    assert all_in(tmp_path) == {"file": BEFORE}
    with contextlib.suppress(FileExistsError):
        WRITERS[name](path)  # and once there is room it works
    assert LONG in b"".join(all_in(tmp_path).values())


@pytest.mark.rule("ST-18")
def test_a_kept_content_is_whole_or_not_kept(tmp_path: Path):
    kept = Contents(tmp_path / "contents")
    with no_file_longer_than(MOST_BYTES):
        assert kept.keep(LONG) is None
    assert all_in(tmp_path) == {}
    name = kept.keep(LONG)
    assert name is not None
    assert kept.get(name) == LONG


@pytest.mark.rule("ST-18", "ST-12")
def test_a_lock_whose_name_cannot_be_written_is_a_lock_without_a_name(tmp_path: Path):
    store = tmp_path / "session.sqlite"
    with no_file_longer_than(MOST_BYTES):
        lock = acquire(store, since_ms=1)
    assert (all_in(tmp_path), holder(store)) == ({"session.sqlite.lock": b""}, None)
    lock.release()


@pytest.mark.rule("ST-18", "TO-4")
def test_output_that_cannot_be_kept_is_told_and_what_is_in_its_file_is_its_beginning(tmp_path: Path):
    clock = ManualClock()
    collector = OutputCollector(LocalEnvironment(str(tmp_path), tmp_path / "state", clock), "call", lambda _text: None, clock)
    output = b"".join(b"line %d\n" % number for number in range(20_000))
    with no_file_longer_than(MOST_BYTES):
        collector.add(output)
        collected = collector.finish()
    (said,) = collected.diagnostics
    assert "The rest could not be kept: File too large." in said.message
    assert output.startswith(b"".join(all_in(tmp_path).values()))
