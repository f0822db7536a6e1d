"""Every example runs and prints what it says it prints, and the README says the same."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.patience import RUN_S

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXAMPLES = sorted(path.stem for path in HERE.glob("e[0-9][0-9]_*.py"))
PROMISE = "It prints:\n\n"


def told(example: str) -> tuple[str, str]:
    """The title of an example, and what it promises to print."""
    text = ast.get_docstring(ast.parse((HERE / f"{example}.py").read_text(encoding="utf-8"))) or ""
    return text.split("\n", 1)[0], textwrap.dedent(text[text.index(PROMISE) + len(PROMISE) :]).strip("\n") + "\n"


def section(example: str) -> str:
    """What the README has to say of an example."""
    title, output = told(example)
    return f"## {title}\n\n`python -m tests.examples.{example}`\n\n```text\n{output}```\n"


def test_examples_are_numbered_from_one_without_a_gap():
    assert [example[1:3] for example in EXAMPLES] == [f"{number:02}" for number in range(1, len(EXAMPLES) + 1)]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_readme_shows_each_example_with_its_output(example: str):
    assert section(example) in (HERE / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("example", [*EXAMPLES, "parts"])
def test_an_example_needs_nothing_but_the_library(example: str):
    """And the one tool that stands beside it."""
    found = {node.module for node in ast.walk(ast.parse((HERE / f"{example}.py").read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)}
    ours = {module for module in found if module is not None and module.startswith("pi_durable_tui")}
    assert ours <= {"pi_durable_tui.library", "pi_durable_tui.tools.subagent"}


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_each_example_prints_what_it_promises(example: str):
    command = [sys.executable, "-W", "error", "-m", f"tests.examples.{example}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=RUN_S, check=False)
    assert (done.stderr, done.stdout, done.returncode) == ("", told(example)[1], 0)
