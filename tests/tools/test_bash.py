"""The tool bash, with real commands."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import psutil
import pytest

from pi_durable_tui.clock import ManualClock, SystemClock
from pi_durable_tui.harness.ports import Diagnostic
from pi_durable_tui.tools.environment import LocalEnvironment
from pi_durable_tui.tools.process import ProcessFacts, is_running
from tests.support.patience import PATIENCE_S
from tests.support.tools_calls import Workplace, details_of, names_in, text_of

ONE_ENDED = (Diagnostic("info", "note", "1 process was left in the background, now ended."),)

TWO_FORKS = """
import os, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
open("pids", "w").write(str(os.getpid()))
open("ready", "w").write("x")
time.sleep(100)
"""


def pids(work: Workplace) -> list[int]:
    """What a command wrote into the file `pids`."""
    return [int(word) for word in (work.folder / "pids").read_text().split()]


def living(numbers: list[int]) -> list[int]:
    return [number for number in numbers if psutil.pid_exists(number) and psutil.Process(number).status() != psutil.STATUS_ZOMBIE]


def facts_of(stored: dict[str, Any]) -> ProcessFacts:
    return ProcessFacts(pid=stored["pid"], start_time=stored["startTime"], boot_id=stored["bootId"])


async def ready(work: Workplace) -> None:
    """Wait until the command writes into the pipe `ready`."""
    await asyncio.to_thread((work.folder / "ready").read_text)


async def test_output_errors_and_exit_code_come_back(work: Workplace):
    result = await work.call("bash", command="echo out; echo err >&2; exit 3")
    assert (text_of(result), result.is_error) == ("out\nerr\n[exit code 3]", True)
    assert result.details == {
        "exitCode": 3, "signal": None, "timedOut": False, "directory": str(work.folder), "outputBytes": 8, "outputPath": None
    }  # fmt: skip
    assert "".join(work.output) == "out\nerr\n"


async def test_a_silent_success_says_so(work: Workplace):
    result = await work.call("bash", command="true")
    assert (text_of(result), result.is_error, result.diagnostics) == ("(no output)", False, ())


async def test_a_command_may_have_lines_quotes_functions_and_here_documents(work: Workplace):
    result = await work.call("bash", command="f() { echo \"$1\" '$2'; }\nf 'a  b'\ncat <<EOF\n$((1+1))\nEOF\necho \"args:$#\"")
    assert text_of(result) == "a  b $2\n2\nargs:0"


async def test_a_signal_is_named(work: Workplace):
    assert text_of(await work.call("bash", command="kill -KILL $$")) == "(no output)\n[ended by signal SIGKILL]"


@pytest.mark.rule("AG-2")
async def test_errors_name_the_lines_of_the_command(work: Workplace):
    lines = "echo $LINENO\ncat <<X\nhere\nX\nnot-a-command\n\nnor-this-one"
    result = await work.call("bash", command=lines)
    assert text_of(result) == "1\nhere\nbash: line 5: not-a-command: command not found\nbash: line 7: nor-this-one: command not found\n[exit code 127]"
    assert text_of(await work.call("bash", command="# what it does\n(")).startswith("bash: eval: line 3: syntax error")


async def test_a_syntax_error_is_an_answer(work: Workplace):
    result = await work.call("bash", command="if")
    assert result.is_error
    assert "syntax error" in text_of(result)


@pytest.mark.rule("TO-8")
async def test_the_facts_are_stored_before_anything_runs(work: Workplace):
    seen: list[bool] = []
    tool = work.tools["bash"]
    context = work.context()

    async def started(facts: dict) -> None:
        seen.extend([is_running(facts_of(facts)), (work.folder / "ran").exists()])
        work.started.append(facts)

    object.__setattr__(context, "started", started)
    assert tool.execute is not None
    result = await tool.execute(tool.arguments(command="touch ran; echo $$"), context)
    assert seen == [True, False]
    assert text_of(result) == str(work.started[0]["pid"])
    assert not is_running(facts_of(work.started[0]))


async def test_a_command_whose_facts_cannot_be_stored_never_runs(work: Workplace):
    tool = work.tools["bash"]
    context = work.context()

    async def started(_facts: dict) -> None:
        raise RuntimeError("the store is full")

    object.__setattr__(context, "started", started)
    assert tool.execute is not None
    with pytest.raises(RuntimeError, match="the store is full"):
        await tool.execute(tool.arguments(command="touch ran"), context)
    assert names_in(work.folder) == []


@pytest.mark.slow
@pytest.mark.rule("CASE-D1")
@pytest.mark.parametrize(
    "command",
    [
        "sleep 300 & echo $! > pids; echo done",
        "sleep 300 </dev/null >/dev/null & echo $! > pids; echo done",
        "setsid sleep 300 & echo $! > pids; echo done",
        "nohup setsid sleep 300 >/dev/null 2>&1 & echo $! > pids; disown; echo done",
    ],
)
async def test_a_background_process_does_not_hold_the_call_and_is_ended(work: Workplace, command: str):
    result = await asyncio.wait_for(work.call("bash", command=command), PATIENCE_S)
    assert (text_of(result), result.is_error, result.diagnostics) == ("done", False, ONE_ENDED)
    assert living(pids(work)) == []


@pytest.mark.slow
@pytest.mark.rule("CASE-D1")
async def test_a_server_answers_while_the_command_runs_and_is_ended_with_it(work: Workplace):
    command = "python3 -m http.server --bind 127.0.0.1 0 > log 2>&1 & echo $! > pids; tail -f log | grep -q -m1 Serving; echo up"
    result = await asyncio.wait_for(work.call("bash", command=f"exec 2>/dev/null; {command}"), PATIENCE_S)
    assert text_of(result) == "up"
    assert living(pids(work)) == []


async def test_what_ends_by_itself_right_after_the_shell_is_not_cut(work: Workplace):
    result = await work.call("bash", command="echo one > >(cat > late; echo two >> late)")
    assert (result.diagnostics, (work.folder / "late").read_text()) == ((), "one\ntwo\n")


@pytest.mark.slow
@pytest.mark.rule("CASE-D1")
async def test_many_calls_leave_no_descriptor_and_no_process(work: Workplace):
    await work.call("bash", command="true")
    before = len(os.listdir("/proc/self/fd")), len(psutil.Process().children())  # noqa: PTH208
    for _ in range(10):
        await work.call("bash", command="sleep 300 & true")
    assert (len(os.listdir("/proc/self/fd")), len(psutil.Process().children())) == before  # noqa: PTH208


@pytest.mark.rule("CASE-D2", "SA-11")
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("cat", "(no output)"),
        ("read x; echo got:$x", "got:"),
        ("echo 'Ok? (y)'; read answer || echo no answer", "Ok? (y)\nno answer"),
        ("python3 -c 'input()' 2>&1 | tail -1", "EOFError: EOF when reading a line"),
        ("tty; cat /dev/tty", "not a tty\ncat: /dev/tty: No such device or address\n[exit code 1]"),
    ],
)
async def test_a_command_that_asks_gets_the_end_of_input(work: Workplace, command: str, said: str):
    assert text_of(await asyncio.wait_for(work.call("bash", command=command), 10)) == said


@pytest.mark.slow
@pytest.mark.rule("CASE-D2")
async def test_git_opens_no_editor_and_asks_for_nothing(work: Workplace):
    setup = "git init -q . && git config user.email a@b.c && git config user.name n && touch f && git add f"
    result = await asyncio.wait_for(work.call("bash", command=f"{setup} && git commit"), PATIENCE_S)
    assert result.is_error
    assert "empty commit message" in text_of(result)


@pytest.mark.rule("SA-11", "SA-17")
async def test_a_command_gets_a_clean_environment(tmp_path: Path):
    secret = dict.fromkeys(("OPENAI_API_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "LD_PRELOAD", "PYTHONPATH", "BASH_ENV", "PROMPT_COMMAND"), "secret")
    work = Workplace(
        tmp_path, variables={**secret, "HTTPS_PROXY": "http://user:secret@proxy", "PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": str(tmp_path)}
    )
    result = await work.call("bash", command="env -0 | sort -z | tr '\\0' '\\n'; shopt -po xtrace")
    assert "secret" not in text_of(result)
    names = {line.partition("=")[0] for line in text_of(result).splitlines()}
    assert {"PATH", "LC_ALL", "HOME"} <= names
    assert {"TERM=dumb", "NO_COLOR=1", "GIT_TERMINAL_PROMPT=0"} <= set(text_of(result).splitlines())


@pytest.mark.rule("SA-11")
async def test_a_command_runs_in_its_own_session_without_our_descriptors(work: Workplace):
    open_file = (work.folder / "secret").open("w")
    os.set_inheritable(open_file.fileno(), True)
    result = await work.call("bash", command="ls /proc/$$/fd /proc/self/fd; cut -d' ' -f5,6 /proc/$$/stat; echo $$; ulimit -c")
    open_file.close()
    lines = text_of(result).splitlines()
    numbers = [line for line in lines if line.isdigit()]
    assert "/proc/self/fd:" in lines
    below = [line for line in lines[lines.index("/proc/self/fd:") + 1 :] if line.isdigit()]
    assert below[:4] == ["0", "1", "2", "3"]  # 3 is the folder that ls reads
    assert lines[-3] == f"{lines[-2]} {lines[-2]}", "it leads its process group and session"
    assert numbers[-1] == "0", "no core files"


@pytest.mark.rule("SA-8")
async def test_python_files_of_the_working_directory_are_not_imported(work: Workplace):
    for name in ("sitecustomize.py", "ctypes.py", "select.py", "resource.py", "encodings.py"):
        (work.folder / name).write_text("import os; os.mkdir('trap')")
    assert text_of(await work.call("bash", command="echo fine")) == "fine"
    assert "trap" not in names_in(work.folder)


@pytest.mark.slow
@pytest.mark.rule("CASE-D3", "SA-11")
@pytest.mark.parametrize(
    "command",
    [
        "echo before; for i in 1 2 3; do (while :; do :; done) & echo $! >> pids; done; echo > ready; wait",
        "echo before; bash -c 'trap \"\" TERM; echo $$ > pids; echo > ready; sleep 100'",
        "echo before; (sleep 100 | cat) & echo $! > pids; echo > ready; wait; echo x",
        f"echo before; python3 -c '{TWO_FORKS}'; sleep 100",
    ],
)
async def test_a_timeout_ends_everything_that_was_started(tmp_path: Path, command: str):
    clock = ManualClock()
    work = Workplace(tmp_path, clock=clock)
    os.mkfifo(work.folder / "ready")
    running = asyncio.ensure_future(work.call("bash", command=command, timeout_s=2))
    await ready(work)
    clock.advance(2_000)
    result = await asyncio.wait_for(running, PATIENCE_S)
    assert text_of(result) == "before\n[timed out after 2 s; the command and everything it started were ended]"
    assert (result.is_error, details_of(result)["timedOut"]) == (True, True)
    assert living(pids(work)) == []


@pytest.mark.slow
@pytest.mark.rule("CASE-D3", "SA-11")
async def test_a_cancelled_call_ends_everything_first(work: Workplace):
    os.mkfifo(work.folder / "ready")
    command = "(trap '' TERM; echo $BASHPID >> pids; sleep 100) & setsid sleep 100 & echo $! $$ >> pids; echo > ready; wait"
    running = asyncio.ensure_future(work.call("bash", command=command))
    await ready(work)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, PATIENCE_S)
    assert living(pids(work)) == []


@pytest.mark.slow
@pytest.mark.rule("SA-11")
async def test_a_command_that_kills_its_reaper_dies_with_it(work: Workplace):
    result = await asyncio.wait_for(work.call("bash", command="echo $$ > pids; kill -KILL $PPID; sleep 100"), PATIENCE_S)
    assert text_of(result) == "(no output)\n[the command was ended from outside; its exit code is unknown]"
    assert living(pids(work)) == []


@pytest.mark.slow
@pytest.mark.rule("CASE-D4")
async def test_a_flood_in_one_line_is_bounded_in_memory_result_and_file(work: Workplace):
    process = psutil.Process()
    before = process.memory_info().rss
    result = await work.call("bash", command="head -c 60M /dev/zero | tr '\\0' a")
    assert process.memory_info().rss - before < 100_000_000
    assert len(text_of(result)) < 60_000
    path = details_of(result)["outputPath"]
    assert Path(path).stat().st_size == 20_000_000
    assert [(diagnostic.level, diagnostic.code) for diagnostic in result.diagnostics] == [("warn", "truncated")]
    assert result.diagnostics[0].message == f"The output was 62.9 MB; its start and its end are shown. Its first 20.0 MB are in {path}."
    assert sum(len(text) for text in work.output) < 3_000_000


@pytest.mark.slow
@pytest.mark.rule("CASE-D4")
async def test_endless_output_ends_at_the_timeout(work: Workplace):
    result = await asyncio.wait_for(work.call("bash", command="yes", timeout_s=1), PATIENCE_S)
    assert text_of(result).endswith("y\n[timed out after 1 s; the command and everything it started were ended]")


@pytest.mark.rule("TO-4", "CASE-G2")
async def test_a_long_output_is_cut_in_the_middle_and_kept_whole_in_a_private_file(work: Workplace):
    result = await work.call("bash", command="seq 1 5000")
    lines = text_of(result).splitlines()
    assert (lines[0], lines[400], lines[-1], len(lines)) == ("1", "[… the middle was left out …]", "5000", 2_001)
    path = Path(details_of(result)["outputPath"])
    assert path.read_text() == "".join(f"{number}\n" for number in range(1, 5_001))
    assert result.diagnostics == (Diagnostic("warn", "truncated", f"The output was 23.9 KB; its start and its end are shown. All of it is in {path}."),)
    modes = [stat.S_IMODE(place.stat().st_mode) for place in (path, path.parent, work.state)]
    assert modes == [0o600, 0o700, 0o700]


@pytest.mark.rule("CASE-D4")
async def test_old_outputs_make_room_for_new_ones(work: Workplace):
    outputs = work.state / "outputs"
    outputs.mkdir(parents=True)
    for age, name in enumerate(("new", "old", "older")):
        with (outputs / name).open("wb") as file:
            file.truncate(70_000_000)
        os.utime(outputs / name, (1_000_000 - age, 1_000_000 - age))
    await work.call("bash", command="seq 1 5000")
    assert names_in(outputs) == ["call1.txt", "new", "old"]


@pytest.mark.rule("CASE-G2")
async def test_a_link_planted_under_the_name_of_an_output_is_not_followed(work: Workplace, tmp_path: Path):
    (work.state / "outputs").mkdir(parents=True)
    (tmp_path / "victim").write_text("untouched")
    (work.state / "outputs/call1.txt").symlink_to(tmp_path / "victim")
    await work.call("bash", command="seq 1 5000")
    assert (tmp_path / "victim").read_text() == "untouched"


@pytest.mark.rule("CASE-D5", "CASE-G1")
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (r"printf 'P 10%%\rP 20%%\rP 100%%\nDone\n'", "P 100%\nDone"),
        (r"printf '\033[5A\033[2Kx\033[?1049h\033[?25l\033[31mred\033[0m'", "xred"),
        (r"printf 'a\bb\007\033'", "b"),
        (r"for i in $(seq 1 3000); do printf '\r%d %%' $i; done", "3000 %"),
        (r"printf 'A\033]52;c;UFdORUQ=\007B\302\2332Jx'", "ABx"),
    ],
)
async def test_progress_and_colours_reach_the_model_as_plain_text(work: Workplace, command: str, said: str):
    assert text_of(await work.call("bash", command=command)) == said
    assert "\x1b" not in "".join(work.output)


@pytest.mark.rule("CASE-B10")
async def test_bytes_that_are_no_text_can_be_stored(work: Workplace):
    result = await work.call("bash", command="touch $'\\xff'; ls; mkdir $'d\\xff'; cd $'d\\xff'; echo '\ud83d'")
    said = json.dumps([text_of(result), result.details, "".join(work.output)], ensure_ascii=False).encode()
    assert b"\xef\xbf\xbd" in said


@pytest.mark.rule("CASE-D7")
async def test_the_directory_stays_and_its_loss_is_said_once(work: Workplace):
    folder = str(work.folder)
    steps = [
        ("mkdir d && cd d", f"(no output)\n[the working directory is now {folder}/d]"),
        ("pwd", f"{folder}/d\n[working directory: {folder}/d]"),
        ("rm -rf ../d", "(no output)"),
        ("pwd", folder),
        ("cd / && pwd", "/\n[the working directory is now /]"),
        ("export X=1", "(no output)\n[working directory: /]"),
        ("echo x$X", "x\n[working directory: /]"),
    ]
    results = [await work.call("bash", command=command) for command, _ in steps]
    assert [text_of(result) for result in results] == [said for _, said in steps]
    assert results[2].diagnostics == (Diagnostic("info", "note", f"The working directory {folder}/d is gone; {folder} is used instead."),)
    assert [result.diagnostics for result in results[3:]] == [()] * 4


@pytest.mark.rule("CASE-D7")
async def test_commands_work_when_the_conversations_own_directory_is_gone(work: Workplace, tmp_path: Path):
    work.folder.rmdir()
    result = await work.call("bash", command="pwd")
    assert text_of(result) == f"{tmp_path}\n[working directory: {tmp_path}]"
    assert result.diagnostics == (Diagnostic("info", "note", f"The working directory {work.folder} is gone; {tmp_path} is used instead."),)
    assert text_of(await work.call("read", path="none")) == f"{tmp_path}/none does not exist."


@pytest.mark.rule("CASE-D7")
async def test_commands_work_after_a_restart_in_a_directory_that_is_gone(work: Workplace, tmp_path: Path):
    await work.call("bash", command="mkdir d && cd d")
    (work.folder / "d").rmdir()
    work.folder.rmdir()
    again = LocalEnvironment(str(work.folder), work.state, SystemClock())
    work.environment = again
    result = await work.call("bash", command="pwd")
    assert text_of(result) == f"{tmp_path}\n[working directory: {tmp_path}]"
    assert result.diagnostics == (Diagnostic("info", "note", f"The working directory {work.folder}/d is gone; {tmp_path} is used instead."),)


@pytest.mark.rule("CASE-D7")
async def test_files_are_found_from_where_cd_led_also_after_a_restart(work: Workplace, tmp_path: Path):
    await work.call("bash", command="mkdir d && cd d && echo text > f")
    assert text_of(await work.call("read", path="f")) == "text\n"
    again = Workplace(tmp_path)
    assert text_of(await again.call("bash", command="pwd")) == f"{work.folder}/d\n[working directory: {work.folder}/d]"


async def test_the_directory_is_kept_through_exit_and_errors(work: Workplace):
    assert "[exit code 4]\n[the working directory is now /usr]" in text_of(await work.call("bash", command="set -e; cd /usr; exit 4"))
    assert text_of(await work.call("bash", command="cd /; kill -KILL $$")) == "(no output)\n[ended by signal SIGKILL]\n[working directory: /usr]"


async def test_a_command_too_long_or_with_a_nul_is_refused(work: Workplace):
    long = await work.call("bash", command="x" * 130_000)
    assert (long.is_error, text_of(long)) == (True, "The command is longer than 120,000 bytes. Write it to a file and run that.")
    assert text_of(await work.call("bash", command="a\0b")) == "A command cannot hold a NUL character."


@pytest.mark.parametrize("timeout_s", [0, 3_601])
async def test_a_timeout_out_of_range_is_not_valid(work: Workplace, timeout_s: int):
    with pytest.raises(ValueError, match="timeout_s"):
        await work.call("bash", command="true", timeout_s=timeout_s)


def test_the_title_is_one_bounded_line(work: Workplace):
    tool = work.tools["bash"]
    titles = [tool.title(tool.arguments(command=command)) for command in ("make\n  test", "x" * 500)]
    assert titles == ["bash make test", "bash " + "x" * 199 + "…"]


async def test_a_preview_holds_the_whole_command_and_runs_nothing(work: Workplace):
    tool = work.tools["bash"]
    assert tool.preview is not None
    command = "touch ran\n" + "x" * 500
    assert await tool.preview(tool.arguments(command=command), work.context()) == {"command": command, "directory": str(work.folder), "timeoutS": 120}
    assert names_in(work.folder) == []


def test_calls_of_one_round_run_one_after_the_other_and_are_never_repeated(work: Workplace):
    tool = work.tools["bash"]
    assert (tool.sequential, tool.replay, tool.access) == (True, "unsafe", "command")
