"""Other users of the machine, and what lies around after a run: modes, owners, links, keys, listeners (SA-16, SA-17, SA-18; CASE-G2)."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.conftest import Begin
from tests.support.journey_desk import Journey, calls, processes, wait_until
from tests.support.patience import RUN_S

KEY = "a-loaded-key-4f9a8b7c6d5e4f3a2b1c0d9e"
COMMAND = [sys.executable, "-P", "-m", "pi_durable_tui.cli.main"]
CHAT = ("-p", "--approve", "all")


def started(journey: Journey, *arguments: str, umask: int, **environ: str) -> subprocess.Popen[str]:
    """A command of the program under a umask, with a real-looking key loaded."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=journey.work,
        env={**journey.environ, "OPENAI_API_KEY": KEY, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        umask=umask,
    )


def run(journey: Journey, *arguments: str, umask: int = 0o022, code: int = 0, **environ: str) -> str:
    """Its output, once it has ended as it should."""
    process = started(journey, *arguments, umask=umask, **environ)
    stdout, stderr = process.communicate(timeout=RUN_S)
    assert process.returncode == code, stdout + stderr
    return stdout + stderr


def files_below(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        yield from folder.rglob("*")


def too_open(*folders: Path) -> list[str]:
    """What others could read or change."""
    found = ((path, path.lstat()) for path in files_below(*folders))
    return [f"{stat.S_IMODE(status.st_mode):o} {path}" for path, status in found if not stat.S_ISLNK(status.st_mode) and status.st_mode & 0o077]


def holding(needle: bytes, *folders: Path) -> list[str]:
    return [str(path) for path in files_below(*folders) if path.is_file() and needle in path.read_bytes()]


def telling(*, spill: bool = True) -> list[list[dict]]:
    """A model and tools that say the key in every way that they have."""
    halves = [{"text": f"The key is {KEY[:11]}"}, {"delay_ms": 250, "text": KEY[11:]}, {"text": " and that was it."}]
    flood = "for i in $(seq 4000); do echo line $i $(cat secret.txt); done" if spill else "cat secret.txt"
    return [
        [{"reason": f"I wonder whether {KEY} works"}, *halves, *calls(("bash", {"command": "cat secret.txt; echo done"}), ("read", {"path": "secret.txt"}))],
        calls(
            ("bash", {"command": flood}),
            ("grep", {"pattern": "a-load"}),
            ("edit", {"path": "secret.txt", "edits": [{"old": "after", "new": "later"}]}),
            first=3,
        ),
        calls(("bash", {"command": f"echo {KEY} > stolen.txt"}), ("write", {"path": "stolen.txt", "content": f"{KEY}\n"}), first=6),
        [*halves, {"finish": "stop"}, {"usage": {"prompt": 10, "completion": 5, "cached": 0}}],
    ]


@pytest.mark.slow
@pytest.mark.rule("SA-16", "SA-17", "ST-14", "CASE-G2")
@pytest.mark.parametrize(("umask", "store"), [(0o000, "sqlite"), (0o022, "jsonl")])
def test_a_run_leaves_nothing_that_others_can_read_and_no_loaded_key_in_any_byte_of_it(begin: Begin, umask: int, store: str) -> None:
    journey = begin(*telling(), calls(("bash", {"command": "cat secret.txt; sleep 329.317"}), first=8))
    secret = journey.work / "secret.txt"
    secret.write_text(f"before\nOPENAI_API_KEY={KEY}\nafter\n")
    said = run(journey, *CHAT, f"my key is {KEY}, use it", umask=umask, PIDURABLE_STORE=store)
    assert "and that was it." in said
    assert journey.refused == []
    assert secret.read_text() == f"before\nOPENAI_API_KEY={KEY}\nlater\n"  # a file that is worked on is never altered by hiding
    assert not (journey.work / "stolen.txt").exists()  # and nothing is written with a mark in the place of a key
    killed = started(journey, "-c", *CHAT, "once more", umask=umask, PIDURABLE_STORE=store)
    wait_until(lambda: processes("sleep 329.317") != [], what="the command to run")
    killed.kill()
    killed.communicate()
    exported = run(journey, "export", "1.1", "--html", "-o", "chat.html", umask=umask)
    page = journey.work / "chat.html"
    assert page.exists(), exported
    state = [journey.desk.data, journey.desk.root / "tmp", journey.desk.root / "home"]
    assert {path.suffix for path in files_below(journey.desk.data)} >= ({".lock", ".txt"} | ({".sqlite"} if store == "sqlite" else {".jsonl"}))
    assert too_open(*state) == []
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert holding(KEY.encode(), *state) == []
    assert holding(KEY[:20].encode(), *state) == []
    assert KEY not in page.read_text()
    asked = [event["body"] for event in journey.events("request")]
    assert [number for number, body in enumerate(asked) if KEY in str(body)] == []


@pytest.mark.slow
@pytest.mark.rule("SA-16", "SA-18", "CASE-G2")
def test_nothing_is_put_into_a_shared_folder_a_wide_folder_is_closed_and_nobody_can_connect(begin: Begin) -> None:
    mark = "sleep 328.443"
    journey = begin(calls(("bash", {"command": f"seq 40000; {mark}"})), [{"text": "ok"}, {"finish": "stop"}])
    shared = journey.desk.root / "tmp"
    shared.chmod(0o1777)
    victim = journey.desk.root / "victim"
    for name in ("pidurable", "pidurable.log", "call-7.txt", "session.sqlite", "pidurable-0"):
        (shared / name).symlink_to(victim)
    planted = sorted(shared.iterdir())
    run(journey, "sessions")
    wide = journey.desk.data / "x"
    wide.mkdir(parents=True, mode=0o755)
    app = journey.start("--approve", "all")
    app.send("go")
    app.wait_until(lambda: processes(mark) != [], what="the command to run")
    assert listeners(app.process.pid) == []
    app.kill()
    folder = next(path.parent for path in journey.desk.data.rglob("session.sqlite"))
    folder.chmod(0o755)
    again = journey.start("--continue", "--approve", "all")
    again.wait_for("ok", "● stored")
    assert listeners(again.process.pid) == []
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert too_open(folder) == []
    assert (sorted(shared.iterdir()), victim.exists()) == (planted, False)


def listeners(pid: int) -> list[str]:
    """Sockets of a program and of what it started on which somebody else could reach it: TCP and UDP ones, and Unix sockets that listen."""
    family = {pid}
    for _ in range(4):
        family |= {int(child) for one in family for child in children(one)}
    inodes = {target.partition("[")[2][:-1] for one in family for target in open_files(one) if target.startswith("socket:")}
    found: list[str] = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes and (table.startswith("udp") or fields[3] == "0A"):
                found.append(f"{table} {line}")
    for line in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[6] in inodes and int(fields[3], 16) & 0x10000:
            found.append(f"unix {line}")
    return found


def children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def open_files(pid: int) -> list[str]:
    found: list[str] = []
    with contextlib.suppress(OSError):
        for item in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                found.append(str(item.readlink()))
    return found


@pytest.mark.rule("SA-18")
def test_the_search_for_listeners_finds_one() -> None:
    with socket.socket() as one, socket.socket(socket.AF_UNIX) as other:
        assert listeners(os.getpid()) == []
        one.bind(("127.0.0.1", 0))
        one.listen()
        other.bind("\0pidurable-test")
        other.listen()
        assert [line.split()[0] for line in listeners(os.getpid())] == ["tcp", "unix"]
