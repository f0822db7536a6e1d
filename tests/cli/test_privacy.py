"""Whatever the program writes is for its owner alone, under any umask, and nothing has a fixed name in a shared folder (SA-16)."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli_runs import ROOT, Desk
from tests.support.patience import RUN_S


def careless(desk: Desk, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A run under a umask that takes no right from anybody."""
    command = ["sh", "-c", 'umask 0; exec "$@"', "sh", sys.executable, "-m", "pi_durable_tui.cli.main", *arguments]
    return subprocess.run(
        command, cwd=desk.work, env=desk.environ(**environ), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_S, check=False
    )


def open_to_others(folder: Path) -> list[str]:
    return [str(path) for path in (folder, *folder.rglob("*")) if not path.is_symlink() and stat.S_IMODE(path.lstat().st_mode) & 0o077]


@pytest.mark.slow
@pytest.mark.rule("SA-16", "CL-1")
@pytest.mark.parametrize(("kind", "name"), [("sqlite", "02-read-edit-test"), ("jsonl", "10-parallel-tools")])
def test_everything_that_is_written_is_private_whatever_the_umask(desk: Desk, kind: str, name: str) -> None:
    story = ROOT / "sessions" / name
    for path in (story / "workspace").iterdir():
        if path.is_file():
            (desk.work / path.name).write_bytes(path.read_bytes())
    (desk.root / "tmp").chmod(0o1777)
    prompt = json.loads((story / "input.jsonl").read_text().splitlines()[0])["submit"]
    assert careless(desk, "-p", "--model", f"playback/{name}", "--approve", "all", prompt, PIDURABLE_STORE=kind).returncode == 0
    exported, copied = desk.root / "out" / "chat.html", desk.root / "out" / "copy"
    exported.parent.mkdir()
    assert careless(desk, "export", "-o", str(exported)).returncode == 0
    assert careless(desk, "sessions", "backup", str(copied)).returncode == 0
    assert careless(desk, "-p", "--no-session", "--model", "playback/01", "What if the power goes out?").returncode == 0
    assert open_to_others(desk.data) == []
    assert open_to_others(copied) == []
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600
    assert list((desk.root / "tmp").iterdir()) == []


@pytest.mark.slow
@pytest.mark.rule("SA-16")
def test_temporary_folders_are_private_and_have_no_fixed_name(desk: Desk) -> None:
    kept: list[str] = []
    broken = "from pi_durable_tui.selftest import script; script.live = lambda stage: 3; from pi_durable_tui.cli.main import main; main()"
    for _ in range(2):
        command = ["sh", "-c", 'umask 0; exec "$@"', "sh", sys.executable, "-c", broken, "selftest", "--kill", "1"]
        ended = subprocess.run(command, cwd=desk.work, env=desk.environ(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_S, check=False)
        assert ended.returncode == 1
    kept = [path.name for path in (desk.root / "tmp").iterdir()]
    assert len(set(kept)) == 2
    assert [stat.S_IMODE((desk.root / "tmp" / name).stat().st_mode) for name in kept] == [0o700, 0o700]
