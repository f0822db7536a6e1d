"""The tool edit, on real files."""

from __future__ import annotations

import os

import pytest

from tests.support.tools_calls import Workplace, text_of

BOM = b"\xef\xbb\xbf"


async def edit(work: Workplace, content: bytes, *edits: tuple[str, str], replace_all: bool = False) -> tuple[bytes, str, bool]:
    """The file's bytes after the edits, what was said, and whether it was an error."""
    path = work.folder / "f"
    path.write_bytes(content)
    result = await work.call("edit", path="f", edits=[{"old": old, "new": new, "replace_all": replace_all} for old, new in edits])
    return path.read_bytes(), text_of(result), result.is_error


@pytest.mark.rule("CASE-C1")
@pytest.mark.parametrize("replace_all", [False, True])
async def test_only_the_named_bytes_of_a_windows_file_change(work: Workplace, replace_all: bool):
    after, _, failed = await edit(work, BOM + b"alpha\r\nbeta\r\ngamma", ("alpha\nbeta", "ALPHA\nBETA"), replace_all=replace_all)
    assert (after, failed) == (BOM + b"ALPHA\r\nBETA\r\ngamma", False)


@pytest.mark.rule("CASE-C1")
@pytest.mark.parametrize(
    ("content", "change", "expected"),
    [
        (b"a\r\nb\nc\r\n", ("b", "B"), b"a\r\nB\nc\r\n"),
        (b"a\r\nb\nc\r\n", ("b\n", "b\nx\n"), b"a\r\nb\nx\r\nc\r\n"),
        (b"a\r\nb\nc\r\n", ("a\nb\nc\n", "a\nB\nc\n"), b"a\r\nB\nc\r\n"),
        (b"one\rtwo\rthree", ("one\ntwo", "1\n2"), b"1\r2\rthree"),
        (b"a\r\nb\r\n", ("a\r\nb", "a\r\nc"), b"a\r\nc\r\n"),
        ("käse\n".encode("utf-16"), ("käse", "wurst"), "wurst\n".encode("utf-16")),
        (b"caf\xe9 \xa4 x\n", ("x", "é"), b"caf\xe9 \xa4 \xe9\n"),
    ],
)
async def test_endings_and_encoding_stay(work: Workplace, content: bytes, change: tuple[str, str], expected: bytes):
    after, said, failed = await edit(work, content, change)
    assert (after, failed) == (expected, False), said


async def test_a_character_that_the_encoding_lacks_is_refused(work: Workplace):
    after, said, failed = await edit(work, b"caf\xe9\n", ("caf", "漢"))
    assert (after, failed) == (b"caf\xe9\n", True)
    assert "is in cp1252, which has no '漢'" in said


@pytest.mark.rule("CASE-C3")
@pytest.mark.parametrize(
    "edits",
    [
        [("x = 1\nx = 1", "y")],
        [("x", "y")],
        [("", "y")],
        [("x = 1", "x = 1")],
        [("x  =  1", "y")],
        [("x = 1\nx = 1\nx = 1", "y"), ("none", "z")],
    ],
)
async def test_what_is_refused_leaves_the_file_untouched(work: Workplace, edits: list[tuple[str, str]]):
    path = work.folder / "f"
    path.write_text("x = 1\nx = 1\nx = 1\n")
    before = path.stat()
    result = await work.call("edit", path="f", edits=[{"old": old, "new": new} for old, new in edits])
    after = path.stat()
    assert result.is_error
    assert "nothing was changed" in text_of(result)
    assert (after.st_ino, after.st_mtime_ns, path.read_text()) == (before.st_ino, before.st_mtime_ns, "x = 1\nx = 1\nx = 1\n")


@pytest.mark.rule("CASE-C4")
async def test_a_near_match_is_shown_and_the_other_lines_are_not_touched(work: Workplace):
    content = "untouched   \nsay “hi” — now\nreplace me   \nx\u00a0y\n    def f():\n        pass\n".encode()
    after, said, failed = await edit(work, content, ("replace me\nx y", "done"))
    assert (after, failed) == (content, True)
    assert "Lines 3-4 differ from it only in quotes, dashes or special blanks:\n---\nreplace me   \nx\u00a0y\n---" in said


@pytest.mark.rule("CASE-C4")
async def test_an_exact_match_changes_its_line_only(work: Workplace):
    after, _, _ = await edit(work, b"untouched   \nreplace me   \nlast\t\n", ("replace me   \n", "done\n"))
    assert after == b"untouched   \ndone\nlast\t\n"


async def test_several_edits_are_made_together(work: Workplace):
    after, said, _ = await edit(work, b"a\nb\nc\n", ("c", "3"), ("a", "1"))
    assert after == b"1\nb\n3\n"
    assert said == f"Edited {work.folder}/f (+2 -2 lines, 6 bytes now)."


async def test_what_is_no_text_or_not_there_is_refused(work: Workplace):
    _, said, failed = await edit(work, b"a\0b", ("a", "b"))
    assert (failed, said) == (True, f"{work.folder}/f is not text (binary file). Nothing was changed.")
    missing = await work.call("edit", path="none", edits=[{"old": "a", "new": "b"}])
    assert text_of(missing) == f"{work.folder}/none does not exist. Nothing was changed."


@pytest.mark.rule("CASE-C5")
async def test_a_read_only_file_is_refused(work: Workplace):
    if os.getuid() == 0:
        pytest.skip("root may write everything")
    (work.folder / "f").write_text("a\n")
    (work.folder / "f").chmod(0o444)
    assert "is read-only (mode 0444)" in text_of(await work.call("edit", path="f", edits=[{"old": "a", "new": "b"}]))


def test_the_title_says_how_many_edits(work: Workplace):
    tool = work.tools["edit"]
    one = {"old": "a", "new": "b"}
    titles = [tool.title(tool.arguments(path="a.py", edits=(one,) * count)) for count in (1, 2)]
    assert titles == ["edit a.py", "edit a.py (2 edits)"]
