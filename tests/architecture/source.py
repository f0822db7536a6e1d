"""Reading the project's own files for the tests of this folder; reads what git tracks, so that leftovers in a work tree do not count."""

from __future__ import annotations

import ast
import functools
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pi_durable_tui"
SPEC = PACKAGE / "SPEC.md"


@functools.cache
def tracked() -> tuple[Path, ...]:
    """All files of the project, new ones included, ignored ones not; sorted."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    return tuple(sorted({path for name in listed if name and (path := ROOT / name).is_file()}))


def modules(folder: Path) -> list[Path]:
    """The Python files below a folder; programs inside recorded sessions do not count."""
    return [path for path in tracked() if path.suffix == ".py" and path.is_relative_to(folder) and not path.is_relative_to(ROOT / "sessions")]


@functools.cache
def tree(path: Path) -> ast.Module:
    """The parsed file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def name(path: Path) -> str:
    """The path as it is written in messages."""
    return path.relative_to(ROOT).as_posix()


def module_name(path: Path) -> str:
    """The dotted name under which the file is imported."""
    dotted = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    return dotted.removesuffix(".__init__")


@dataclass(frozen=True, slots=True)
class Function:
    """One function or method; `lines` without its docstring's."""

    path: Path
    name: str
    line: int
    lines: int


def functions(path: Path) -> list[Function]:
    """Every function of a file, nested ones too."""
    found: list[Function] = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
            docstring_lines = (first.end_lineno or 0) - first.lineno + 1 if is_docstring else 0
            found.append(Function(path, node.name, node.lineno, (node.end_lineno or 0) - node.lineno + 1 - docstring_lines))
    return found
