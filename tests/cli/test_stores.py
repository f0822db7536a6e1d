"""Which kind of store a session is: chosen for new ones, kept for old ones, converted on demand (CL-3, CL-4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_durable_tui.cli.chats import find_chats
from pi_durable_tui.cli.compose import open_free, open_session
from pi_durable_tui.cli.paths import Place, prepare
from pi_durable_tui.cli.settings import UserSettings
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.clock import ManualClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.errors import Refused
from tests.support.cli_runs import Desk
from tests.support.small_disk import small_disk
from tests.support.storage_records import first_chat

PROMPT = "In three sentences: what happens to this conversation if the power goes out now?"


def setup_of(tmp_path: Path, **settings: object) -> Setup:
    return Setup(
        place=Place(directory=tmp_path, folder=tmp_path / "data" / "place"),
        settings=UserSettings(**settings),  # type: ignore[arg-type]
        environ={},
        clock=ManualClock(),
        entropy=SeededEntropy(1),
    )


def stores(desk: Desk) -> list[str]:
    return sorted(item.name for item in desk.data.glob("*/session*") if item.suffix in {".sqlite", ".jsonl"} or ".converted-" in item.name)


@pytest.mark.rule("CL-4")
async def test_a_new_session_is_of_the_kind_that_is_set_and_an_old_one_stays_what_it_is(tmp_path: Path) -> None:
    setup = setup_of(tmp_path, store="jsonl")
    number, storage = await open_free(setup)
    await storage.commit(first_chat())
    await storage.close()
    assert (number, storage.name) == (1, str(setup.place.folder / "session.jsonl"))
    storage = await open_session(setup_of(tmp_path, store="sqlite"), 1)
    assert (storage.name, (await storage.metadata()).next_seq) == (str(setup.place.folder / "session.jsonl"), 2)
    await storage.close()


@pytest.mark.rule("ST-16", "ST-18")
async def test_what_was_cut_from_a_session_is_told_when_it_is_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    setup = setup_of(tmp_path, store="jsonl")
    storage = (await open_free(setup))[1]
    await storage.close()
    with (setup.place.folder / "session.jsonl" / "main.jsonl").open("ab") as file:
        file.write(b"torn")
    await (await open_session(setup, 1, read_only=True)).close()
    assert capsys.readouterr().err == ""
    await (await open_session(setup, 1)).close()
    assert capsys.readouterr().err == (
        "pidurable: session 1: 4 bytes of an unfinished commit before the first commit were cut from main.jsonl and kept in main.jsonl.cut-1.\n"
    )


async def test_a_session_that_is_there_twice_is_opened_by_nobody_and_named(tmp_path: Path) -> None:
    for kind in ("jsonl", "sqlite"):
        setup = setup_of(tmp_path / kind, store=kind)
        prepare(setup.place)
        await (await open_session(setup, 1)).close()
    (tmp_path / "jsonl/data/place/session.jsonl").rename(setup.place.folder / "session.jsonl")
    with pytest.raises(Refused, match="two kinds: its conversion was cut off") as caught:
        await open_session(setup, 1)
    assert caught.value.hint == "End it with pidurable sessions convert 1 --to jsonl."
    notes: list[str] = []
    assert await find_chats(setup, note=notes.append) == ()
    assert len(notes) == 1
    number, storage = await open_free(setup)
    await storage.close()
    assert number == 2


@pytest.mark.rule("CL-3", "CL-6")
def test_a_session_is_converted_there_and_back_and_its_chat_goes_on(desk: Desk) -> None:
    asked = desk.run("-p", "--model", "playback/01-hello", PROMPT)
    assert (asked.code, stores(desk)) == (0, ["session.sqlite"])
    shown = desk.run("log").stdout
    there = desk.run("sessions", "convert", "--to", "jsonl")
    assert (there.code, there.stdout.partition(";")[0], stores(desk)) == (
        0,
        "Session 1 is now session.jsonl",
        ["session.jsonl", "session.sqlite.converted-1"],
    )
    assert desk.run("log").stdout == shown
    assert '/session.jsonl"' in desk.run("sessions", "--json").stdout
    assert desk.run("sessions", "convert", "1", "--to", "sqlite").code == 0
    assert desk.run("log").stdout == shown
    assert stores(desk) == ["session.jsonl.converted-1", "session.sqlite", "session.sqlite.converted-1"]


@pytest.mark.rule("CL-6")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["1", "--to", "jsonl"], "There is no session 1 in"),
        (["1", "--to", "postgres"], "'postgres'"),
        (["0", "--to", "jsonl"], "greater than or equal to 1"),
        ([], "--to"),
    ],
)
def test_what_cannot_be_converted_ends_with_2_and_one_paragraph(desk: Desk, arguments: list[str], words: str) -> None:
    ended = desk.run("sessions", "convert", *arguments)
    assert (ended.code, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert words in ended.stderr


@pytest.mark.rule("CL-4")
def test_a_chat_in_a_jsonl_session_is_continued(desk: Desk) -> None:
    asked = desk.run("-p", "--model", "playback/01-hello", PROMPT, PIDURABLE_STORE="jsonl")
    assert (asked.code, stores(desk)) == (0, ["session.jsonl"])
    again = desk.run("-p", "--continue")
    assert (again.code, again.stdout, stores(desk)) == (0, asked.stdout, ["session.jsonl"])
    refused = desk.run("sessions", "convert", "--to", "jsonl")
    assert (refused.code, refused.stderr) == (2, "pidurable: Session 1 is a jsonl store already. Nothing was changed.\n")


@pytest.mark.rule("ST-18", "TU-9")
def test_what_was_cut_from_a_session_stands_in_its_transcript_once(desk: Desk) -> None:
    assert desk.run("-p", "--model", "playback/01-hello", PROMPT, PIDURABLE_STORE="jsonl").code == 0
    (main,) = desk.data.glob("*/session.jsonl/main.jsonl")
    with main.open("ab") as file:
        file.write(b"torn")
    first = desk.run("-p", "--continue")
    assert (first.code, "4 bytes of an unfinished commit" in first.stderr) == (0, True)
    assert "unfinished commit" not in desk.run("-p", "--continue").stderr
    told = "4 bytes at the end of main.jsonl were of no stored commit: they were cut off and are kept in main.jsonl.cut-1, beside the session."
    shown = " ".join(desk.run("log").stdout.split())
    assert (shown.count("Repaired at opening"), shown.count(told)) == (1, 1)


@pytest.mark.slow
@pytest.mark.rule("PR-17", "CL-6")
def test_a_chat_on_a_full_or_read_only_disk_says_so_can_be_read_and_goes_on_when_there_is_room(desk: Desk) -> None:
    hello = ("--model", "playback/01-hello", PROMPT)
    with small_disk(desk.data) as disk:
        if disk is None:
            pytest.skip("no disk may be mounted here")
        assert desk.run("-p", *hello).code == 0
        store = desk.run("sessions", "path").stdout.strip()
        disk.fill()
        full = desk.run("-c", "-p", *hello)
        assert (full.code, full.stdout) == (4, "")
        assert full.stderr == (
            f"pidurable: The disk of the session {store} is full, so it cannot be opened for writing. Nothing was changed. "
            "Make room there. To look at it needs none: pidurable log.\n"
        )
        log = desk.run("log")
        assert (log.code, log.stderr) == (0, "")
        disk.free()
        disk.remount("ro")
        locked = desk.run("-c", "-p", *hello)
        assert (locked.code, desk.run("log").stdout) == (4, log.stdout)
        assert locked.stderr == (
            f"pidurable: The lock file {store}.lock cannot be used: Read-only file system. The session was not opened. "
            "Make its folder writable. To look at the session needs no lock: pidurable log.\n"
        )
        disk.remount("rw")
        assert desk.run("-c", "-p", *hello[:2]).code == 0
