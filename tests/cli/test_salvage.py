"""`pidurable sessions salvage`: a damaged session is read, a new one is made of it, and the damaged one is as it was (ST-15, PR-15)."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

from pi_durable_tui.cli.main import run
from pi_durable_tui.cli.paths import place, prepare
from tests.support.damaged_stores import bytes_of, long
from tests.support.old_stores import SHELF


@dataclass(frozen=True, slots=True)
class Place:
    """A directory with sessions of its own."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    @property
    def store(self) -> Path:
        return self.folder / "session.sqlite"

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """The exit status, and what was printed."""
        code = run(arguments)
        printed = self.capsys.readouterr()
        return code, printed.out, printed.err

    def put(self, phase: str, name: str = "session.sqlite", *, damaged: str = "The first answer.") -> None:
        """A session that was left in a phase; these words are misspelt wherever they stand."""
        data = (SHELF / f"v1-{phase}" / "session.sqlite").read_bytes()
        (self.folder / name).write_bytes(data.replace(damaged.encode(), damaged.swapcase().encode()) if damaged else data)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    for name in ("work", "data", "config"):
        (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("PIDURABLE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PIDURABLE_CONFIG_DIR", str(tmp_path / "config"))
    found = place(None, tmp_path / "data")
    prepare(found)
    return Place(found.folder, capsys)


def of_damaged(here: Place) -> dict[str, bytes]:
    return {name: data for name, data in bytes_of(here.store).items() if Path(name).name.startswith("session.")}


@pytest.mark.rule("PR-15", "ST-15", "CL-6")
def test_a_damaged_chat_is_named_with_the_way_out_and_hides_no_other(here: Place) -> None:
    here.put("sleep", damaged="the first question")
    here.put("tool", "session-2.sqlite", damaged="")
    code, out, err = here.run("sessions")
    assert (code, [line.split()[0] for line in out.splitlines()]) == (0, ["ID", "2.1"])
    assert err.startswith(f"pidurable: Chat 1.1 cannot be read. The session {here.store} is damaged: entries ")
    assert err.endswith("pidurable sessions salvage 1 rescues what can be read.\n")
    code, out, err = here.run("doctor", "--json")
    found = {one["name"]: one for one in json.loads(out)}["session 1"]
    step = "pidurable sessions salvage 1: writes what can still be read into a new session, and says what is lost."
    assert (code, found["state"], found["nextStep"]) == (1, "bad", step)


@pytest.mark.rule("PR-15", "ST-15", "SA-16")
@pytest.mark.parametrize("named", [(), ("1",), ("1.1",), ("path",)])
def test_what_can_be_read_is_a_session_of_its_own_and_says_what_is_lost(here: Place, named: tuple[str, ...]) -> None:
    here.put("tool")
    before = of_damaged(here)
    code, out, err = here.run("sessions", "salvage", *(str(here.store) if each == "path" else each for each in named))
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"{here.store} is damaged: a row of entries.",
        f"16 of 17 records are sound. They are session 2 now: {here.folder / 'session-2.sqlite'}",
        "Lost:",
        "  entry 9 of chat 2.1",
        "Each of these chats says so at its end: 2.1",
        "What was at work was ended in: 2.1",
        f"{here.store} is as it was.",
        f"pidurable sessions lists the chats. Once nothing of the damaged one is wanted any more: mv {here.store} ELSEWHERE",
    ]
    assert of_damaged(here) == before
    assert (here.folder / "session-2.sqlite").stat().st_mode & 0o777 == 0o600
    _, log, _ = here.run("log", "2.1")
    assert log.startswith("> the first question")
    assert "[What stood here is lost: the session was damaged]" in log
    assert "[This chat was rescued from a damaged session. 1 entry could not be read any more. What was at work was ended.]" in log
    _, found, _ = here.run("doctor", "--json")
    assert {one["name"]: one["state"] for one in json.loads(found)}["session 2"] == "good"


@pytest.mark.rule("PR-15")
def test_long_outputs_and_what_undo_needs_come_along(here: Place) -> None:
    here.put("tool")
    (here.folder / "session-1.files" / "1").mkdir(parents=True)
    (here.folder / "session-1.files" / "1" / "output.txt").write_text("long")
    assert here.run("sessions", "salvage")[0] == 0
    assert (here.folder / "session-2.files" / "1" / "output.txt").read_text() == "long"


@pytest.mark.rule("PR-15")
def test_a_folder_of_lines_is_rescued_alike(here: Place) -> None:
    shutil.copytree(SHELF / "v1-queue" / "session.jsonl", here.folder / "session.jsonl")
    main = here.folder / "session.jsonl" / "main.jsonl"
    data = bytearray(main.read_bytes())
    data[data.find(b"The first answer.") + 4] ^= 1
    main.write_bytes(data)
    code, out, _ = here.run("sessions", "salvage")
    assert (code, "entry 9 of chat 2.1" in out, (here.folder / "session-2.jsonl").is_dir()) == (0, True, True)
    assert main.read_bytes() == data


@pytest.mark.rule("PR-15")
def test_a_sound_session_and_one_that_is_not_there_are_left_alone(here: Place) -> None:
    here.put("tool", damaged="")
    before = of_damaged(here)
    assert here.run("sessions", "salvage", "1") == (0, "", f"pidurable: {here.store} is sound. Nothing was written.\n")
    assert [here.run("sessions", "salvage", *named)[0] for named in ((), ("7",), ("no/such/file",))] == [2, 2, 2]
    assert of_damaged(here) == before
    assert list(here.folder.glob("session-*")) == []


@pytest.mark.rule("PR-15")
def test_a_file_in_which_nothing_can_be_read_is_refused(here: Place) -> None:
    here.store.write_bytes(b"no database" * 1_000)
    code, out, err = here.run("sessions", "salvage")
    assert (code, out) == (6, "")
    assert "no entry of any chat can be read any more" in err


@pytest.mark.rule("PR-15", "ST-11")
def test_a_session_that_only_lacks_the_index_of_its_log_is_not_called_damaged(here: Place) -> None:
    asyncio.run(long(here.folder / "made", "sqlite"))
    for item in (here.folder / "made").glob("session.sqlite*"):
        item.rename(here.folder / item.name)
    code, out, err = here.run("sessions", "salvage", "1")
    assert (code, out) == (4, "")
    assert "was not closed, and its -shm file is missing" in err


@pytest.mark.rule("PR-15")
def test_damage_that_is_in_no_record_is_told_as_such_and_everything_comes_along(here: Place) -> None:
    here.put("tool", damaged="")
    connection = apsw.Connection(str(here.store))
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("DELETE FROM sqlite_schema WHERE name = 'entries_with_head'")
    connection.close()
    code, out, _ = here.run("sessions", "salvage")
    lines = out.splitlines()
    assert (code, lines[0]) == (0, f"{here.store} is damaged, though none of its records is.")
    assert lines[1].startswith("17 of 17 records are sound.")
    assert "Lost:" not in lines
