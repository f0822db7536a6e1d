"""The wall around commands: what bubblewrap is told, and whether a wall that leaks is found out (SA-15)."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from pi_durable_tui.clock import SystemClock
from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.tools.environment import LocalEnvironment
from pi_durable_tui.tools.sandbox.bubblewrap import Wall, walled
from pi_durable_tui.tools.sandbox.bubblewrap import Walled as WalledMode
from pi_durable_tui.tools.sandbox.proof import MUST, MUST_NOT, judge
from pi_durable_tui.tools.sandbox.sandbox import Sandbox
from tests.support.hostile_folder import listener
from tests.support.journey_desk import processes
from tests.support.tools_calls import Workplace, details_of, names_in, text_of


def wall(mode="full", **more) -> Wall:
    return Wall(program="/usr/bin/bwrap", mode=mode, root="/project", temporary="/state/tmp", **more)


def saying(**changed: str) -> str:
    """What the probe of a good wall prints, but for what is changed."""
    good = dict.fromkeys(MUST, "yes") | dict.fromkeys(MUST_NOT, "no")
    return "\n".join(f"{name} {said}" for name, said in (good | changed).items())


@pytest.mark.rule("SA-15")
def test_the_command_comes_last_and_cannot_be_taken_for_an_option():
    arguments = walled(["--bind", "/", "/"], "/project/sub", wall())
    assert arguments[0] == "/usr/bin/bwrap"
    assert arguments[-6:] == ["--chdir", "/project/sub", "--", "--bind", "/", "/"]


@pytest.mark.rule("SA-15")
def test_the_work_tree_is_bound_over_what_hides_it_and_what_outsiders_run_stays_read_only_in_it():
    arguments = walled(["true"], "/project", wall(writable=("/caches",)))
    order = [arguments.index(path) for path in ("/dev", "/proc", "/run", "/state/tmp", "/caches", "/project", "/project/.git/hooks", "/project/.pidurable")]
    assert order == sorted(order)
    assert arguments[arguments.index("/project/.git/hooks") - 1] == "--ro-bind-try"


@pytest.mark.rule("SA-15")
def test_only_the_full_wall_takes_the_network_away():
    assert "--unshare-net" in walled(["true"], "/project", wall())
    assert "--unshare-net" not in walled(["true"], "/project", wall("files"))
    assert "/run/systemd/resolve" in walled(["true"], "/project", wall("files"))


@pytest.mark.rule("SA-15")
@pytest.mark.parametrize(("name", "wrong"), sorted({**MUST, **MUST_NOT}.items()))
def test_each_hole_in_the_wall_and_each_thing_that_it_should_let_through_is_found(name: str, wrong: str):
    assert judge(saying(), "full") == ()
    assert judge(saying(**{name: "no" if name in MUST else "yes"}), "full") == (wrong,)
    assert judge(saying().replace(f"{name} ", "other "), "full") == (wrong,)


@pytest.mark.rule("SA-15")
def test_a_wall_for_files_promises_nothing_of_the_network_and_one_that_does_not_start_nothing_at_all():
    assert judge(saying(network="yes"), "files") == judge(saying(), "files") == ()
    assert judge("", "files") == judge("bwrap: setting up uid map: Permission denied\n", "full") == ("it could not be started",)


# ------------------------------------------------------------------------------------------------------------ on this machine


class Walled(Workplace):
    """A workplace whose commands are put into a sandbox."""

    def __init__(self, root: Path, mode: WalledMode, *, path: str | None = None) -> None:
        super().__init__(root)
        variables = dict(os.environ) if path is None else {"PATH": path}
        self.environment = LocalEnvironment(str(self.folder), self.state, SystemClock(), variables, sandbox=Sandbox(mode, (str(root / "cache"),)))


async def holding(root: Path, mode: WalledMode) -> Walled:
    """A workplace in a sandbox that holds here; skips where there can be none."""
    made = Walled(root, mode)
    try:
        await made.environment.wall()
    except EnvironmentFailure as error:
        pytest.skip(f"no sandbox here: {error.message}")
    return made


@pytest.mark.slow
@pytest.mark.rule("SA-15")
async def test_a_command_writes_its_work_tree_and_nothing_else(tmp_path: Path):
    work = await holding(tmp_path, "full")
    (tmp_path / "cache").mkdir()
    (work.folder / ".git/hooks").mkdir(parents=True)
    tries = ("own", "../outside", "../cache/kept", "/tmp/private", ".git/hooks/pre-commit", "~/planted")  # noqa: S108 - inside
    command = "; ".join(f"(echo x > {path}) 2>/dev/null" for path in tries)
    result = await work.call("bash", command=f"cd {work.folder}; HOME={tmp_path}; {command}; mkdir sub; cd sub; exit 7")
    assert names_in(tmp_path) == ["cache", "state", "work"]
    assert (names_in(work.folder), names_in(work.folder / ".git/hooks")) == ([".git", "own", "sub"], [])
    assert (details_of(result)["exitCode"], details_of(result)["directory"]) == (7, f"{work.folder}/sub")
    assert names_in(tmp_path / "cache") == ["kept"]
    assert (work.state / "tmp/private").exists()
    kept = await work.call("bash", command="cat /tmp/private; pwd")
    assert text_of(kept).startswith(f"x\n{work.folder}/sub\n")


@pytest.mark.slow
@pytest.mark.rule("SA-15", "PR-7")
async def test_a_command_reaches_no_host_and_no_process_and_what_it_leaves_behind_ends_with_it(tmp_path: Path):
    work = await holding(tmp_path, "full")
    with listener() as (port, came):
        tries = f"(exec 5<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo reached; [ -e /proc/{os.getpid()}/environ ] && echo seen"
        command = f"{tries}; setsid sleep 27.183 & echo done"
        result = await work.call("bash", command=command)
        assert (text_of(result).splitlines()[0], came) == ("done", [])
    assert processes("sleep 27.183") == []


@pytest.mark.rule("SA-15")
@pytest.mark.parametrize("mode", ["files", "full"])
async def test_without_bubblewrap_nothing_is_run(tmp_path: Path, mode: WalledMode):
    work = Walled(tmp_path, mode, path="/nonexistent")
    result = await work.call("bash", command="touch ran")
    assert (result.is_error, names_in(work.folder)) == (True, [])
    assert text_of(result).startswith("The settings ask for a sandbox, and bubblewrap (bwrap) is not installed. Nothing was run.")


@pytest.mark.rule("SA-15")
async def test_a_sandbox_that_leaks_is_found_before_anything_runs_in_it(tmp_path: Path):
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin/bwrap"
    fake.write_text('#!/bin/bash\nwhile [ "$1" != "--" ]; do shift; done\nshift\nexec "$@"\n')
    fake.chmod(0o755)
    work = Walled(tmp_path, "full", path=f"{tmp_path}/bin:/usr/bin:/bin")
    result = await work.call("bash", command="touch ran")
    assert (result.is_error, names_in(work.folder)) == (True, [])
    said = text_of(result)
    assert said.startswith("The sandbox that the settings ask for does not hold here: files outside of the work tree can be written; ")
    assert "processes outside can be seen and signalled" in said
    assert "the network can be reached. Nothing was run." in said


@pytest.mark.slow
@pytest.mark.rule("SA-15")
async def test_a_work_tree_above_the_place_of_our_own_files_is_no_false_alarm(tmp_path: Path):
    work = await holding(tmp_path, "full")
    inside = LocalEnvironment(str(tmp_path), work.folder / "state", SystemClock(), dict(os.environ), sandbox=Sandbox("full"))
    wall = await inside.wall()
    assert wall is not None
    assert wall.root == str(tmp_path)


@pytest.mark.slow
@pytest.mark.rule("SA-15", "TU-19")
async def test_a_question_names_the_sandbox_only_where_it_was_seen_to_hold(tmp_path: Path):
    work = await holding(tmp_path, "files")
    bash = work.tools["bash"]
    assert bash.preview is not None
    arguments = msgspec.convert({"command": "ls"}, bash.arguments)
    assert (await bash.preview(arguments, work.context()))["sandbox"] == "files"
    work.environment = Walled(tmp_path, "files", path="/nonexistent").environment
    assert "sandbox" not in await bash.preview(arguments, work.context())
