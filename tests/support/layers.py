"""Draws the layers from the contract that holds them, with the first sentence of each package: `python -m tests.support.layers`."""

from __future__ import annotations

import ast
import re
import textwrap
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/architecture.md"
BEGIN, END = "<!-- layers: python -m tests.support.layers -->\n", "<!-- /layers -->"
_NAME_CELLS, _TEXT_CELLS = 12, 88


def drawn() -> str:
    """The picture: a box for each layer, what it holds, and an arrow down to what it may import."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(each for each in project["tool"]["importlinter"]["contracts"] if each["id"] == "layers")
    core = next(each for each in project["tool"]["importlinter"]["contracts"] if each["id"] == "core")
    durable = {module.rpartition(".")[2] for module in core["source_modules"]}
    width = _NAME_CELLS + _TEXT_CELLS + 3
    lines = ["```text"]
    for number, layer in enumerate(contract["layers"]):
        names = [name.strip() for name in layer.split("|")]
        lines.append(f"{'┌' if number == 0 else '├'}{'─' * width}{'┐' if number == 0 else '┤'}")
        for name in names:
            mark = "*" if name in durable else " "
            first, *rest = textwrap.wrap(summary(name), _TEXT_CELLS)
            lines += [f"│ {name + mark:<{_NAME_CELLS}} {first:<{_TEXT_CELLS}} │", *(f"│ {'':<{_NAME_CELLS}} {line:<{_TEXT_CELLS}} │" for line in rest)]
    return "\n".join([*lines, f"└{'─' * width}┘", "```"]) + "\n"


def summary(name: str) -> str:
    """The first sentence of a package's or module's docstring, without ids."""
    package = ROOT / "pi_durable_tui" / name / "__init__.py"
    path = package if package.is_file() else ROOT / "pi_durable_tui" / f"{name}.py"
    text = " ".join((ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")[0].split())
    first = re.split(r"(?<=[.!?])\s", text)[0]
    return re.sub(r"\s*\([^()]*\)(?=[.:]?$)", "", first).rstrip(":")


def with_picture(text: str) -> str:
    """The page with the picture as it must be."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + drawn() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(with_picture(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
