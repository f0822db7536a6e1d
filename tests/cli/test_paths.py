"""Where data lives: CL-1, CL-3, CL-4, SA-16 and CASE-H1 (every pair of directories has stores of its own)."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from pathlib import Path

import pytest

from pi_durable_tui.cli import paths
from pi_durable_tui.errors import BadRequest, ConfigError, Refused


def _make(parent: Path, name: bytes) -> Path:
    directory = parent / os.fsdecode(name)
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@pytest.mark.rule("CL-1", "CASE-H1")
def test_the_folder_is_named_by_the_hash_of_the_real_path(tmp_path: Path) -> None:
    where = paths.place(str(tmp_path), Path("/data"))
    digest = hashlib.sha256(os.fsencode(os.path.realpath(tmp_path))).hexdigest()
    assert (where.directory, where.folder) == (tmp_path.resolve(), Path("/data") / digest[:24])


@pytest.mark.rule("CL-1", "CASE-H1")
def test_no_two_directories_share_a_folder_whatever_their_names(tmp_path: Path) -> None:
    names = [b"a/b", b"a-b", b"x_y", b"x-y", b"x.y", "日本".encode(), "中国".encode(), b"A", b"a", b"line\nbreak", b"%2F", b"n" * 250, b"bytes\xff", b"-c"]
    names += [unicodedata.normalize(form, "é").encode() for form in ("NFC", "NFD")]
    places = [paths.place(str(_make(tmp_path, name)), tmp_path / "data") for name in names]
    for where in places:
        paths.prepare(where)
    assert len({where.folder for where in places}) == len(names)
    assert [where.cwd_file.read_bytes() for where in places] == [os.fsencode(where.directory) for where in places]


@pytest.mark.rule("CL-1", "CASE-H1")
def test_a_symlink_a_trailing_slash_and_the_real_path_are_one_directory(tmp_path: Path) -> None:
    real = _make(tmp_path, b"real")
    (tmp_path / "link").symlink_to(real)
    spelled = [str(real), f"{real}/", f"{real}/../real", str(tmp_path / "link")]
    assert len({paths.place(item, tmp_path).folder for item in spelled}) == 1


@pytest.mark.rule("CL-1")
def test_a_folder_of_another_directory_is_refused_and_left_alone(tmp_path: Path) -> None:
    where = paths.place(str(_make(tmp_path, b"mine")), tmp_path / "data")
    paths.prepare(where)
    where.cwd_file.write_bytes(b"/somewhere/else")
    with pytest.raises(Refused, match="holds the sessions of '/somewhere/else'"):
        paths.prepare(where)
    with pytest.raises(Refused):
        paths.session_numbers(where)
    assert where.cwd_file.read_bytes() == b"/somewhere/else"


@pytest.mark.rule("CL-1")
def test_a_moved_directory_is_noticed_by_its_name(tmp_path: Path) -> None:
    old = paths.place(str(_make(tmp_path, b"old/project")), tmp_path / "data")
    paths.prepare(old)
    (tmp_path / "new").mkdir()
    old.directory.rename(tmp_path / "new" / "project")
    new = paths.place(str(tmp_path / "new" / "project"), tmp_path / "data")
    assert (paths.session_numbers(new), paths.moved_from(new)) == ((), (old.directory,))


@pytest.mark.rule("SA-16")
def test_folders_and_files_are_private_under_any_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        where = paths.place(str(tmp_path), tmp_path / "deep" / "data")
        paths.prepare(where)
    finally:
        os.umask(before)
    modes = [oct(item.stat().st_mode & 0o777) for item in (where.folder, where.folder.parent, where.cwd_file)]
    assert modes == ["0o700", "0o700", "0o600"]


@pytest.mark.rule("CL-3")
def test_sessions_are_found_by_number_and_other_files_are_not(tmp_path: Path) -> None:
    where = paths.place(str(tmp_path), tmp_path / "data")
    paths.prepare(where)
    for name in ("session-10.sqlite", "session.sqlite", "session-2.sqlite", "session-2.sqlite-wal", "session-02.sqlite", "session.sqlite.lock", "other.sqlite"):
        (where.folder / name).touch()
    assert paths.session_numbers(where) == (1, 2, 10)
    assert [paths.session_path(where, number, "sqlite").name for number in (1, 2, 10)] == ["session.sqlite", "session-2.sqlite", "session-10.sqlite"]


@pytest.mark.rule("CL-3")
def test_a_session_may_be_a_folder_of_lines_or_for_a_moment_both(tmp_path: Path) -> None:
    where = paths.place(str(tmp_path), tmp_path / "data")
    paths.prepare(where)
    for name in ("session.jsonl", "session-3.jsonl", "session-3.jsonl.converted-1", "session-4.jsonl.new"):
        (where.folder / name).mkdir()
    (where.folder / "session-3.sqlite").touch()
    assert paths.session_numbers(where) == (1, 3)
    assert [paths.session_kinds(where, number) for number in (1, 2, 3)] == [("jsonl",), (), ("sqlite", "jsonl")]
    assert paths.session_path(where, 3, "jsonl").name == "session-3.jsonl"


@pytest.mark.rule("CL-3")
def test_a_directory_that_was_never_used_has_no_sessions_and_nothing_is_made(tmp_path: Path) -> None:
    where = paths.place(str(tmp_path), tmp_path / "data")
    assert paths.session_numbers(where) == ()
    assert not (tmp_path / "data").exists()


@pytest.mark.rule("CL-4")
def test_environment_variables_move_data_and_settings() -> None:
    found = paths.folders({"PIDURABLE_DATA_DIR": "/d", "PIDURABLE_CONFIG_DIR": "/c"})
    assert found == paths.Folders(data=Path("/d"), config=Path("/c"))


@pytest.mark.rule("CL-4")
def test_a_relative_data_folder_is_refused_since_it_would_differ_per_directory() -> None:
    with pytest.raises(ConfigError, match="PIDURABLE_DATA_DIR is 'data'"):
        paths.folders({"PIDURABLE_DATA_DIR": "data"})


@pytest.mark.parametrize("name", ["missing", "a file", "null\0byte"])
def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "a file").touch()
    with pytest.raises(BadRequest, match="Nothing was started"):
        paths.place(str(tmp_path / name), tmp_path)


def test_a_pipe_in_the_place_of_the_settings_does_not_hang_the_start(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "settings.json")
    with pytest.raises(ConfigError, match="not a regular file"):
        paths.read_text(tmp_path / "settings.json", limit_bytes=10)


def test_settings_that_are_too_long_or_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"x" * 11)
    (tmp_path / "bytes").write_bytes(b"\xff")
    for name, words in (("long", "longer than 10 bytes"), ("bytes", "not UTF-8")):
        with pytest.raises(ConfigError, match=words):
            paths.read_text(tmp_path / name, limit_bytes=10)
    assert paths.read_text(tmp_path / "missing", limit_bytes=10) is None
