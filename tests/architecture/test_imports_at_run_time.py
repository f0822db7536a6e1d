"""What is really loaded: a contract reads the source, a fresh process tells the fact."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pi_durable_tui import __version__
from tests.architecture.source import PACKAGE, ROOT, module_name, modules
from tests.support.patience import RUN_S

SLOW = ("textual", "litellm", "mcp")
ABOVE_THE_CORE = ("textual", "rich", "typer", "litellm", "platformdirs")


def loaded(program: str, *arguments: str) -> tuple[str, set[str]]:
    """Run a program in a fresh interpreter; what it printed, and the top-level names it had loaded at its end."""
    script = f"""
import atexit, json, sys
atexit.register(lambda: print("\\n" + json.dumps(sorted({{name.split(".")[0] for name in sys.modules}}))))
sys.argv = ["pidurable", *sys.argv[1:]]
{program}
"""
    result = subprocess.run([sys.executable, "-c", script, *arguments], cwd=ROOT, check=False, capture_output=True, text=True, timeout=RUN_S)
    assert result.returncode == 0, result.stdout + result.stderr
    output, _, names = result.stdout.rstrip("\n").rpartition("\n")
    return output, set(json.loads(names))


MAIN = "from pi_durable_tui.cli.main import main; main()"


@pytest.mark.rule("CASE-B11")
def test_version_is_told_without_loading_the_app_the_model_library_or_a_parser():
    output, names = loaded(MAIN, "--version")
    assert __version__ in output
    assert names.isdisjoint((*SLOW, "typer", "pydantic", "rich", "apsw"))


def test_help_is_told_without_loading_the_app_or_the_model_library():
    output, names = loaded(MAIN, "--help")
    assert "--continue" in output
    assert names.isdisjoint(SLOW)


def test_the_command_line_is_loaded_without_the_app_and_the_model_library():
    _, names = loaded("; ".join(f"import {module_name(path)}" for path in modules(PACKAGE / "cli")))
    assert names.isdisjoint(SLOW)


@pytest.mark.rule("FB-2")
def test_the_durable_core_loads_no_user_interface_and_no_model_library():
    core = [module_name(path) for layer in ("records", "storage", "session", "harness") for path in modules(PACKAGE / layer)]
    _, names = loaded("; ".join(f"import {module}" for module in core))
    assert names.isdisjoint(ABOVE_THE_CORE)


@pytest.mark.rule("FB-2")
@pytest.mark.parametrize(
    ("layer", "above"),
    [
        ("records", ("storage", "session", "harness")),
        ("storage", ("session", "harness")),
        ("session", ("harness",)),
    ],
)
def test_a_lower_layer_works_without_those_above(layer: str, above: tuple[str, ...]):
    imported = "; ".join(f"import {module_name(path)}" for path in modules(PACKAGE / layer))
    check = "; ".join(f"assert 'pi_durable_tui.{name}' not in sys.modules" for name in above)
    loaded(f"{imported}\n{check}")


@pytest.mark.rule("SA-7")
def test_the_app_is_loaded_without_the_model_library(tmp_path: Path):
    _, names = loaded("; ".join(f"import {module_name(path)}" for path in modules(PACKAGE / "tui")))
    assert "textual" in names
    assert "litellm" not in names


FIRST_PAINT = """
import asyncio, json, sys
from pathlib import Path
from pi_durable_tui.cli import main, terminal
from pi_durable_tui.cli.setup import set_up
from pi_durable_tui.errors import Refused
from pi_durable_tui.tui.app import PidurableApp
from pi_durable_tui.tui.palette import palette_of
from pi_durable_tui.tui.status import Place

setup = set_up(None, {"PIDURABLE_DATA_DIR": sys.argv[1], "PIDURABLE_CONFIG_DIR": sys.argv[1]})

async def start():
    print(json.dumps([name for name in sys.modules if name.startswith("pi_durable_tui.")]))
    raise Refused("seen")

PidurableApp(start, clock=setup.clock, place=Place(directory="/"), palette=palette_of("dark")).run(headless=True)
"""
BEFORE_THE_FIRST_PAINT = {  # of the layers below the screen
    "clock",
    "entropy",
    "errors",
    "harness",
    "mcp",
    "mcp.config",
    "models",
    "models.overrides",
    "models.usage",
    "records",
    "storage",
    "storage.kind",
}
AFTER_THE_FIRST_PAINT = {  # of the command line and the screen
    *(f"tui.actions.{name}" for name in ("acts", "doubt", "files", "moves", "outbox", "permissions", "project", "stopping")),
    *(f"tui.screens.{name}" for name in ("picker", "sheet", "trust")),
    *("tui.bridge", "tui.following", "tui.ports", "cli.chat", "cli.chats", "cli.compose", "cli.gateways", "cli.print", "cli.commands", "cli.project"),
}


def test_the_screen_is_painted_before_the_harness_and_what_a_person_may_do_are_loaded(tmp_path: Path):
    output, names = loaded(FIRST_PAINT, str(tmp_path))
    assert names.isdisjoint({"apsw", "litellm", "markdown_it", "mcp", "pygments", "tree_sitter_bash", "typer"})
    found = {name.removeprefix("pi_durable_tui.") for name in json.loads(output.strip().splitlines()[-1])}
    below = {name for name in found if name.partition(".")[0] not in {"cli", "tui", "records"}}
    assert below <= BEFORE_THE_FIRST_PAINT
    assert found.isdisjoint(AFTER_THE_FIRST_PAINT)
