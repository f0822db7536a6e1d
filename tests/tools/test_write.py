"""The tool write, on real files."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pi_durable_tui.tools import files
from tests.support.tools_calls import Workplace, names_in, text_of


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_a_new_file_is_made_with_its_folders(work: Workplace):
    result = await work.call("write", path="a/b/c.txt", content="one\ntwo\n")
    path = work.folder / "a/b/c.txt"
    assert path.read_bytes() == b"one\ntwo\n"
    assert text_of(result) == f"Created {path} (+2 -0 lines, 8 bytes now)."
    assert result.details == {
        "path": str(path), "created": True, "diff": "@@ -0,0 +1,2 @@\n+one\n+two", "added": 2, "removed": 0, "diffCut": False
    }  # fmt: skip
    assert names_in(path.parent) == ["c.txt"]


@pytest.mark.rule("CASE-C5")
@pytest.mark.parametrize("umask", [0o022, 0o077])
async def test_a_new_file_follows_the_umask(work: Workplace, umask: int):
    before = os.umask(umask)
    try:
        await work.call("write", path="new.txt", content="x")
    finally:
        os.umask(before)
    assert mode(work.folder / "new.txt") == 0o666 & ~umask


@pytest.mark.rule("CASE-C6")
async def test_a_file_never_read_is_not_overwritten(work: Workplace):
    path = work.folder / "f"
    path.write_text("the user's\n")
    result = await work.call("write", path="f", content="mine\n")
    assert result.is_error
    assert text_of(result) == f"{path} exists and was not read yet. Nothing was written. Read it first, or change a part of it with edit."
    assert path.read_text() == "the user's\n"


@pytest.mark.rule("CASE-C6")
async def test_a_change_by_someone_else_since_the_read_is_not_overwritten(work: Workplace):
    path = work.folder / "f"
    path.write_text("aaaa\n")
    await work.call("read", path="f")
    times = path.stat()
    path.write_text("bbbb\n")  # the same size, and the time put back
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    result = await work.call("write", path="f", content="mine\n")
    assert "has changed since it was read" in text_of(result)
    assert path.read_text() == "bbbb\n"


@pytest.mark.rule("CASE-C6")
async def test_own_changes_do_not_stand_in_the_way(work: Workplace):
    path = work.folder / "f"
    path.write_text("one\n")
    await work.call("read", path="f")
    results = [
        await work.call("write", path="f", content="two\n"),
        await work.call("edit", path="f", edits=[{"old": "two", "new": "three"}]),
        await work.call("write", path="f", content="four\n"),
    ]
    assert [result.is_error for result in results] == [False, False, False]
    assert path.read_text() == "four\n"


@pytest.mark.rule("CASE-C6")
async def test_an_edit_of_a_changed_file_does_not_make_it_known(work: Workplace):
    path = work.folder / "f"
    path.write_text("one\n")
    await work.call("read", path="f")
    path.write_text("one\nthe user's line\n")
    assert not (await work.call("edit", path="f", edits=[{"old": "one", "new": "1"}])).is_error
    assert (await work.call("write", path="f", content="1\n")).is_error
    assert path.read_text() == "1\nthe user's line\n"


@pytest.mark.rule("CASE-C6")
async def test_after_a_restart_a_file_counts_as_unread(work: Workplace, tmp_path: Path):
    (work.folder / "f").write_text("one\n")
    await work.call("read", path="f")
    assert (await Workplace(tmp_path).call("write", path="f", content="x")).is_error


async def test_an_empty_file_may_be_filled_unread(work: Workplace):
    (work.folder / "f").touch()
    assert text_of(await work.call("write", path="f", content="x\n")) == f"Wrote {work.folder}/f (+1 -0 lines, 2 bytes now)."


@pytest.mark.rule("CASE-C5")
@pytest.mark.parametrize("bits", [0o755, 0o640, 0o2755, 0o600])
@pytest.mark.parametrize("umask", [0o022, 0o077])
async def test_the_mode_of_a_file_is_kept(work: Workplace, bits: int, umask: int):
    path = work.folder / "run.sh"
    path.write_text("old\n")
    path.chmod(bits)
    before = os.umask(umask)
    try:
        await work.call("read", path="run.sh")
        await work.call("write", path="run.sh", content="new\n")
        await work.call("edit", path="run.sh", edits=[{"old": "new", "new": "newer"}])
    finally:
        os.umask(before)
    assert (path.read_text(), mode(path)) == ("newer\n", bits)
    assert names_in(work.folder) == ["run.sh"]


@pytest.mark.rule("CASE-C5")
async def test_the_owner_of_a_file_is_kept_where_allowed(work: Workplace):
    path = work.folder / "f"
    path.write_text("old\n")
    if os.getuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(path, 12_345, 12_345)
    await work.call("edit", path="f", edits=[{"old": "old", "new": "new"}])
    assert (path.read_text(), path.stat().st_uid, path.stat().st_gid) == ("new\n", 12_345, 12_345)


@pytest.mark.rule("CASE-C5")
async def test_attributes_are_kept(work: Workplace):
    path = work.folder / "f"
    path.write_text("old\n")
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no attributes")
    await work.call("edit", path="f", edits=[{"old": "old", "new": "new"}])
    assert (path.read_text(), os.getxattr(path, "user.note")) == ("new\n", b"kept")


@pytest.mark.rule("CASE-C5")
async def test_a_hard_linked_file_has_the_new_text_under_both_names(work: Workplace):
    (work.folder / "one").write_text("a longer old text\n")
    (work.folder / "two").hardlink_to(work.folder / "one")
    await work.call("edit", path="one", edits=[{"old": "a longer old text", "new": "new"}])
    assert ((work.folder / "one").read_text(), (work.folder / "two").read_text()) == ("new\n", "new\n")
    assert (work.folder / "one").stat().st_ino == (work.folder / "two").stat().st_ino


async def test_a_link_stays_a_link_and_its_target_is_written(work: Workplace):
    (work.folder / "real").mkdir()
    (work.folder / "real/f").write_text("old\n")
    (work.folder / "link").symlink_to("real/f")
    await work.call("edit", path="link", edits=[{"old": "old", "new": "new"}])
    assert (work.folder / "link").is_symlink()
    assert (work.folder / "real/f").read_text() == "new\n"


def as_nobody(act: Callable[[], object]) -> bool:
    """Do it in a process without root's rights; whether it was done."""
    pid = os.fork()
    if pid == 0:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setresgid(54_321, 54_321, 54_321)
                os.setresuid(54_321, 54_321, 54_321)
            act()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.rule("CASE-C5")
