"""`pidurable sessions`: show, rename, delete, prune, backup, path (CL-2, CL-3, CL-6, SA-16)."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest

from pi_durable_tui.cli.chats import Found
from pi_durable_tui.cli.sessions import keeping
from pi_durable_tui.cli.sessions.keeping import age_ms, old_ones
from pi_durable_tui.cli.setup import set_up
from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import BadRequest
from pi_durable_tui.harness.chats import Chat
from tests.support.cli_runs import Desk, ended
from tests.support.journey_terminal import Terminal

ASK = ("-p", "--model", "playback/01-hello")
WORDS = "In three sentences: what happens if the power goes out now?"


@pytest.fixture
def talked(desk: Desk) -> Desk:
    """A directory with two finished chats in one session."""
    for start in ("", "Again. "):
        assert desk.run(*ASK, start + WORDS).code == 0
    return desk


def listed(desk: Desk, **environ: str) -> list[dict[str, object]]:
    return json.loads(desk.run("sessions", "--json", **environ).stdout)


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
@pytest.mark.rule("CL-2", "CL-3")
def test_a_chat_is_shown_named_and_its_file_is_told(talked: Desk) -> None:
    first = str(listed(talked)[-1]["id"])
    assert talked.run("sessions", "rename", first, "the power \x1b[2Jquestion").code == 0
    told = talked.run("sessions", "show", first)
    as_json = json.loads(talked.run("sessions", "show", first, "--json").stdout)
    path = talked.run("sessions", "path", first).stdout.strip()
    assert (told.code, told.stderr) == (0, "")
    lines = dict(line.split(maxsplit=1) for line in told.stdout.split("\n\n")[0].split("\n") if " " in line)
    assert (lines["title"], lines["state"], lines["file"]) == ("the power ␛question", "done", path)
    assert f"> {WORDS}" in told.stdout
    assert (as_json["title"], as_json["entries"], as_json["holder"]) == ("the power ␛question", 3, None)
    assert [one["title"] for one in listed(talked)][-1] == "the power ␛question"
    assert talked.run("sessions", "rename", first, "").code == 0
    assert listed(talked)[-1]["title"] == WORDS


@pytest.mark.slow
@pytest.mark.rule("ST-15", "SA-16")
def test_a_deleted_chat_is_gone_from_the_list_and_the_disk_and_the_other_is_untouched(talked: Desk) -> None:
    other, first = listed(talked)
    assert b"Again. In three" in bytes_of(talked.data)
    kept = talked.run("log", str(first["id"])).stdout
    result = talked.run("sessions", "delete", str(other["id"]), "--yes")
    assert (result.code, result.stderr) == (0, f"pidurable: chat {other['id']} is gone.\n")
    assert [one["id"] for one in listed(talked)] == [first["id"]]
    assert talked.run("log", str(first["id"])).stdout == kept
    assert b"Again. In three" not in bytes_of(talked.data)
    assert json.loads(talked.run("doctor", "--json").stdout)[-1]["text"].startswith("sound, ")
    new = talked.run(*ASK, WORDS)  # numbers of what is gone are not used again
    assert new.code == 0
    assert int(str(listed(talked)[0]["id"]).split(".")[1]) > int(str(other["id"]).split(".")[1])


@pytest.mark.slow
@pytest.mark.rule("CL-6")
def test_nothing_is_deleted_without_a_yes(talked: Desk) -> None:
    before = listed(talked)
    chat = str(before[0]["id"])
    asked = talked.run("sessions", "delete", chat)
    assert (asked.code, "Nobody is there to be asked. Nothing was changed." in asked.stderr) == (2, True)
    for answer, code in (("n", 1), ("", 1), ("y", 0)):
        assert listed(talked) == before
        terminal = Terminal([sys.executable, "-m", "pi_durable_tui.cli.main", "sessions", "delete", chat], cwd=talked.work, environ=talked.environ())
        try:
            terminal.wait_for(f"Delete chat {chat}", "[y/N]")
            terminal.type(answer)
            terminal.press("enter")
            assert terminal.wait_end() == code
        finally:
            terminal.close()
    assert listed(talked) == before[1:]


@pytest.mark.slow
@pytest.mark.rule("ST-12", "CL-2")
def test_what_is_unfinished_or_open_elsewhere_is_not_touched(desk: Desk) -> None:
    owner = desk.start("-p", "--model", "playback/03-kill-mid-stream", "What does fsync really promise, and what do people forget?")
    while "A power cut loses it." not in desk.run("log").stdout:
        assert owner.poll() is None
    (chat,) = listed(desk)
    held = desk.run("sessions", "rename", str(chat["id"]), "x")
    assert (held.code, f"is open in another process (pid {owner.pid}" in held.stderr) == (3, True)
    assert f"open in pid {owner.pid}" in desk.run("sessions", "show").stdout
    owner.kill()
    ended(owner)
    refused = desk.run("sessions", "delete", str(chat["id"]), "--yes")
    assert (refused.code, "is unfinished. Nothing was changed." in refused.stderr) == (3, True)
    assert desk.run("sessions", "rename", str(chat["id"]), "x").code == 0  # and a new name does not count as going on with it
    shown = json.loads(desk.run("inspect", "--json").stdout)
    assert len(shown["interrupted"]) == 1


@pytest.mark.slow
@pytest.mark.rule("SA-16", "ST-14")
def test_a_backup_is_a_data_folder_of_its_own_made_while_the_session_is_written(desk: Desk) -> None:
    owner = desk.start("-p", "--model", "playback/03-kill-mid-stream", "What does fsync really promise, and what do people forget?")
    while "A power cut loses it." not in desk.run("log").stdout:
        assert owner.poll() is None
    before = sorted(path.name for path in desk.data.rglob("*"))
    target = desk.root / "backups" / "today"
    made = desk.run("sessions", "backup", str(target))
    assert (made.code, made.stderr, sorted(path.name for path in desk.data.rglob("*"))) == (0, "", before)
    owner.kill()
    ended(owner)
    (copy,) = (Path(line) for line in made.stdout.splitlines())
    assert sorted(path.name for path in copy.parent.iterdir()) == ["cwd", "session.sqlite"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in copy.parent.iterdir()} == {0o600}
    environ = {"PIDURABLE_DATA_DIR": str(target)}
    assert desk.run("log", **environ).stdout == desk.run("log").stdout
    assert sorted(path.name for path in copy.parent.iterdir()) == ["cwd", "session.sqlite"]  # read, and nothing is left beside it
    again = desk.run("sessions", "backup", str(target))
    assert (again.code, "is there already" in again.stderr) == (2, True)


@pytest.mark.slow
def test_a_jsonl_session_is_backed_up_and_no_chat_is_taken_out_of_it(desk: Desk) -> None:
    assert desk.run(*ASK, WORDS, PIDURABLE_STORE="jsonl").code == 0
    target = desk.root / "backup"
    made = desk.run("sessions", "backup", str(target))
    assert (made.code, made.stdout.strip().endswith("/session.jsonl")) == (0, True)
    assert desk.run("log", PIDURABLE_DATA_DIR=str(target)).stdout == desk.run("log").stdout
    refused = desk.run("sessions", "delete", "1.1", "--yes")
    assert (refused.code, "pidurable sessions convert 1 --to sqlite" in refused.stderr) == (3, True)


@pytest.mark.slow
def test_prune_lists_what_is_old_and_finished_and_deletes_it_after_a_yes(
    talked: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = listed(talked)
    cwd = str(talked.work)
    later = ManualClock(int(str(before[0]["lastAtMs"])) + 2 * 3_600_000)
    for name, value in talked.environ().items():
        if name.startswith("PIDURABLE_"):
            monkeypatch.setenv(name, value)
    monkeypatch.setattr(keeping, "set_up", lambda cwd, environ: set_up(cwd, environ, clock=later))
    assert keeping.prune("3h", cwd=cwd, yes=True, dry_run=False) == 0
    assert "no finished chat is older than 3h." in capsys.readouterr().err
    assert keeping.prune("1h", cwd=cwd, yes=False, dry_run=True) == 0
    assert [str(one["id"]) in capsys.readouterr().out for one in before[:1]] == [True]
    with pytest.raises(BadRequest, match="Nobody is there to be asked"):
        keeping.prune("1h", cwd=cwd, yes=False, dry_run=False)
    assert listed(talked) == before
    assert keeping.prune("1h", cwd=cwd, yes=True, dry_run=False) == 0
    assert listed(talked) == []


@pytest.mark.slow
def test_an_age_that_is_none_deletes_nothing(desk: Desk) -> None:
    wrong = desk.run("sessions", "prune", "--older-than", "soon")
    assert (wrong.code, "'soon' is not an age" in wrong.stderr) == (2, True)


def _found(session: int, number: int, *, at_ms: int, unfinished: bool = False) -> Found:
    chat = Chat(conversation_id=number, title="t", first_text="t", last_at_ms=at_ms, last_seq=1, unfinished=unfinished, is_empty=False, model="m")
    return Found(session=session, chat=chat)


def test_only_finished_chats_without_newer_work_are_old_and_forks_go_first() -> None:
    chats = [_found(1, 1, at_ms=5), _found(1, 9, at_ms=5), _found(1, 3, at_ms=50), _found(2, 2, at_ms=1), _found(1, 4, at_ms=1, unfinished=True)]
    assert [found.id for found in old_ones(chats, before_ms=10)] == ["1.9", "1.1", "2.2"]


@pytest.mark.parametrize(("text", "age"), [("12h", 43_200_000), ("30d", 2_592_000_000), ("4w", 2_419_200_000)])
def test_an_age_has_a_unit(text: str, age: int) -> None:
    assert age_ms(text) == age


@pytest.mark.parametrize("text", ["", "30", "d", "0d", "-1d", "1y", "1 d", "\u0663d"])
def test_what_is_no_age_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="is not an age"):
        age_ms(text)
