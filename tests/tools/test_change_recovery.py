"""What became of a write or an edit that a crash interrupted: the file is asked (rule TO-8)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.tools_calls import Workplace, names_in, text_of

EDIT = {"path": "f", "edits": [{"old": "old", "new": "new"}]}


async def intent(work: Workplace) -> dict[str, Any]:
    (work.folder / "f").write_text("old\n")
    return await work.prepare("edit", **EDIT)


@pytest.mark.rule("TO-8")
async def test_the_new_content_means_done(work: Workplace, tmp_path: Path):
    prepared = await intent(work)
    (work.folder / "f").write_text("new\n")
    found = await Workplace(tmp_path).reconcile("edit", prepared, **EDIT)
    assert found.verdict == "done"
    assert found.result is not None
    assert text_of(found.result) == f"{work.folder}/f was written before the interruption (1 lines, 4 bytes)."


@pytest.mark.rule("TO-8")
async def test_the_old_content_means_not_started_and_the_call_can_run(work: Workplace, tmp_path: Path):
    prepared = await intent(work)
    again = Workplace(tmp_path)
    assert (await again.reconcile("edit", prepared, **EDIT)).verdict == "not_started"
    result = await again.execute("edit", prepared, **EDIT)
    assert (result.is_error, (work.folder / "f").read_text()) == (False, "new\n")


@pytest.mark.rule("TO-8")
@pytest.mark.parametrize("now", ["someone else's\n", None])
async def test_any_other_content_means_in_doubt(work: Workplace, now: str | None):
    prepared = await intent(work)
    (work.folder / "f").unlink()
    if now is not None:
        (work.folder / "f").write_text(now)
    assert (await work.reconcile("edit", prepared, **EDIT)).verdict == "in_doubt"


@pytest.mark.rule("TO-8")
async def test_a_write_that_was_prepared_runs_after_a_restart_though_the_file_is_unread_then(work: Workplace, tmp_path: Path):
    (work.folder / "f").write_text("old\n")
    await work.call("read", path="f")
    prepared = await work.prepare("write", path="f", content="new\n")
    again = Workplace(tmp_path)
    assert (await again.reconcile("write", prepared, path="f", content="new\n")).verdict == "not_started"
    result = await again.execute("write", prepared, path="f", content="new\n")
    assert (result.is_error, (work.folder / "f").read_text()) == (False, "new\n")


@pytest.mark.rule("TO-8")
async def test_a_new_file_that_is_not_there_means_not_started(work: Workplace):
    prepared = await work.prepare("write", path="f", content="new\n")
    assert (await work.reconcile("write", prepared, path="f", content="new\n")).verdict == "not_started"


@pytest.mark.rule("TO-8")
async def test_the_file_is_found_again_in_a_folder_whose_name_is_no_text(tmp_path: Path):
    odd = tmp_path / os.fsdecode(b"\xff")
    odd.mkdir()
    work = Workplace(odd)
    prepared = await work.prepare("write", path="f", content="new\n")
    prepared["path"].encode()
    result = await work.execute("write", prepared, path="f", content="new\n")
    text_of(result).encode()
    assert (await work.reconcile("write", prepared, path="f", content="new\n")).verdict == "done"


@pytest.mark.rule("CASE-C5")
async def test_what_a_killed_write_left_beside_the_file_is_removed(work: Workplace):
    prepared = await intent(work)
    (work.folder / ".pidurable-call1.tmp").write_text("half")
    await work.reconcile("edit", prepared, call_id="call1", **EDIT)
    assert names_in(work.folder) == ["f"]


KILLED_WRITER = """
import os, signal, sys
from pi_durable_tui.tools import files
def die(descriptor):
    os.kill(os.getpid(), signal.SIGKILL)
os.fsync = die
files.replace(sys.argv[1], b"new" * 100_000, expected=files.digest(b"old"), token="call1")
"""


@pytest.mark.rule("CASE-C5")
def test_a_kill_in_the_middle_of_a_write_leaves_the_old_file_alone(tmp_path: Path):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    ended = subprocess.run([sys.executable, "-c", KILLED_WRITER, str(path)], check=False, cwd=Path(__file__).parents[2])
    assert ended.returncode == -9
    assert (path.read_bytes(), names_in(tmp_path)) == (b"old", ["f"])
