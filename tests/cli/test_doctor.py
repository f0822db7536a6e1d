"""`pidurable doctor`: finds what is wrong, names the next step, shows no key and changes nothing (SA-16, SA-17, ST-15)."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from pi_durable_tui.cli.check import machine, sandbox
from pi_durable_tui.cli.check.doctor import guarantee, key_bindings, kills, moved
from pi_durable_tui.cli.check.findings import Finding, as_text
from pi_durable_tui.cli.check.proof import drive_finding, store_finding
from pi_durable_tui.cli.check.proof import store as tried_store
from pi_durable_tui.cli.check.stores import facts_of, readable_by_others
from pi_durable_tui.clock import ManualClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.records.task import Running, Task
from pi_durable_tui.selftest.ring import Told
from pi_durable_tui.storage.files import Mount, RealFiles
from pi_durable_tui.storage.sqlite.version import is_safe
from pi_durable_tui.tools.process import ProcessFacts
from tests.support.cli_runs import Desk, Ended

SECRET = "sk-not-to-be-shown-anywhere"


def findings(ended: Ended) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in json.loads(ended.stdout)}


def store(desk: Desk) -> Path:
    assert desk.run("-p", "--model", "playback/01-hello", "In three sentences: what happens if the power goes out now?").code == 0
    return next(desk.data.glob("*/session.sqlite"))


def everything(desk: Desk) -> dict[str, tuple[int, int]]:
    return {str(path.relative_to(desk.root)): (path.stat().st_mode, path.stat().st_mtime_ns) for path in desk.root.rglob("*")}


def test_keys_of_ones_own_are_looked_at_too(tmp_path: Path) -> None:
    assert key_bindings(tmp_path) == []
    file = tmp_path / "keybindings.json"
    file.write_text('{"tasks": ["alt+m"]}')
    assert key_bindings(tmp_path) == [Finding(name="key bindings", state="good", text=str(file))]
    file.write_text('{"taks": ["alt+m"], "pick_model": 5}')
    (found,) = key_bindings(tmp_path)
    assert (found.state, found.next_step) == ("note", "Correct the file; /hotkeys in the app shows every key.")
    assert found.text == f'{file}, "taks": there is no such action. Is it "tasks"? And 1 more.'
    file.write_text("{")
    assert key_bindings(tmp_path)[0].state == "note"


@pytest.mark.slow
@pytest.mark.rule("SA-17", "CL-6")
def test_a_healthy_machine_is_found_so_no_key_is_shown_and_nothing_is_changed(desk: Desk) -> None:
    store(desk)
    before = everything(desk)
    ended = desk.run("doctor", "--json", OPENAI_API_KEY=SECRET)
    found = findings(ended)
    assert (ended.code, ended.stderr) == (0, "")
    assert [name for name, one in found.items() if one["state"] == "bad"] == []
    assert found["session 1"]["text"].startswith("sound, ")
    assert found["keys"]["text"] == "openai (OPENAI_API_KEY); values are not looked at"
    assert found["terminal"]["state"] == "note"
    assert SECRET not in ended.stdout
    assert everything(desk) == before


@pytest.mark.slow
def test_in_an_empty_home_it_finds_nothing_wrong_and_makes_nothing(desk: Desk) -> None:
    before = everything(desk)
    ended = desk.run("doctor")
    assert (ended.code, ended.stderr) == (0, "")
    assert "! keys " in ended.stdout
    assert "pidurable demo" in ended.stdout
    assert everything(desk) == before


@pytest.mark.slow
@pytest.mark.rule("SA-16", "ST-15")
@pytest.mark.parametrize(
    ("change", "name", "words"),
    [
        (lambda path: path.chmod(0o644), "data folder", "are not private"),
        (lambda path: path.parent.chmod(0o755), "data folder", "are not private"),
        (lambda path: path.write_bytes(b"no database" * 1_000), "session 1", "is damaged"),
        (lambda path: (path.parent / "cwd").write_bytes(b"/elsewhere"), "sessions", "holds the sessions of"),
    ],
)
def test_what_is_wrong_is_named_with_a_next_step(desk: Desk, change: Callable[[Path], object], name: str, words: str) -> None:
    change(store(desk))
    ended = desk.run("doctor", "--json")
    one = findings(ended)[name]
    assert (ended.code, one["state"], words in one["text"], bool(one["nextStep"])) == (1, "bad", True, True)


@pytest.mark.slow
@pytest.mark.rule("CL-4")
def test_wrong_settings_are_a_finding_and_no_crash(desk: Desk) -> None:
    (desk.root / "config").mkdir()
    (desk.root / "config/settings.json").write_text('{"theme": "pink"}')
    ended = desk.run("doctor", "--json")
    one = findings(ended)["settings"]
    assert (ended.code, one["state"], one["nextStep"].startswith('Allowed: "dark"')) == (1, "bad", True)


@pytest.mark.slow
@pytest.mark.rule("PR-4")
def test_proving_measures_the_disk_and_kills_and_says_which_guarantee_holds(desk: Desk) -> None:
    ended = desk.run("doctor", "--prove", "--json")
    found = findings(ended)
    assert ended.code == 0
    assert (found["kills"]["state"], found["kills"]["text"].startswith("20 kills in ")) == ("good", True)
    assert found["fsync"]["text"].startswith("fsync of a page takes ")
    assert found["store, tried"]["state"] == "good"
    assert found["drive"]["text"].endswith("cannot be known from here")
    assert found["guarantee"]["text"].split(":")[0] in {"power", "process"}
    assert found["sandbox, tried"]["text"].startswith("off; ")
    assert [path.name for path in desk.data.rglob("*")] == []
    assert list((desk.root / "tmp").iterdir()) == []


# --------------------------------------------------------------------------------------------------------------- judgements


@pytest.mark.parametrize(("version", "safe"), [("3.51.3", True), ("3.54.0", True), ("4.0", True), ("3.51.2", False), ("3.40.1", False), ("odd", False)])
def test_a_sqlite_that_damages_stores_is_refused(version: str, safe: bool) -> None:
    assert (is_safe(version), machine.sqlite(version).state) == (safe, "good" if safe else "bad")


@pytest.mark.parametrize(("kind", "state"), [("ext4", "good"), ("nfs4", "note"), ("fuse.sshfs", "note"), ("tmpfs", "note"), (None, "note")])
def test_a_network_file_system_and_memory_are_remarked(kind: str | None, state: str) -> None:
    assert machine.file_system_finding(kind).state == state


@pytest.mark.parametrize(("times", "state"), [([3.0, 2.0, 9.0], "good"), ([0.01, 0.02, 5.0], "note")])
def test_an_fsync_that_is_faster_than_any_disk_is_not_believed(times: list[float], state: str) -> None:
    assert machine.sync(times).state == state


@pytest.mark.parametrize(
    ("mount", "cache", "preloaded", "state", "words"),
    [
        (None, "", "", "good", "does not tell of its cache"),
        (Mount("ext4", frozenset({"rw"})), "write back", "", "good", "is told to flush it with every fsync"),
        (Mount("ext4", frozenset({"rw"})), "write through", "", "good", "a virtual machine or a controller"),
        (Mount("ext4", frozenset({"rw", "nobarrier"})), "write back", "", "note", "ext4 is mounted without barriers"),
        (None, "write back", "/usr/lib/libeatmydata.so", "note", "swallows every flush"),
    ],
)
def test_what_can_be_known_of_the_drive_is_told_and_what_cannot(mount: Mount | None, cache: str, preloaded: str, state: str, words: str) -> None:
    found = drive_finding(mount, cache, preloaded)
    assert (found.state, words in found.text) == (state, True)


@pytest.mark.rule("PR-4", "ST-12")
def test_a_session_is_tried_on_the_disk_of_the_data_folder_and_leaves_nothing(tmp_path: Path) -> None:
    found = tried_store(tmp_path, RealFiles(), ManualClock(), SeededEntropy(1))
    assert (found.state, found.text) == (
        "good",
        "a session with a write-ahead log: a commit takes 0.0 ms, a reader follows, a second owner is refused, all of it is sound",
    )
    assert list(tmp_path.iterdir()) == []
    assert store_finding(["a reader does not see what was committed"], 0, has_log=False).state == "bad"


def test_the_probe_leaves_no_file(tmp_path: Path) -> None:
    assert machine.sync_times_ms(tmp_path, RealFiles(), ManualClock(), SeededEntropy(1)) == [0.0] * machine.SYNCS
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("environ", "size", "encoding", "state", "words"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, (80, 24), "utf-8", "good", "xterm-256color 80×24, utf-8, colours truecolor"),
        ({"TERM": "tmux-256color", "TMUX": "x"}, (80, 24), "UTF-8", "good", "tmux"),
        ({"TERM": "dumb"}, (80, 24), "utf-8", "bad", "dumb"),
        ({}, (80, 24), "utf-8", "bad", "no TERM"),
        ({"TERM": "x"}, (80, 24), "ascii", "note", "ascii"),
        ({"TERM": "x", "NO_COLOR": "1"}, (30, 8), "utf-8", "note", "NO_COLOR"),
        ({"TERM": "x"}, None, "utf-8", "note", "none"),
    ],
)
def test_the_terminal_is_judged(environ: dict[str, str], size: tuple[int, int] | None, encoding: str, state: str, words: str) -> None:
    columns, rows = size or (80, 24)
    found = machine.terminal(environ, is_terminal=size is not None, columns=columns, rows=rows, encoding=encoding)
    assert (found.state, words in found.text) == (state, True)


@pytest.mark.rule("SA-16")
def test_files_open_to_others_are_found_and_links_are_not_followed(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "a").mkdir(mode=0o700)
    for name, mode in (("a/good", 0o600), ("a/bad", 0o604)):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
    (tmp_path / "link").symlink_to("/etc")
    assert list(readable_by_others(tmp_path)) == [tmp_path / "a/bad"]
    assert stat.S_IMODE((tmp_path / "a/bad").stat().st_mode) == 0o604


@pytest.mark.rule("PR-7")
def test_the_process_of_a_running_command_is_read_from_its_task() -> None:
    facts = ProcessFacts(pid=os.getpid(), start_time=5, boot_id="b")
    task = Task(id=7, kind="pi.tool", conversation_id=1, input={}, state=Running(checkpoint={}), created_at_ms=0, memos={"started": facts.to_json()})
    assert facts_of(task) == facts
    assert facts_of(Task(id=7, kind="pi.tool", conversation_id=1, input={}, state=Running(checkpoint={}), created_at_ms=0)) is None


def test_the_guarantee_follows_from_what_was_found() -> None:
    good = [Finding(name=name, state="good", text="") for name in ("SQLite", "file system", "fsync")]
    weak = [*good[:2], Finding(name="fsync", state="note", text="")]
    broken = Told(kills={"time": 1}, faults=("lost",), kept="/k")
    assert guarantee(good, Told()).text.startswith("power: ")
    assert guarantee(weak, Told()).text.endswith("because of fsync")
    assert (guarantee(good, broken).state, kills(broken, 3).state, kills(Told(), 3).state) == ("bad", "bad", "good")


def test_the_next_step_stands_below_its_finding_and_foreign_names_are_safe() -> None:
    lines = as_text([Finding(name="a", state="good", text="fine"), moved("/old\x1b[2J", "/new")]).split("\n")
    assert lines[0] == "✓ a      fine"
    assert lines[1].startswith("! moved  /old")
    assert lines[2].startswith("         → If it became /new")
    assert "\x1b" not in "".join(lines)


@pytest.mark.rule("SA-15")
@pytest.mark.parametrize(
    ("mode", "is_there", "state", "words"),
    [("off", True, "good", "bubblewrap is installed"), ("full", False, "bad", "no command is run"), ("files", True, "note", "tried before the first command")],
)
def test_a_sandbox_is_not_claimed_before_it_was_tried(mode: Literal["off", "files", "full"], is_there: bool, state: str, words: str) -> None:
    found = sandbox.wanted(mode, is_there=is_there)
    assert (found.state, words in found.text) == (state, True)


@pytest.mark.rule("SA-15")
@pytest.mark.parametrize(
    ("mode", "wrong", "state", "words"),
    [
        ("full", {}, "good", "full: holds"),
        ("full", {"full": "It leaks."}, "bad", "It leaks."),
        ("files", {"full": "It leaks."}, "good", "files: holds"),
        ("off", {"full": "It leaks."}, "good", "it would hold here as files"),
        ("off", {"files": "It leaks.", "full": "It leaks."}, "note", "none would hold here. It leaks."),
    ],
)
def test_a_sandbox_holds_where_it_was_tried_and_nothing_got_through(
    mode: Literal["off", "files", "full"], wrong: dict[str, str], state: str, words: str
) -> None:
    found = sandbox.proved(mode, wrong)
    assert (found.state, words in found.text) == (state, True)
