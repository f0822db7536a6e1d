"""The import contracts of pyproject.toml hold, and the sums they cannot express."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from tests.architecture.source import PACKAGE, ROOT, module_name, modules, name, tree


def imports(path: Path) -> list[tuple[str, int, bool]]:
    """Top-level name, line and "inside a function" of every absolute import of a file."""
    inside = {child for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for child in ast.walk(node)}
    found: list[tuple[str, int, bool]] = []
    for node in ast.walk(tree(path)):
        match node:
            case ast.Import():
                found += [(alias.name.split(".")[0], node.lineno, node in inside) for alias in node.names]
            case ast.ImportFrom(module=str(module), level=0):
                found.append((module.split(".")[0], node.lineno, node in inside))
    return found


def test_an_import_never_points_up():
    result = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_one_module_imports_litellm_and_only_inside_functions():
    users = {
        name(path): [line for top, line, inside in imports(path) if top == "litellm" and not inside]
        for path in modules(PACKAGE)
        if any(top == "litellm" for top, _, _ in imports(path))
    }
    assert len(users) == 1
    assert all(path.startswith("pi_durable_tui/models/") for path in users)
    assert list(users.values()) == [[]]


def test_every_package_of_ours_is_a_layer_and_has_an_init_file():
    folders = {path.parent for path in modules(PACKAGE)}
    assert [name(folder) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


FOLDER_MODULES = 14
CROWDED = {
    # The shared nouns of the harness (ports, settings, live …) stand beside its two public classes; tasks, generation and tool have folders.
    "pi_durable_tui.harness": 15,
    # One file per command, and the composition root.
    "pi_durable_tui.cli": 20,
}


def test_a_folder_holds_no_more_modules_than_one_can_survey():
    folders = {path.parent for path in modules(PACKAGE)}
    counts = {module_name(folder / "__init__.py"): sum(path.parent == folder and path.name != "__init__.py" for path in modules(folder)) for folder in folders}
    assert {folder: count for folder, count in counts.items() if count > CROWDED.get(folder, FOLDER_MODULES)} == {}
