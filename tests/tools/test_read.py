"""The tool read, on real files."""

from __future__ import annotations

import base64
import json
import os
import resource
from pathlib import Path

import pytest

from pi_durable_tui.records.messages import Image, Text
from pi_durable_tui.records.pictures import IMAGE_BYTES
from tests.support.tools_calls import Workplace, text_of

TWO_GB = 2 * 1024**3


def remarks(result) -> list[tuple[str, str]]:
    return [(diagnostic.code, diagnostic.message) for diagnostic in result.diagnostics]


async def test_a_file_is_given_exactly_as_it_is(work: Workplace):
    (work.folder / "a.txt").write_text("one\n  two\t\n")
    result = await work.call("read", path="a.txt")
    assert (text_of(result), result.is_error, result.diagnostics) == ("one\n  two\t\n", False, ())


async def test_a_part_says_how_to_go_on(work: Workplace):
    (work.folder / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 11)))
    result = await work.call("read", path="a.txt", offset=3, limit=2)
    assert text_of(result) == "line 3\nline 4\n"
    assert remarks(result) == [("truncated", "Lines 3-4 of 10 are shown. Go on with offset=5.")]


async def test_a_file_longer_than_a_result_is_cut_at_a_line(work: Workplace):
    (work.folder / "a.txt").write_text("x\n" * 5_000)
    result = await work.call("read", path="a.txt")
    assert text_of(result) == "x\n" * 2_000
    assert remarks(result) == [("truncated", "Lines 1-2,000 of 5,000 are shown. Go on with offset=2001.")]


@pytest.mark.rule("CASE-C7")
async def test_one_endless_line_can_be_read_piece_by_piece_without_a_broken_character(work: Workplace):
    line = "é" * 40_000
    (work.folder / "a.js").write_text(f"first\n{line}\nlast\n")
    whole, offset, column = "", 2, 1
    for _ in range(10):
        result = await work.call("read", path="a.js", offset=offset, column=column)
        whole += text_of(result)
        if not result.diagnostics:
            break
        assert f"Go on inside it with offset=2 column={len(whole) + 1}, or after it with offset=3." in result.diagnostics[0].message
        column = len(whole) + 1
    assert whole == f"{line}\nlast\n"


