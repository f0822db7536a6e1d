"""PURE. A Jupyter notebook as a text that a model can read: its cells and what they printed, in order (nbformat 3 and 4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec
from msgspec import Raw, Struct

OUTPUT_CHARS = 4_000
"""Of the outputs of one cell; the file holds the rest."""

_Lines: TypeAlias = str | list[str]
"""A text, which a notebook may hold as a list of lines."""


class _Output(Struct, kw_only=True):
    output_type: str = ""
    text: _Lines = ""
    data: dict[str, Raw] = {}
    ename: str = ""
    evalue: str = ""


class _Cell(Struct, kw_only=True):
    cell_type: str = "unknown"
    source: _Lines = ""
    input: _Lines = ""  # the name of the same in version 3
    outputs: list[_Output] = []


class _Sheet(Struct, kw_only=True):
    cells: list[_Cell] = []


class _Notebook(_Sheet, kw_only=True):
    nbformat: int
    worksheets: list[_Sheet] = []


def notebook_text(data: bytes) -> str | None:
    """The cells and their outputs; None when `data` is no notebook."""
    try:
        notebook = msgspec.json.decode(data, type=_Notebook)
        cells = [cell for sheet in (notebook, *notebook.worksheets) for cell in sheet.cells]
        return "\n".join(line for number, cell in enumerate(cells, 1) for line in _cell(number, cell)) or "(The notebook has no cells.)"
    except msgspec.DecodeError:
        return None


def _cell(number: int, cell: _Cell) -> Iterator[str]:
    yield f"[cell {number}: {cell.cell_type}]"
    yield _text(cell.source or cell.input).rstrip("\n")
    outputs = "\n".join(text for output in cell.outputs if (text := _output(output)))
    if outputs:
        yield f"[output of cell {number}]"
        yield outputs if len(outputs) <= OUTPUT_CHARS else f"{outputs[:OUTPUT_CHARS]}\n[… {len(outputs) - OUTPUT_CHARS:,} more characters are in the file]"
    yield ""


def _output(output: _Output) -> str:
    """What one output shows as text; of a picture that there is one."""
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"
    plain = output.data.get("text/plain")
    shown = _text(output.text) if plain is None else _text(msgspec.json.decode(plain, type=_Lines))
    pictures = [f"({kind}, not shown)" for kind in output.data if kind.startswith("image/")]
    return "\n".join([*([shown.rstrip("\n")] if shown.strip() else []), *pictures])


def _text(lines: _Lines) -> str:
    return lines if isinstance(lines, str) else "".join(lines)
