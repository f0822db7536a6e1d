"""Streams as a program may find them, and the end of the process, as real processes (CASE-H3, CL-6, CL-7)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli_runs import Desk, Ended, ended

HELLO = ("-p", "--model", "playback/01-hello", "what if the power goes out")
SHOWN = (("--version",), ("--help",), ("completion", "bash"), ("sessions",), ("log",), ("export", "-o", "-"), ("inspect",), ("demo", "01-hello", "--headless"))
HALTED_IN_IMPORT = """
import _imp, atexit, os, threading

class Cleared:
    def __del__(self):
        from json import tool

asked, held, CLEARED = threading.Event(), threading.Event(), Cleared()

def at_exit():
    asked.set()
    held.wait()

atexit.register(at_exit)
open(os.environ["LOADING"], "w").close()
asked.wait()
_imp.acquire_lock()
held.set()
threading.Event().wait()
"""


def run_with(desk: Desk, redirection: str, *arguments: str) -> Ended:
    """Run with streams as a shell sets them."""
    command = ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "pi_durable_tui.cli.main", *arguments]
    return ended(subprocess.Popen(command, cwd=desk.work, env=desk.environ(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE))


@pytest.mark.slow
@pytest.mark.rule("CL-6", "CASE-H3")
@pytest.mark.parametrize(("redirection", "why"), [(">&-", "it is closed"), (">/dev/full", "No space left on device")])
def test_output_that_cannot_be_written_is_told_whatever_the_command_and_costs_nothing_stored(desk: Desk, redirection: str, why: str) -> None:
    told = (4, "", f"pidurable: The output cannot be written: {why}. What is stored is as it was. Send it elsewhere; pidurable log prints a chat again.\n")
    first = run_with(desk, redirection, *HELLO)
    assert (first.code, first.stdout, first.stderr) == told
    assert desk.run("log").stdout.startswith("> what if the power goes out\n")
    for command in SHOWN:
        result = run_with(desk, redirection, *command)
        assert (result.code, result.stdout, result.stderr) == told, command


@pytest.mark.slow
@pytest.mark.rule("CL-6")
@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_a_stderr_that_takes_nothing_changes_neither_the_work_nor_the_exit_code(desk: Desk, redirection: str) -> None:
    assert run_with(desk, redirection, "--nonsense") == Ended(2, "", "")
    asked = run_with(desk, redirection, "-p", "--max-cost", "1", *HELLO[1:])  # a remark on the price would go there
    assert (asked.code, len(asked.stdout) > 100) == (0, True)


@pytest.mark.slow
@pytest.mark.rule("CASE-H3")
def test_no_file_of_a_session_gets_the_number_of_a_closed_stream(desk: Desk, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    (tmp_path / "look").mkdir()
    (tmp_path / "look" / "sitecustomize.py").write_text(
        "import atexit, os\n"
        f"atexit.register(lambda: open({str(seen)!r}, 'w').write(' '.join(os.readlink(f'/proc/self/fd/{{number}}') for number in (0, 1, 2))))\n"
    )
    command = [sys.executable, "-m", "pi_durable_tui.cli.main", *HELLO]
    environ = desk.environ(PIDURABLE_STORE="jsonl")
    environ["PYTHONPATH"] = f"{tmp_path / 'look'}:{environ['PYTHONPATH']}"
    subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command], cwd=desk.work, env=environ, check=False, timeout=40)
    assert seen.read_text() == "/dev/null /dev/null /dev/null"


@pytest.mark.slow
@pytest.mark.rule("CL-7")
def test_a_signal_ends_the_program_also_while_the_model_library_is_loaded(desk: Desk, tmp_path: Path) -> None:
    """The interpreter ended the loading thread with the lock of imports in its hands, and waited for it for ever."""
    (tmp_path / "halted" / "litellm").mkdir(parents=True)
    (tmp_path / "halted" / "litellm" / "__init__.py").write_text(HALTED_IN_IMPORT)
    path = f"{tmp_path / 'halted'}:{desk.environ()['PYTHONPATH']}"
    loading = tmp_path / "loading"
    os.mkfifo(loading)
    process = desk.start("-p", "--model", "openai/any", "hello", PYTHONPATH=path, OPENAI_API_KEY="none", LOADING=str(loading))
    assert loading.read_bytes() == b""  # waits until the library is there
    process.send_signal(signal.SIGTERM)
    try:
        assert ended(process).code == 128 + signal.SIGTERM
    finally:
        process.kill()
