"""Everything that has to hold before a change is taken, in stages, with nothing but the standard library to start from.

    python tests/ci.py                 all stages
    python tests/ci.py lint tests      only the stages named (pure, contract … are parts of tests)
    python tests/ci.py --list          what there is

It makes an environment of its own from requirements-dev.lock, each file checked against its hash, and uses it again while lock and project file stay the same.
A stage prints one line: its name, the result and its seconds; what a failed stage printed follows. The exit status is 0 only when every stage passed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STORIES = (
    "01-hello",
    "02-read-edit-test",
    "03-kill-mid-stream",
    "04-kill-mid-tool",
    "05-approval",
    "06-subagent-esc",
    "07-fork",
    "08-compaction",
    "09-retry-then-answer",
    "10-parallel-tools",
)

TEST_PARTS: dict[str, tuple[str, ...]] = {
    # Cheap and certain first; whatever starts whole programs last.
    "pure": ("architecture", "records", "test_clock.py", "test_entropy.py", "test_errors.py"),
    "contract": ("storage", "session"),
    "behaviour": ("harness", "models", "mcp", "tools", "permissions", "context", "playback", "cli", "support", "examples", "bench"),
    "pictures": ("pictures",),
    "screen": ("tui",),
    "crash": ("crash", "selftest"),
    "journeys": ("journeys",),
}
RULE_TESTS = (
    # What alone must reach every branch of the pure rules (which those are says [tool.coverage.run] of pyproject.toml), with no session around them.
    "tests/records",
    "tests/harness/test_rules.py",
    "tests/harness/test_ownership.py",
    "tests/harness/test_recovery_rules.py",
    "tests/harness/test_generation_decide.py",
    "tests/harness/test_tool_decide.py",
    "tests/harness/test_inbox.py",
    "tests/harness/test_context.py",
    "tests/harness/test_select.py",
    "tests/harness/test_view.py",
)
WORKERS = {"pictures": "0"}  # pictures that no test uses are noticed only when one process sees all of them
TEST_TIMEOUT_S = {"crash": 600, "journeys": 600}

SOMETIMES_PARTS = ("contract", "behaviour", "crash")  # where the moments that must come sometimes do (tests/support/sometimes.py)

MANUAL = "data/share/man/man1/pidurable.1"
KNOWN_START_UP_FILES = frozenset({"distutils-precedence.pth"})  # setuptools, which Python 3.11 puts into every new environment
COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed)")


@dataclass(frozen=True, slots=True)
class Result:
    """What a stage ended with. `output` is shown in full when it failed; of a good one only what `shown` says."""

    ok: bool
    output: str
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Bench:
    """Where stages run: the environment's folder, how to start things in it, and where the tests of this run keep what they came to see."""

    folder: Path
    seen: Path | None = None

    def program(self, name: str) -> str:
        """The path of a program of the environment."""
        return str(self.folder / "bin" / name)

    def run(self, *command: str, **variables: str) -> Result:
        """Run a command at the project's root without input; never raises for what it does."""
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        return Result(done.returncode == 0, done.stdout.decode(errors="replace"))


