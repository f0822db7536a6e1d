"""Draws layers from the contracts that hold them, with the first sentence of each package: `python -m tests.support.layers`."""

from __future__ import annotations

import ast
import re
import textwrap
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/architecture.md"
CONTRACTS = ("layers", "harness")
"""The contracts that are drawn: the whole program, and the inside of its largest part."""
_NAME_CELLS, _TEXT_CELLS = 13, 87


def drawn(contract_id: str) -> str:
    """The picture: a box for each layer and what it holds; each may import what is below it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = {each["id"]: each for each in project["tool"]["importlinter"]["contracts"]}
    contract = contracts[contract_id]
    (container,) = contract["containers"]
    durable = set(contracts["core"]["source_modules"])
    width = _NAME_CELLS + _TEXT_CELLS + 3
    lines = ["```text"]
    for number, layer in enumerate(contract["layers"]):
        names = [name.strip() for name in layer.split("|")]
        lines.append(f"{'┌' if number == 0 else '├'}{'─' * width}{'┐' if number == 0 else '┤'}")
        for name in names:
            mark = "*" if f"{container}.{name}" in durable else " "
            first, *rest = textwrap.wrap(summary(f"{container}.{name}"), _TEXT_CELLS)
            lines += [f"│ {name + mark:<{_NAME_CELLS}} {first:<{_TEXT_CELLS}} │", *(f"│ {'':<{_NAME_CELLS}} {line:<{_TEXT_CELLS}} │" for line in rest)]
    return "\n".join([*lines, f"└{'─' * width}┘", "```"]) + "\n"


def summary(module: str) -> str:
    """The first sentence of a package's or module's docstring, without ids."""
    folder = ROOT.joinpath(*module.split("."))
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    text = " ".join((ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")[0].split())
    first = re.split(r"(?<=[.!?])\s", text)[0]
    return re.sub(r"\s*\([^()]*\)(?=[.:]?$)", "", first).rstrip(":")


def with_pictures(text: str) -> str:
    """The page with the pictures as they must be."""
    for contract_id in CONTRACTS:
        begin, end = f"<!-- {contract_id}: python -m tests.support.layers -->\n", f"<!-- /{contract_id} -->"
        before, _, rest = text.partition(begin)
        text = before + begin + drawn(contract_id) + end + rest.partition(end)[2]
    return text


if __name__ == "__main__":
    PAGE.write_text(with_pictures(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