@pytest.mark.rule("CASE-C7", "SA-10")
async def test_a_sparse_file_of_3_gb_is_named_as_binary_in_little_memory(work: Workplace):
    with (work.folder / "big").open("wb") as file:
        file.truncate(3 * 1024**3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await work.call("read", path="big")
    edited = await work.call("edit", path="big", edits=[{"old": "a", "new": "b"}])
    written = await work.call("write", path="big", content="b")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
    assert text_of(result) == f"{work.folder}/big is a binary file (3.2 GB), not text. Use bash to look into it."
    assert [edited.is_error, written.is_error] == [True, True]
    assert "too large to be handled whole" in text_of(edited)


@pytest.mark.rule("CASE-C7")
async def test_a_large_text_is_read_in_part_wherever_it_is_asked(work: Workplace):
    with (work.folder / "log").open("w") as file:
        file.writelines(f"line {number}\n" for number in range(1, 1_000_001))
    result = await work.call("read", path="log", offset=999_999)
    assert (text_of(result), result.diagnostics) == ("line 999999\nline 1000000\n", ())
    result = await work.call("read", path="log", offset=500_000, limit=1, column=6)
    assert text_of(result) == "500000\n"
    assert "Go on with offset=500001." in remarks(result)[0][1]
    result = await work.call("read", path="log", offset=1_000_001)
    assert "ends before line 1000001" in text_of(result)


@pytest.mark.rule("CASE-C7")
async def test_binary_files_are_named_as_what_they_are(work: Workplace):
    (work.folder / "p.bmp").write_bytes(b"BM" + bytes(26))
    (work.folder / "p.pdf").write_bytes(b"%PDF-1.7\n" + bytes(19))
    (work.folder / "late").write_bytes(b"x" * 100_000 + b"\0")
    assert text_of(await work.call("read", path="p.bmp")) == f"{work.folder}/p.bmp is a binary file (28 bytes), not text. Use bash to look into it."
    assert text_of(await work.call("read", path="p.pdf")) == f"{work.folder}/p.pdf is a PDF document (28 bytes), not text. Use bash to look into it."
    assert "is a binary file (100.0 KB)" in text_of(await work.call("read", path="late"))


async def test_an_empty_file_and_a_place_past_the_end_are_said(work: Workplace):
    (work.folder / "empty").touch()
    (work.folder / "a").write_text("one\n")
    assert text_of(await work.call("read", path="empty")) == "(The file is empty.)"
    past = await work.call("read", path="a", offset=2)
    assert (past.is_error, text_of(past)) == (True, f"{work.folder}/a has 1 lines; offset 2 is past its end.")
    assert "fewer than 9 characters" in text_of(await work.call("read", path="a", column=9))


@pytest.mark.parametrize("limits", [{"limit": 0}, {"limit": -1}, {"offset": 0}, {"column": 0}])
async def test_limits_below_one_are_not_valid(work: Workplace, limits: dict[str, int]):
    with pytest.raises(ValueError, match=">= 1"):
        await work.call("read", path="a", **limits)


@pytest.mark.rule("CASE-C1")
async def test_mark_and_windows_endings_are_not_shown(work: Workplace):
    (work.folder / "w.txt").write_bytes(b"\xef\xbb\xbfalpha\r\nbeta\r\n")
    assert text_of(await work.call("read", path="w.txt")) == "alpha\nbeta\n"


async def test_a_file_that_is_not_utf_8_is_read_and_said(work: Workplace):
    (work.folder / "l.txt").write_bytes(b"caf\xe9\n")
    result = await work.call("read", path="l.txt")
    assert text_of(result) == "café\n"
    assert remarks(result) == [("note", f"{work.folder}/l.txt is not UTF-8; it was read as cp1252.")]


@pytest.mark.rule("SA-10")
async def test_odd_files_are_refused_without_waiting(work: Workplace):
    os.mkfifo(work.folder / "pipe")
    (work.folder / "loop").symlink_to("loop")
    (work.folder / "dir").mkdir()
    answers = [text_of(await work.call("read", path=path)) for path in ("pipe", "/dev/zero", "loop", "dir", "none", "x" * 5_000, "a\0b")]
    assert answers[0] == f"{work.folder}/pipe is a named pipe, not a file."
    assert answers[1] == "/dev/zero is a character device, not a file."
    assert "Too many levels of symbolic links" in answers[2]
    assert answers[3].startswith(f"{work.folder}/dir is a directory, not a file.")
    assert answers[4] == f"{work.folder}/none does not exist."
    assert "too long" in answers[5]
    assert answers[6] == "A path cannot hold a NUL character."


@pytest.mark.rule("CASE-B10")
async def test_half_a_surrogate_pair_in_a_path_gives_an_answer_that_can_be_stored(work: Workplace):
    result = await work.call("read", path="\ud83d.txt")
    assert text_of(result) == f"{work.folder}/\ufffd.txt does not exist."


async def test_a_home_directory_is_understood(tmp_path: Path):
    work = Workplace(tmp_path, variables={"HOME": str(tmp_path)})
    (tmp_path / "note").write_text("x")
    assert text_of(await work.call("read", path="~/note")) == "x"


def test_the_title_is_one_line_that_names_the_file(work: Workplace):
    tool = work.tools["read"]
    assert tool.title(tool.arguments(path="a\nb", offset=7)) == "read a b from line 7"


@pytest.mark.rule("AG-2", "TU-6")
@pytest.mark.parametrize(
    ("start", "kind"), [(b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF89a", "image/gif"), (b"RIFF\0\0\0\0WEBP", "image/webp")]
)
async def test_a_picture_is_given_as_a_picture_whatever_it_is_called(work: Workplace, start: bytes, kind: str):
    data = start + bytes(range(256))
    (work.folder / "shot.dat").write_bytes(data)
    result = await work.call("read", path="shot.dat")
    assert result.content == (
        Text(text=f"{work.folder}/shot.dat is a picture ({kind}, {len(data)} bytes)."),
        Image(mime_type=kind, data=base64.b64encode(data).decode()),
    )
    (work.folder / "shot.dat").write_bytes(start + bytes(IMAGE_BYTES))
    result = await work.call("read", path="shot.dat")
    assert (result.is_error, text_of(result).endswith("too large to be shown: at most 3.6 MB. Use bash to make it smaller.")) == (True, True)


def notebook(*cells: dict) -> bytes:
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)}).encode()


@pytest.mark.rule("AG-2")
async def test_a_notebook_is_given_as_its_cells_and_what_they_printed(work: Workplace):
    picture = {"output_type": "display_data", "data": {"image/png": "iVBOR", "text/plain": ["<Figure>"]}}
    printed = {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]}
    failed = {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["\x1b[31m"]}
    cells = (
        {"cell_type": "markdown", "metadata": {}, "source": "# Title"},
        {"cell_type": "code", "metadata": {}, "execution_count": 1, "source": ["a = 1\n", "a"], "outputs": [printed, picture, failed]},
        {"cell_type": "code", "source": "", "outputs": [{"output_type": "stream", "text": "x" * 5_000}]},
    )
    (work.folder / "n.ipynb").write_bytes(notebook(*cells))
    result = await work.call("read", path="n.ipynb")
    shown = "[output of cell 2]\none\ntwo\n<Figure>\n(image/png, not shown)\nValueError: no\n"
    assert text_of(result).startswith(f"[cell 1: markdown]\n# Title\n\n[cell 2: code]\na = 1\na\n{shown}\n[cell 3: code]\n\n[output of cell 3]\nxxx")
    assert "[… 1,000 more characters are in the file]" in text_of(result)
    assert "The file is JSON" in remarks(result)[0][1]
    part = await work.call("read", path="n.ipynb", offset=4, limit=2)
    assert text_of(part) == "[cell 2: code]\na = 1\n"


@pytest.mark.rule("AG-2")
@pytest.mark.parametrize(
    "data", [b"{}", b'{"nbformat": "4"}', b"[1", b'{"nbformat": 4, "cells": [3]}', b'{"nbformat": 4, "cells": [{"outputs": [{"data": {"text/plain": 1}}]}]}']
)
async def test_what_is_called_a_notebook_and_is_none_is_given_as_it_is(work: Workplace, data: bytes):
    (work.folder / "n.ipynb").write_bytes(data)
    assert text_of(await work.call("read", path="n.ipynb")) == data.decode()
