"""Files, processes and sleeping go through their doors. What the linter can name it holds (TID251); the rest is held here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, ROOT, modules, name, tree

FILE_DOORS = (
    # The only modules that may open files; the linter's list in pyproject.toml is the same for time, chance and processes.
    "pi_durable_tui/storage/files.py",
    "pi_durable_tui/storage/lock.py",
    "pi_durable_tui/storage/sqlite/",
    "pi_durable_tui/tools/environment.py",
    "pi_durable_tui/tools/files.py",
    "pi_durable_tui/tools/history/contents.py",
    "pi_durable_tui/tools/process.py",
    "pi_durable_tui/tools/reaper.py",
    "pi_durable_tui/tools/serving/program.py",
    "pi_durable_tui/models/litellm",
    "pi_durable_tui/playback/folder.py",
    "pi_durable_tui/context/files.py",
    "pi_durable_tui/cli/paths.py",
    "pi_durable_tui/cli/screen/editor.py",
)
FILE_METHODS = frozenset({"read_text", "read_bytes", "write_text", "write_bytes"})
MAY_WAIT_FOR_THE_WORLD = ("tests/support/", "tests/journeys/", "tests/crash/", "tests/tools/", "tests/mcp/", "tests/bench/", "tests/ci.py")


def calls(path: Path) -> list[ast.Call]:
    return [node for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]


def opens_a_file(call: ast.Call) -> bool:
    match call:
        case ast.Call(args=[ast.Attribute(value=ast.Name(id="os"), attr="devnull"), *_]):
            return False  # nothing is kept there, and nothing read
    match call.func:
        case ast.Name(id="open"):
            return True
        case ast.Attribute(value=ast.Name(id="os" | "io"), attr="open" | "fdopen"):
            return True
        case ast.Attribute(attr=method):
            return method in FILE_METHODS
        case _:
            return False


def sleeps(call: ast.Call) -> bool:
    """True for time.sleep, and asyncio.sleep of anything but 0 (which only lets others run)."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="time"), attr="sleep")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="asyncio" | "anyio"), attr="sleep"), args=[ast.Constant(value=0)]):
            return False
        case ast.Call(func=ast.Attribute(value=ast.Name(id="asyncio" | "anyio"), attr="sleep")):
            return True
        case _:
            return False


def test_files_are_opened_in_the_doors_only():
    found = [f"{name(path)}:{call.lineno}" for path in modules(PACKAGE) if not name(path).startswith(FILE_DOORS) for call in calls(path) if opens_a_file(call)]
    assert found == []


def test_tests_move_the_clock_instead_of_sleeping():
    found = [
        f"{name(path)}:{call.lineno}"
        for path in modules(ROOT / "tests")
        if not name(path).startswith(MAY_WAIT_FOR_THE_WORLD)
        for call in calls(path)
        if sleeps(call)
    ]
    assert found == []


def test_tests_use_fakes_that_are_verified_instead_of_mocks():
    found = [
        f"{name(path)}:{node.lineno}"
        for path in modules(ROOT / "tests")
        for node in ast.walk(tree(path))
        if (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("unittest"))
        or (isinstance(node, ast.Import) and any(alias.name.startswith("unittest") for alias in node.names))
    ]
    assert found == []


@pytest.mark.rule("SA-9")
def test_the_only_programs_that_tools_start_by_their_names_are_ripgrep_and_the_sandbox():
    """Git in particular is never run, so nothing that a repository configures for it can. test_hostile_folder looks at the same from outside."""
    named = {
        argument.value if isinstance(argument, ast.Constant) else name(path)
        for path in modules(PACKAGE)
        for call in calls(path)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "program"
        for argument in call.args
    }
    assert named == {"rg", "bwrap"}
