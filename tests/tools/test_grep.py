"""The tool grep, on real trees: with our own search and, where the machine has one, with ripgrep."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from pi_durable_tui.tools.search.child import Ending, Options, glob_expression
from pi_durable_tui.tools.search.process import Line, read_found, ripgrep_arguments
from tests.support.tools_calls import Workplace, text_of

RIPGREP = shutil.which("rg")
ENGINES = ["own", pytest.param("ripgrep", marks=pytest.mark.skipif(RIPGREP is None, reason="no ripgrep on this machine"))]


@pytest.fixture(params=ENGINES)
def either(request, tmp_path: Path) -> Workplace:
    path = str(Path(RIPGREP).parent) if request.param == "ripgrep" and RIPGREP is not None else "/nonexistent"
    return Workplace(tmp_path, variables={"PATH": path})


def fill(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def remarks(result) -> list[tuple[str, str]]:
    return [(diagnostic.code, diagnostic.message) for diagnostic in result.diagnostics]


@pytest.mark.rule("AG-2")
async def test_matching_lines_stand_under_their_file_in_order(either: Workplace):
    fill(either.folder, b_dot_py="x = 1\ny = 2\nxx = 3\n", a__c_dot_py="import x\n", d_dot_txt="none\n")
    result = await either.call("grep", pattern=r"\bx+\b")
    assert (text_of(result), result.is_error) == ("a/c.py\n1: import x\nb.py\n1: x = 1\n3: xx = 3", False)
    assert result.details == {"matches": 3}


async def test_no_match_is_a_result(either: Workplace):
    fill(either.folder, a="b\n")
    result = await either.call("grep", pattern="zzz")
    assert (text_of(result), result.is_error) == ("No match.", False)


async def test_lines_around_a_match_are_marked_and_gaps_are_shown(either: Workplace):
    fill(either.folder, a="".join(f"line {number}\n" for number in range(1, 12)))
    result = await either.call("grep", pattern="line [28]$", context=1)
    assert text_of(result) == "a\n1- line 1\n2: line 2\n3- line 3\n…\n7- line 7\n8: line 8\n9- line 9"


@pytest.mark.rule("AG-2")
async def test_ignore_files_are_respected_the_nearest_one_decides_and_the_repository_itself_is_left_out(either: Workplace):
    fill(
        either.folder,
        _dot_gitignore="*.log\nbuild/\n",
        a_dot_log="word\n",
        build__out="word\n",
        sub___dot_gitignore="!keep.log\n",
        sub__keep_dot_log="word\n",
        _dot_git__config="word\n",
        _dot_hidden="word\n",
    )
    assert text_of(await either.call("grep", pattern="word")) == ".hidden\n1: word\nsub/keep.log\n1: word"
    assert text_of(await either.call("grep", pattern="word", glob="*.log")) == "sub/keep.log\n1: word"
    assert text_of(await either.call("grep", pattern="word", glob="*.log", with_ignored=True)) == "a.log\n1: word\nsub/keep.log\n1: word"


async def test_a_search_in_a_folder_keeps_what_the_folders_above_ignore(either: Workplace):
    fill(either.folder, _dot_git__HEAD="x\n", _dot_gitignore="/sub/gen/\n", sub__gen__a="word\n", sub__b="word\n")
    assert text_of(await either.call("grep", pattern="word", path="sub")) == "sub/b\n1: word"


@pytest.mark.parametrize(("glob", "found"), [("*.py", "a/one.py\nb/two.py"), ("a/*.py", "a/one.py"), ("**/*.{py,ts}", "a/one.py\nb/three.ts\nb/two.py")])
async def test_a_glob_names_files_or_paths(either: Workplace, glob: str, found: str):
    fill(either.folder, a__one_dot_py="w\n", b__two_dot_py="w\n", b__three_dot_ts="w\n", c="w\n")
    assert text_of(await either.call("grep", pattern="w", glob=glob)).replace("\n1: w", "") == found


async def test_case_can_be_ignored(either: Workplace):
    fill(either.folder, a="Word\n")
    assert text_of(await either.call("grep", pattern="wORD", ignore_case=True)) == "a\n1: Word"


async def test_the_limit_is_said(either: Workplace):
    fill(either.folder, a="w\n" * 50)
    result = await either.call("grep", pattern="w", limit=3)
    assert text_of(result) == "a\n1: w\n2: w\n3: w"
    assert remarks(result) == [("truncated", "Only the first 3 matches are shown. Narrow the pattern, path or glob, or raise limit.")]


async def test_a_bad_pattern_and_a_missing_place_are_said(either: Workplace):
    fill(either.folder, a="w\n")
    bad = await either.call("grep", pattern="(")
    assert bad.is_error
    assert text_of(bad).startswith("The pattern is not a valid regular expression: ")
    missing = await either.call("grep", pattern="w", path="nowhere")
    assert (missing.is_error, text_of(missing)) == (True, f"{either.folder}/nowhere does not exist.")


async def test_what_is_wrong_is_told_of_the_part_that_is_wrong_without_options_of_other_programs(tmp_path: Path):
    if RIPGREP is None:
        pytest.skip("there is no ripgrep here")
    work = Workplace(tmp_path, variables={"PATH": str(Path(RIPGREP).parent)})
    fill(work.folder, a="w\n")
    glob = await work.call("grep", pattern="w", glob="[")
    assert (glob.is_error, text_of(glob).partition(":")[0]) == (True, "The glob is not valid")
    lines = await work.call("grep", pattern="a\nb")
    assert (lines.is_error, "--multiline" in text_of(lines)) == (True, False)


@pytest.mark.rule("SA-10")
async def test_a_place_that_is_no_file_and_no_folder_is_not_told_as_one_without_a_match(either: Workplace):
    os.mkfifo(either.folder / "pipe")
    for tool, arguments in (("grep", {"pattern": "w"}), ("find", {"glob": "*"})):
        result = await either.call(tool, path="pipe", **arguments)
        assert (result.is_error, text_of(result)) == (True, f"{either.folder}/pipe is a named pipe, not a file.")


async def test_what_may_not_be_read_is_not_told_as_a_place_without_a_match(either: Workplace):
    fill(either.folder, a="word\n", no__b="word\n", file="word\n")
    (either.folder / "no").chmod(0)
    (either.folder / "file").chmod(0)
    if os.access(either.folder / "file", os.R_OK):
        pytest.skip("whoever runs this may read everything")
    some = await either.call("grep", pattern="word")
    assert (text_of(some), remarks(some)) == ("a\n1: word", [("note", "Some files or folders could not be read, and were left out.")])
    nothing = await either.call("grep", pattern="other")
    assert (text_of(nothing), remarks(nothing)) == ("No match.", [("note", "Some files or folders could not be read, and were left out.")])
    for tool, path, arguments in (("grep", "no", {"pattern": "word"}), ("grep", "file", {"pattern": "word"}), ("find", "no", {"glob": "*"})):
        result = await either.call(tool, path=path, **arguments)
        assert (result.is_error, text_of(result)) == (True, f"{either.folder}/{path}: Permission denied.")


@pytest.mark.rule("SA-10", "CASE-C7")
async def test_binary_files_are_passed_over_and_a_pipe_is_not_waited_for(either: Workplace):
    (either.folder / "blob").write_bytes(b"word\0word\n")
    os.mkfifo(either.folder / "pipe")
    fill(either.folder, a="word\r\n")
    assert text_of(await either.call("grep", pattern="word")) == "a\n1: word"


@pytest.mark.rule("SA-10")
async def test_odd_names_are_shown_escaped_and_odd_bytes_are_replaced(either: Workplace):
    (either.folder / "a\nb\x1b]0;x").write_bytes(b"word \xff\n")
    (either.folder / os.fsdecode(b"\xff")).mkdir()
    (either.folder / os.fsdecode(b"\xff") / "c").write_text("word\n")
    assert text_of(await either.call("grep", pattern="word")) == "a\\nb\\x1b]0;x\n1: word �\n\\xff/c\n1: word"


@pytest.mark.rule("CASE-C7")
async def test_of_an_endless_line_a_piece_is_shown_and_our_own_search_shows_it_around_the_match(either: Workplace):
    fill(either.folder, a="x" * 3_000_000 + "needle" + "y" * 3_000_000 + "\n")
    text = text_of(await either.call("grep", pattern="needle"))
    assert text.startswith("a\n1: ")
    assert len(text) < 500
    assert "needle" in text or either.environment.program("rg")


@pytest.mark.rule("CASE-C7")
@pytest.mark.slow
async def test_ten_logs_of_500_mb_are_searched_within_the_time_and_small_files_first(either: Workplace):
    for number in range(10):
        with (either.folder / f"{number}.log").open("wb") as file:
            file.write(b"a line of a log\n" * 1_000_000)  # text first, so that nothing can tell at once that the rest is a hole
            file.truncate(500_000_000)
    fill(either.folder, z="needle\n")
    started = time.monotonic()
    result = await either.call("grep", pattern="needle")
    assert time.monotonic() - started < 4  # 2 s on an idle machine; tests run side by side
    assert text_of(result) == "z\n1: needle"


@pytest.mark.rule("SA-10")
@pytest.mark.slow
async def test_a_pattern_that_never_ends_is_ended_and_said(tmp_path: Path):
    work = Workplace(tmp_path, variables={"PATH": "/nonexistent"})
    fill(work.folder, a="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n")
    result = await work.call("grep", pattern="(a+)+b")
    assert text_of(result) == "No match."
    ((code, message),) = remarks(result)
    assert code == "truncated"
    assert message.startswith(f"The search was stopped when its 1.5 s were up; there may be more. Not (wholly) searched: {work.folder}/a.")


@pytest.mark.rule("CASE-G4")
async def test_a_program_of_the_working_directory_is_never_taken_for_ripgrep(tmp_path: Path):
    work = Workplace(tmp_path, variables={"PATH": f"{tmp_path}/work/bin:.:{tmp_path}/work"})
    for place in ("bin/rg", "rg"):
        fill(work.folder, **{place.replace("/", "__"): f"#!/bin/sh\ntouch {tmp_path}/ran\n"})
        (work.folder / place).chmod(0o755)
    fill(work.folder, a="word\n")
    assert text_of(await work.call("grep", pattern="word")) == "a\n1: word"
    assert not (tmp_path / "ran").exists()


def test_what_ripgrep_is_told_cannot_be_taken_for_an_option():
    arguments = ripgrep_arguments("/usr/bin/rg", Options(root="/project", pattern="--pre=evil", glob="--pre"))
    assert arguments[-3:] == ["--regexp=--pre=evil", "--", "/project"]
    assert "--no-config" in arguments
    assert "--type-add=wanted:--pre" in arguments


def test_lines_of_either_program_are_read_in_order():
    output = b"/w/b\x002:two\n/w/b\x001-one\n\n/w/a\x007:se:ven\n"
    assert read_found(output, Options(root="/w", pattern="x"), Ending()).lines == (
        Line(path="/w/a", number=7, text="se:ven", is_match=True),
        Line(path="/w/b", number=1, text="one", is_match=False),
        Line(path="/w/b", number=2, text="two", is_match=True),
    )


@pytest.mark.parametrize(
    ("glob", "expression"),
    [
        ("*.py", r"[^/]*\.py"),
        ("src/**/x?.[!ab]", r"src/(?:.*/)?x[^/]\.[^ab]"),
        ("{a,b}.c", r"(?:a|b)\.c"),
        ("a,b", "a,b"),
        ("{a", "(?:a)"),
    ],
)
def test_globs_as_expressions(glob, expression):
    assert glob_expression(glob) == expression