def fingerprint() -> str:
    """Changes whenever the environment has to be made anew."""
    digest = hashlib.sha256(sys.version.encode())
    for name in ("requirements-dev.lock", "pyproject.toml"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def prepare(bench: Bench) -> Result:
    """Make the environment, unless it is there and current."""
    stamp = bench.folder / "made-from"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == fingerprint():
        return Result(ok=True, output="")
    shutil.rmtree(bench.folder, ignore_errors=True)
    venv.create(bench.folder, with_pip=True)
    pip = (bench.program("python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    # The lock names every package, so nothing is resolved; what is for older Pythons only does no harm on newer ones.
    for arguments in (("--require-hashes", "-r", "requirements-dev.lock"), ("--no-build-isolation", "--editable", ".")):
        result = bench.run(*pip, *arguments)
        if not result.ok:
            return result
    stamp.write_text(fingerprint(), encoding="utf-8")
    return Result(ok=True, output="")


def run_format(bench: Bench) -> Result:
    return bench.run(bench.program("ruff"), "format", "--check", "--diff", ".")


def run_lint(bench: Bench) -> Result:
    return bench.run(bench.program("ruff"), "check", "--no-fix", ".")


def run_layers(bench: Bench) -> Result:
    return bench.run(bench.program("lint-imports"), "--no-cache")


def run_types(bench: Bench) -> Result:
    # The notice about newer releases would be a question to the network.
    return bench.run(bench.program("pyright"), "--pythonpath", bench.program("python"), PYRIGHT_PYTHON_IGNORE_WARNINGS="1")


def run_rules(bench: Bench) -> Result:
    """The tests of the pure rules, which must reach every branch of them."""
    with tempfile.TemporaryDirectory(prefix="pidurable-rules-") as folder:
        variables = {"COVERAGE_FILE": str(Path(folder) / "coverage"), "HYPOTHESIS_PROFILE": "rules"}
        result = bench.run(bench.program("python"), "-m", "coverage", "run", "-m", "pytest", "-q", "-n", "0", *RULE_TESTS, **variables)
        if not result.ok:
            return result
        return bench.run(bench.program("python"), "-m", "coverage", "report", **variables)


def tests_of(part: str) -> list[str]:
    """The folders and files of a part that exist and hold tests."""
    paths = [ROOT / "tests" / name for name in TEST_PARTS[part]]
    return [str(path.relative_to(ROOT)) for path in paths if path.is_file() or any(path.rglob("test_*.py"))]


def run_tests(bench: Bench, part: str) -> Result:
    """Run a part of the tests; a part without a test has failed."""
    paths = tests_of(part)
    if not paths:
        return Result(ok=False, output=f"there are no tests in {', '.join(TEST_PARTS[part])}")
    variables = {"HYPOTHESIS_PROFILE": os.environ.get("HYPOTHESIS_PROFILE", "ci")}
    if bench.seen is not None:
        variables["PIDURABLE_TEST_SOMETIMES"] = str(bench.seen)
        (bench.seen / f"ran-{part}").touch()
    result = bench.run(
        *(bench.program("python"), "-m", "pytest", "-q", "-n", WORKERS.get(part, "auto"), "--timeout", str(TEST_TIMEOUT_S.get(part, 300))),
        *paths,
        **variables,
    )
    closing = [line for line in result.output.splitlines() if COUNT.search(line)]
    return Result(result.ok and bool(closing), result.output, shown=closing[-1] if closing else "")


def run_sometimes(bench: Bench) -> Result:
    """What must happen in some test has happened; judged only when all the parts ran in which it may."""
    left_out = [part for part in SOMETIMES_PARTS if bench.seen is None or not (bench.seen / f"ran-{part}").exists()]
    if left_out:
        return Result(ok=True, output="", shown=f"not judged, because this did not run: {', '.join(left_out)}")
    result = bench.run(bench.program("python"), "-m", "tests.support.sometimes", str(bench.seen))
    return Result(result.ok, result.output, shown=result.output.strip())


def run_package(bench: Bench) -> Result:
    """Build the wheel, install it beside locked dependencies into an empty environment, and use it without network, home and key."""
    with tempfile.TemporaryDirectory(prefix="pidurable-package-") as name:
        folder = Path(name)
        built = bench.run(bench.program("python"), "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT))
        if not built.ok:
            return built
        wheel = next(folder.glob("*.whl"))
        if problem := wheel_problem(wheel):
            return Result(ok=False, output=problem)
        user = Bench(folder / "environment")
        venv.create(user.folder, with_pip=True)
        pip = (user.program("python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
        for command in (
            (*pip, "--require-hashes", "-r", "requirements.lock"),
            (*pip, str(wheel)),
            (user.program("python"), "-m", "pip", "check"),
        ):
            result = bench.run(*command)
            if not result.ok:
                return result
        if strange := start_up_files(user):
            return Result(ok=False, output=f"start-up files that nobody expects: {strange}")
        return use_as_a_stranger(user, folder)


def wheel_problem(wheel: Path) -> str:
    """What is missing in the wheel, or too much; "" when nothing is."""
    with zipfile.ZipFile(wheel) as archive:
        names = {MANUAL if name.endswith(f".data/{MANUAL}") else name for name in archive.namelist()}
    wanted = {
        MANUAL,
        "pi_durable_tui/py.typed",
        "pi_durable_tui/SPEC.md",
        "pi_durable_tui/cli/configuration/settings.schema.json",
        *(f"pi_durable_tui/_sessions/{story}/session.toml" for story in STORIES),
    }
    missing = sorted(wanted - names)
    foreign = sorted(name for name in names - {MANUAL} if name.split("/")[0] != "pi_durable_tui" and ".dist-info/" not in name)
    stores = sorted(name for name in names if "/_stores/" in name)
    return f"missing: {missing}; not ours: {foreign}; stores: {stores}" if missing or foreign or stores else ""


def start_up_files(bench: Bench) -> list[str]:
    """Files of an environment that Python runs at every start, but for those we know."""
    site = next((bench.folder / "lib").glob("python3*")) / "site-packages"
    return sorted(
        path.name for pattern in ("*.pth", "sitecustomize.py", "usercustomize.py") for path in site.glob(pattern) if path.name not in KNOWN_START_UP_FILES
    )


def use_as_a_stranger(user: Bench, folder: Path) -> Result:
    """The installed program as somebody meets it first: empty home, empty folder, no keys, and where the system lets us, no network."""
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(home), "LANG": "C.UTF-8", "TERM": "xterm-256color"}
    cut = ["unshare", "--net", "--"] if subprocess.run(["unshare", "--net", "--", "true"], check=False, capture_output=True).returncode == 0 else []
    seen = ""
    for arguments, wanted in ((("--version",), r"\d+\.\d+"), (("demo", "01-hello", "--headless"), r"\w{3,}")):
        done = subprocess.run(
            [*cut, user.program("pidurable"), *arguments],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=120,
            text=True,
        )
        seen += f"$ pidurable {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        if done.returncode != 0 or not re.search(wanted, done.stdout):
            return Result(ok=False, output=f"{seen}\nexit status {done.returncode}")
    return Result(ok=True, output=seen, shown="" if cut else "the network could not be cut off for this stage")


def stages() -> dict[str, Callable[[Bench], Result]]:
    """All stages by name, in the order in which they run."""
    parts = {part: lambda bench, part=part: run_tests(bench, part) for part in TEST_PARTS}
    return {
        "format": run_format,
        "lint": run_lint,
        "layers": run_layers,
        "types": run_types,
        "rules": run_rules,
        **parts,
        "sometimes": run_sometimes,
        "package": run_package,
    }


def carry_out(name: str, stage: Callable[[Bench], Result], bench: Bench) -> Result:
    """Run one stage and print its line, and below it what is worth seeing."""
    began_s = time.monotonic()
    result = stage(bench)
    print(f"{name:10} {'ok' if result.ok else 'FAILED':7} {time.monotonic() - began_s:6.1f} s", flush=True)
    if not result.ok:
        print(result.output.rstrip(), flush=True)
    elif result.shown:
        print(f"           {result.shown}", flush=True)
    return result


def totals(results: dict[str, Result]) -> str:
    """One line with the sum of all tests."""
    sums = dict.fromkeys(("passed", "failed", "skipped"), 0)
    for name in TEST_PARTS.keys() & results.keys():
        for count, word in COUNT.findall(results[name].shown):
            key = "failed" if word.startswith("error") else word
            sums[key] = sums.get(key, 0) + int(count)
    return f"tests: {sums['passed']} passed, {sums['failed']} failed, {sums['skipped']} skipped"


def main(arguments: list[str]) -> int:
    """Run the stages asked for; the exit status."""
    parser = argparse.ArgumentParser(description="Run the checks of the project.", epilog="Example: python tests/ci.py format lint pure")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="stages to run; none: all. `tests` stands for all parts of the tests")
    parser.add_argument("--list", action="store_true", help="name the stages and end")
    parser.add_argument("--environment", type=Path, default=ROOT / ".venv-test", metavar="DIR", help="where the environment is made (default: .venv-test)")
    options = parser.parse_args(arguments)
    known = stages()
    if options.list:
        print("\n".join(known))
        return 0
    wanted = [name for asked in options.stages or known for name in (TEST_PARTS if asked == "tests" else [asked])]
    if unknown := [name for name in wanted if name not in known]:
        parser.error(f"no such stage: {', '.join(unknown)}; there are {', '.join(known)}")
    with tempfile.TemporaryDirectory(prefix="pidurable-seen-") as seen:
        bench = Bench(options.environment.resolve(), Path(seen))
        results = {"prepare": carry_out("prepare", prepare, bench)}
        if results["prepare"].ok:
            results |= {name: carry_out(name, known[name], bench) for name in known if name in wanted}
    if TEST_PARTS.keys() & results.keys():
        print(totals(results), flush=True)
    return 0 if all(result.ok for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
