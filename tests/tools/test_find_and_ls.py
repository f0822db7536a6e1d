"""The tools find and ls, on real trees."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pi_durable_tui.tools.search import ls as listing
from tests.support.tools_calls import Workplace, text_of


def remarks(result) -> list[tuple[str, str]]:
    return [(diagnostic.code, diagnostic.message) for diagnostic in result.diagnostics]


def tree(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


@pytest.mark.rule("AG-2")
async def test_names_are_found_anywhere_by_their_last_part_and_paths_by_the_whole(work: Workplace):
    tree(work.folder, "src/a.py", "src/deep/b.py", "c.py", "src/d.txt", "build/e.py", ".git/f.py")
    (work.folder / ".gitignore").write_text("build\n")
    assert text_of(await work.call("find", glob="*.py")) == "c.py\nsrc/a.py\nsrc/deep/b.py"
    assert text_of(await work.call("find", glob="src/**/*.py")) == "src/a.py\nsrc/deep/b.py"
    assert text_of(await work.call("find", glob="*.py", path="src/deep")) == "src/deep/b.py"
    assert text_of(await work.call("find", glob="deep")) == "src/deep"
    assert text_of(await work.call("find", glob="e.py", with_ignored=True)) == "build/e.py"
    assert text_of(await work.call("find", glob="*.zig")) == "No such name."


async def test_more_names_than_the_limit_are_said(work: Workplace):
    tree(work.folder, *(f"{number:03}" for number in range(20)))
    result = await work.call("find", glob="*", limit=2)
    assert text_of(result) == "000\n001"
    assert remarks(result) == [("truncated", "Only the first 2 names are shown. Narrow glob or path, or raise limit.")]


@pytest.mark.rule("SA-10")
async def test_loops_of_links_and_odd_ignore_files_do_not_stop_a_search(work: Workplace):
    tree(work.folder, "a/b.py")
    (work.folder / "a" / "up").symlink_to("..")
    os.mkfifo(work.folder / "a" / ".gitignore")
    (work.folder / ".gitignore").write_bytes(b"\xff\n!\n[\n***\x00\n")
    assert text_of(await work.call("find", glob="b.py")) == "a/b.py"


@pytest.mark.rule("SA-10")
async def test_an_ignore_pattern_that_could_match_for_ever_is_left_out_and_the_others_hold(work: Workplace):
    tree(work.folder, "a" * 200, "b.log", "d/x/c")
    (work.folder / ".gitignore").write_text("*a*a*a*a*a*a*a*a*b\n**/x/**\n*.log\n")
    assert text_of(await work.call("find", glob="*")) == f".gitignore\n{'a' * 200}\nd"


@pytest.mark.rule("AG-2", "SA-10")
async def test_a_folder_is_listed_in_order_with_kinds_and_sizes(work: Workplace):
    tree(work.folder, ".hidden", "z/inside")
    (work.folder / "b.txt").write_text("x" * 1_500)
    (work.folder / "link").symlink_to("nowhere\n")
    os.mkfifo(work.folder / "pipe")
    (work.folder / "esc\x1b[2J").touch()
    result = await work.call("ls")
    assert text_of(result) == ".hidden (0 bytes)\nb.txt (1.5 KB)\nesc\\x1b[2J (0 bytes)\nlink -> nowhere\\n\npipe (named pipe)\nz/"
    assert (result.details, result.diagnostics) == ({"names": 6}, ())


async def test_listing_says_when_there_is_no_folder_or_nothing_in_it(work: Workplace):
    tree(work.folder, "file")
    (work.folder / "empty").mkdir()
    assert text_of(await work.call("ls", path="empty")) == "(The folder is empty.)"
    assert text_of(await work.call("ls", path="file")) == f"{work.folder}/file is not a folder."
    assert text_of(await work.call("ls", path="gone")) == f"{work.folder}/gone does not exist."


@pytest.mark.rule("SA-10")
async def test_a_folder_of_very_many_names_is_listed_in_part(work: Workplace, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listing, "FOLDER_NAMES", 50)  # the same code with 100,000 takes a second of making files
    tree(work.folder, *(f"{number:03}" for number in range(60)))
    result = await work.call("ls", limit=3)
    assert len(text_of(result).splitlines()) == 3
    assert remarks(result) == [("truncated", "Only a part of the more than 50 names is shown. Use find with a glob.")]