def test_a_file_is_written_in_place_where_no_other_may_be_made():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:  # a folder of its own, into which everybody may go
        folder = Path(place)
        path = folder / "f"
        path.write_bytes(b"old")
        path.chmod(0o666)
        folder.chmod(0o555)
        before = path.stat()
        try:
            is_done = as_nobody(lambda: files.replace(str(path), b"newer", expected=files.digest(b"old"), token="t"))
        finally:
            folder.chmod(0o755)
        after = path.stat()
        assert (is_done, path.read_bytes(), names_in(folder)) == (True, b"newer", ["f"])
        assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)


@pytest.mark.rule("CASE-C6")
async def test_of_two_agents_that_know_a_file_the_slower_one_does_not_overwrite_the_other(work: Workplace, tmp_path: Path):
    path = work.folder / "f"
    path.write_text("one\n")
    other = Workplace(tmp_path)  # a subagent has an environment of its own
    for each in (work, other):
        await each.call("read", path="f")
    assert not (await work.call("write", path="f", content="from the first\n")).is_error
    refused = await other.call("write", path="f", content="from the second\n")
    assert refused.is_error
    assert "has changed since it was read" in text_of(refused)
    assert path.read_text() == "from the first\n"


@pytest.mark.rule("CASE-C1")
async def test_mark_and_windows_endings_of_the_old_file_are_kept(work: Workplace):
    path = work.folder / "w.txt"
    path.write_bytes(b"\xef\xbb\xbfalpha\r\nbeta\r\n")
    await work.call("read", path="w.txt")
    result = await work.call("write", path="w.txt", content="alpha\ngamma\n")
    assert path.read_bytes() == b"\xef\xbb\xbfalpha\r\ngamma\r\n"
    assert "Kept its Windows line endings and byte order mark." in text_of(result)


@pytest.mark.rule("CASE-B10")
async def test_half_a_surrogate_pair_is_written_as_a_replacement_character(work: Workplace):
    await work.call("write", path="f\ud83d.txt", content="x\ud83d\n")
    assert (work.folder / "f\ufffd.txt").read_text(encoding="utf-8") == "x\ufffd\n"


@pytest.mark.rule("CASE-C5")
async def test_a_file_is_replaced_where_files_without_a_name_are_not_known(work: Workplace, monkeypatch: pytest.MonkeyPatch):
    def unsupported(*_arguments: object, **_options: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", unsupported)
    path = work.folder / "run.sh"
    path.write_text("old\n")
    path.chmod(0o750)
    await work.call("edit", path="run.sh", edits=[{"old": "old", "new": "new"}])
    assert (path.read_text(), mode(path), names_in(work.folder)) == ("new\n", 0o750, ["run.sh"])


async def test_odd_targets_are_refused_and_nothing_is_left(work: Workplace):
    os.mkfifo(work.folder / "pipe")
    (work.folder / "dir").mkdir()
    results = [await work.call("write", path=path, content="x") for path in ("pipe", "dir", "pipe/below", "a\0b")]
    assert [result.is_error for result in results] == [True] * 4
    assert text_of(results[2]) == f"{work.folder}/pipe/below: Not a directory."
    assert names_in(work.folder) == ["dir", "pipe"]


@pytest.mark.rule("TO-8")
async def test_the_intent_names_the_file_and_both_contents(work: Workplace):
    prepared = await work.prepare("write", path="f", content="new\n")
    assert prepared == {"path": f"{work.folder}/f", "before": None, "after": "7aa7a5359173d05b63cfd682e3c38487f3cb4f7f1d60659fe59fab1505977d4c"}


@pytest.mark.rule("TO-8")
async def test_a_change_between_intent_and_execution_is_not_overwritten(work: Workplace):
    prepared = await work.prepare("write", path="f", content="new\n")
    (work.folder / "f").write_text("someone else's\n")
    result = await work.execute("write", prepared, path="f", content="new\n")
    assert "was changed by someone else before this call could begin" in text_of(result)
    assert (work.folder / "f").read_text() == "someone else's\n"


async def test_a_preview_shows_the_difference_and_writes_nothing(work: Workplace):
    (work.folder / "f").write_text("old\n")
    await work.call("read", path="f")
    tool = work.tools["write"]
    assert tool.preview is not None
    preview = await tool.preview(tool.arguments(path="f", content="new\n"), work.context())
    assert preview["diff"] == "@@ -1,1 +1,1 @@\n-old\n+new"
    assert (work.folder / "f").read_text() == "old\n"


def test_the_title_names_the_file_and_its_length(work: Workplace):
    tool = work.tools["write"]
    assert tool.title(tool.arguments(path="a.py", content="one\ntwo")) == "write a.py (2 lines)"
