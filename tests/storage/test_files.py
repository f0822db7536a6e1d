"""The door for files: private, synced, counted."""

from __future__ import annotations

import os
import resource
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pi_durable_tui.storage.files import RealFiles


@pytest.fixture(params=[0o000, 0o077, 0o777])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.rule("ST-14", "SA-16")
def test_files_and_folders_are_private_under_any_umask(tmp_path: Path, umask: int):
    files, folder = RealFiles(), tmp_path / "a" / "b"
    files.create_folder(folder)
    files.create(folder / "file")
    files.reserve(folder / "reserve", 4096)
    assert [mode(path) for path in (tmp_path / "a", folder, folder / "file", folder / "reserve")] == [0o700, 0o700, 0o600, 0o600]


@pytest.mark.rule("ST-14")
def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path):
    tmp_path.chmod(0o755)
    RealFiles().create_folder(tmp_path / "new")
    RealFiles().create_folder(tmp_path)
    assert (mode(tmp_path), mode(tmp_path / "new")) == (0o755, 0o700)


def test_creating_what_exists_is_refused_and_leaves_it_alone(tmp_path: Path):
    files, path = RealFiles(), tmp_path / "file"
    path.write_bytes(b"kept")
    for attempt in (lambda: files.create(path), lambda: files.reserve(path, 10)):
        with pytest.raises(FileExistsError):
            attempt()
    assert files.read(path) == b"kept"


def test_appended_bytes_stand_at_the_end(tmp_path: Path):
    files, path = RealFiles(), tmp_path / "file"
    assert files.size_bytes(path) is None
    files.create(path)
    files.append(path, b"one\n")
    files.append(path, b"two\n")
    files.sync(path)
    files.sync_folder(tmp_path)
    assert (files.read(path), files.size_bytes(path)) == (b"one\ntwo\n", 8)
    files.remove(path)
    files.remove(path)
    assert files.size_bytes(path) is None


@pytest.mark.rule("ST-18")
def test_a_short_write_is_an_error_and_is_cut_back(tmp_path: Path):
    files, path = RealFiles(), tmp_path / "file"
    files.create(path)
    files.append(path, b"before")
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))  # the system itself writes short
    try:
        with pytest.raises(OSError, match="only 4 of 8 bytes"):
            files.append(path, b"12345678")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert files.read(path) == b"before"


def test_a_reserve_takes_real_blocks_or_leaves_no_file(tmp_path: Path):
    files, path = RealFiles(), tmp_path / "reserve"
    files.reserve(path, 1 << 20)
    assert path.stat().st_blocks * 512 >= 1 << 20
    with pytest.raises(OSError, match=r"too large|No space"):
        files.reserve(tmp_path / "huge", 1 << 60)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["reserve"]


def test_free_space_is_told(tmp_path: Path):
    disk = os.statvfs(tmp_path)
    assert 0 < RealFiles().free_bytes(tmp_path) <= disk.f_blocks * disk.f_frsize
