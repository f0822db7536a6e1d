"""Print mode as a real process: stdin, stdout, exit codes, signals, two at once (CASE-H2, CASE-H3, CASE-H5, CASE-A3, CL-7)."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from pi_durable_tui.cli import streams
from pi_durable_tui.errors import BadRequest
from tests.support.cli_runs import ROOT, Desk, ended

HELLO = ("--model", "playback/01-hello")
ASKED = "what if the power goes out"
TOOL = ("--model", "playback/04-kill-mid-tool", "--approve", "all")
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")


@pytest.fixture(scope="module")
def answer() -> str:
    lines = (ROOT / "sessions/01-hello/model.jsonl").read_text(encoding="utf-8").splitlines()
    return "".join(event["text"] for event in map(json.loads, lines) if event["type"] == "text")


# ------------------------------------------------------------------------------------------------------------ the answer


@pytest.mark.slow
@pytest.mark.rule("CASE-H3")
def test_stdout_holds_the_answer_and_nothing_else(desk: Desk, answer: str) -> None:
    result = desk.run("-p", *HELLO, ASKED)
    assert (result.code, result.stdout, result.stderr) == (0, answer + "\n", "")


@pytest.mark.slow
@pytest.mark.rule("CASE-H3")
def test_piped_text_comes_before_the_prompt_and_both_reach_the_model(desk: Desk) -> None:
    assert desk.run("-p", *HELLO, ASKED, given=b"context\n").code == 0
    assert desk.run("log").stdout.startswith(f"> context\n\n{ASKED}\n")


@pytest.mark.slow
@pytest.mark.rule("CASE-H3")
def test_a_command_of_the_app_is_a_prompt_here_and_that_is_told(desk: Desk) -> None:
    remark = "pidurable: /compact is a command of the app; in print mode it goes to the model, as any other words.\n"
    asked = desk.run("-p", *HELLO[:2], f"/compact {ASKED}")
    assert (asked.code, asked.stderr) == (0, remark)
    assert desk.run("-p", *HELLO[:2], f"/etc/hosts {ASKED}").stderr == ""


@pytest.mark.slow
@pytest.mark.rule("CASE-H3")
def test_bytes_that_are_no_text_are_no_error(desk: Desk) -> None:
    result = desk.run("-p", *HELLO, ASKED, given=bytes(range(256)))
    assert (result.code, result.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.rule("CASE-H3")
def test_json_mode_writes_one_event_per_line_up_to_the_end_of_the_run(desk: Desk) -> None:
    result = desk.run("-p", "--mode", "json", *HELLO, ASKED)
    events = [json.loads(line) for line in result.stdout.splitlines()]
    kinds = [event["type"] for event in events]
    assert (result.code, result.stderr) == (0, "")
    assert kinds[0] == "snapshot"
    assert {"run_start", "message_update", "message_end"} < set(kinds)
    assert kinds[-1] == "run_end"
    assert [event["state"]["status"] for event in events if event["type"] == "submission"] == ["placed", "done"]
    assert sorted(event["seq"] for event in events) == [event["seq"] for event in events]


# ----------------------------------------------------------------------------------------------------------------- stdin


@pytest.mark.rule("CASE-H3")
@pytest.mark.parametrize("given", [b"", b" \n"])
def test_no_prompt_at_all_is_told_in_one_line(desk: Desk, given: bytes) -> None:
    result = desk.run("-p", *HELLO, given=given)
    assert (result.code, result.stdout) == (2, "")
    assert result.stderr == 'pidurable: Print mode needs a prompt, and none was given or piped in. Nothing was started. pidurable -p "PROMPT"\n'


@pytest.mark.rule("CASE-H3")
def test_a_stdin_that_stays_open_and_silent_is_left_alone_after_a_while_and_told() -> None:
    reading, writing = os.pipe()
    notes: list[str] = []
    try:
        assert streams.piped_text(reading, is_needed=False, note=notes.append, patience_s=0.01) == ""
    finally:
        os.close(reading)
        os.close(writing)
    assert notes == ["stdin is open but silent; going on without it (redirect it from /dev/null to avoid the wait)."]


@pytest.mark.rule("CASE-H3")
def test_without_another_prompt_stdin_is_waited_for_and_that_is_told() -> None:
    reading, writing = os.pipe()
    notes: list[str] = []

    def note(text: str) -> None:
        notes.append(text)
        if len(notes) == 2:  # both waits were told: now let it end
            os.write(writing, b"late")
            os.close(writing)

    try:
        assert streams.piped_text(reading, is_needed=True, note=note, patience_s=0.01) == "late"
    finally:
        os.close(reading)
    assert notes == ["reading the prompt from stdin; it ends with the end of the input.", "stdin is still open; waiting for its end."]


@pytest.mark.rule("CASE-H3")
def test_a_stdin_that_does_not_block_is_waited_for_all_the_same() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.write(writing, b"early ")

    def note(_: str) -> None:
        os.write(writing, b"late")
        os.close(writing)

    assert streams.piped_text(reading, is_needed=True, note=note, patience_s=0.01) == "early late"
    os.close(reading)


@pytest.mark.rule("CASE-H3", "CL-6")
def test_a_stdin_that_cannot_be_read_is_told() -> None:
    writing = os.open(os.devnull, os.O_WRONLY)
    with pytest.raises(BadRequest, match=r"stdin cannot be read: Bad file descriptor\. Nothing was sent"):
        streams.piped_text(writing, is_needed=False, note=pytest.fail)
    os.close(writing)


@pytest.mark.rule("CASE-H3")
def test_a_closed_stdin_is_an_empty_one() -> None:
    assert streams.piped_text(None, is_needed=True, note=pytest.fail) == ""


@pytest.mark.rule("CASE-H3")
def test_ten_megabytes_are_read_and_more_than_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "much").write_bytes(b"x" * 10_000_000)
    with (tmp_path / "much").open("rb") as file:
        assert len(streams.piped_text(file.fileno(), is_needed=True, note=pytest.fail)) == 10_000_000
        file.seek(0)
        monkeypatch.setattr(streams, "LIMIT_BYTES", 100)
        with pytest.raises(BadRequest, match="Nothing was sent"):
            streams.piped_text(file.fileno(), is_needed=True, note=pytest.fail)


@pytest.mark.parametrize(
    ("piped", "words", "prompt"), [("", "", ""), ("a\n", "", "a"), ("", "b", "b"), ("\na\n\n", "b", "a\n\nb"), (" \n", "b", "b"), ("  a", " ", "  a")]
)
def test_the_prompt_is_what_was_piped_and_then_the_words(piped: str, words: str, prompt: str) -> None:
    assert streams.prompt_of(piped, words) == prompt


# ----------------------------------------------------------------------------------------------------------- no key, no model


@pytest.mark.rule("CASE-H2", "CL-5")
def test_without_any_key_one_line_names_the_variables_and_nothing_is_stored(desk: Desk) -> None:
    result = desk.run("-p", "hi")
    assert (result.code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert [name for name in KEYS if name not in result.stderr] == []
    assert not desk.data.exists()


@pytest.mark.rule("CASE-H2")
@pytest.mark.parametrize("provider", ["anthropic", "openai"])
@pytest.mark.parametrize("value", ["", " \n"])
def test_a_missing_key_of_the_named_model_is_told_by_its_variable(desk: Desk, provider: str, value: str) -> None:
    variable = f"{provider.upper()}_API_KEY"
    result = desk.run("-p", "--model", f"{provider}/any", "hi", **{variable: value})
    assert (result.code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert f"No key for {provider}: set {variable}" in result.stderr


@pytest.mark.slow
@pytest.mark.rule("CL-6")
def test_a_run_without_an_answer_ends_with_4_and_says_why(desk: Desk) -> None:
    result = desk.run("-p", *HELLO, "something else")
    assert (result.code, result.stdout, result.stderr.count("\n")) == (4, "", 1)
    assert "The run ended without an answer (model_error). Request 1 is not the one that was recorded in 01-hello" in result.stderr


@pytest.mark.slow
@pytest.mark.rule("CASE-B3", "CASE-H3", "GE-6")
def test_a_wait_for_the_next_attempt_is_told_on_stderr(desk: Desk) -> None:
    (desk.root / "config").mkdir(mode=0o700)
    (desk.root / "config" / "settings.json").write_text('{"retry": {"base_delay_ms": 300}}')
    result = desk.run("-p", "--model", "playback/09-retry-then-answer", "Why is a retry with a fixed delay a bad idea?")
    assert (result.code, result.stdout[:41]) == (0, "Because they all come back at the same mo")
    assert re.sub(r"\d+ s\.", "… s.", result.stderr).splitlines() == [
        "pidurable: attempt 1 failed (overloaded). The server is overloaded. The next one begins in … s.",
        "pidurable: attempt 2 failed (rate_limit). Too many requests. The next one begins in … s.",
    ]


# -------------------------------------------------------------------------------------------------------------- approvals


@pytest.mark.slow
@pytest.mark.rule("TU-19")
def test_a_question_is_denied_and_stderr_says_how_to_allow(desk: Desk) -> None:
    result = desk.run("-p", "--model", "playback/04-kill-mid-tool", "exactly once")
    assert "pidurable: bash was not allowed: bash sh publish.sh To allow it: --approve edits or --approve all.\n" in result.stderr
    assert list(desk.work.iterdir()) == []


# -------------------------------------------------------------------------------------------------------- kill, continue, two


def _until_output(process: subprocess.Popen[bytes], word: bytes) -> None:
    """Read JSON events until one holds the word: it is committed then."""
    assert process.stdout is not None
    for line in process.stdout:
        if word in line:
            return
    pytest.fail(f"{word!r} never came: {process.stderr.read() if process.stderr else b''!r}")


def _start_tool(desk: Desk, **environ: str) -> subprocess.Popen[bytes]:
    shutil.copytree(ROOT / "sessions/04-kill-mid-tool/workspace", desk.work, dirs_exist_ok=True)
    process = desk.start("-p", "--mode", "json", *TOOL, "exactly once", **environ)
    _until_output(process, b'"output":"publishing notes.md')
    return process


@pytest.mark.slow
@pytest.mark.rule("CASE-H5")
def test_a_killed_run_is_finished_by_continue_without_a_prompt(desk: Desk) -> None:
    process = _start_tool(desk)
    process.kill()
    process.communicate()
    assert "unfinished" in desk.run("sessions").stdout
    assert json.loads(desk.run("inspect", "--json").stdout)["inDoubt"] != []
    result = desk.run("-c", "-p")
    assert (result.code, result.stderr) == (0, "")
    assert result.stdout.startswith("Published, exactly once.\n")
    assert (desk.work / "effects.txt").read_text(encoding="utf-8") == "published notes.md\n"


@pytest.mark.slow
@pytest.mark.rule("CASE-H5", "CL-3")
def test_a_new_chat_leaves_a_killed_run_alone_and_continue_still_finds_it(desk: Desk, answer: str) -> None:
    process = _start_tool(desk)
    process.kill()
    process.communicate()
    assert desk.run("-p", *HELLO, ASKED).stdout == answer + "\n"
    listed = [(item["id"], item["unfinished"]) for item in json.loads(desk.run("sessions", "--json").stdout)]
    assert listed == [("1.1", True), ("2.1", False)]
    assert not (desk.work / "effects.txt").exists()


@pytest.mark.slow
@pytest.mark.rule("CL-7", "CASE-H4")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_hands_the_work_back_without_a_restart_and_names_the_way_back(desk: Desk, number: signal.Signals, code: int) -> None:
    process = _start_tool(desk)
    process.send_signal(number)
    result = ended(process)
    assert (result.code, result.stderr) == (code, f"pidurable: stopped by {number.name}; the work so far is stored. To go on: pidurable --continue\n")
    states = {task["kind"]: (task["state"]["status"], task.get("restarts")) for task in json.loads(desk.run("inspect", "--json").stdout)["tasks"]}
    assert states == {"pi.generation": ("waiting", None), "pi.tool": ("pending", None)}


@pytest.mark.slow
@pytest.mark.rule("CASE-A3", "CL-3")
def test_a_chat_that_runs_elsewhere_is_refused_with_the_process_and_read_all_the_same(desk: Desk) -> None:
    process = _start_tool(desk)
    process.send_signal(signal.SIGSTOP)  # so that it stays where it is, however long the rest takes
    try:
        log = desk.run("log")
        inspected = desk.run("inspect", "1.1")
        refused = desk.run("-c", "-p", "another one")
        beside = desk.run("-p", *HELLO, ASKED)
    finally:
        process.kill()
        process.communicate()
    assert (refused.code, refused.stdout) == (3, "")
    assert f"pid {process.pid} " in refused.stderr
    assert log.stdout.endswith("[bash sh publish.sh: running]\npublishing notes.md\n\n[unfinished]\n")
    assert beside.code == 0
    assert "pi.tool  running/execute" in inspected.stdout


@pytest.mark.slow
@pytest.mark.rule("CASE-A3", "CL-3")
def test_new_runs_that_start_together_all_succeed_each_in_its_own_session(desk: Desk, answer: str) -> None:
    started = [desk.start("-p", *HELLO, ASKED) for _ in range(4)]
    assert [ended(process).stdout for process in started] == [answer + "\n"] * 4
    assert len(json.loads(desk.run("sessions", "--json").stdout)) == 4


@pytest.mark.slow
@pytest.mark.rule("CASE-H1", "CL-1")
def test_a_directory_whose_name_is_no_utf8_works_and_has_chats_of_its_own(desk: Desk, answer: str) -> None:
    odd = desk.work / os.fsdecode(b"bytes\xff\nline")
    odd.mkdir()
    assert desk.run("-p", *HELLO, ASKED, cwd=odd).stdout == answer + "\n"
    assert len(json.loads(desk.run("sessions", "--json", cwd=odd).stdout)) == 1
    assert json.loads(desk.run("sessions", "--json").stdout) == []


@pytest.mark.rule("CASE-H5")
def test_nothing_to_continue_is_told(desk: Desk) -> None:
    result = desk.run("-c", "-p", "hi", "--model", "playback/01-hello")
    assert (result.code, result.stdout) == (2, "")
    assert result.stderr.startswith("pidurable: There is no chat in ")
