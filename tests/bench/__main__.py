"""Measure everything and print it as one table: `python -m tests.bench [--markdown] [NAME…]`. The exit status is 0 whatever it says; a person reads it.

What the core costs is in measures.py, the screen in screen.py, the app at work in working.py, the model library in models.py. Ratios are
taken within the run; milliseconds are those of the machine, and of what else it does: its load is told first and last.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path

from tests.bench import measures, screen, working
from tests.bench.models import compare
from tests.bench.table import HEAD, MARKDOWN_HEAD, Row, markdown, told

Measure = Callable[[Path], Iterator[Row]]


def all_measures(*, is_tiny: bool) -> dict[str, Measure]:
    """Every measure by its name, in the order of the table."""
    found: dict[str, Measure] = {}
    for name, measure in screen.MEASURES.items():
        found[name] = partial(measure, sizes=screen.TINY if is_tiny else screen.Sizes())
    for name, measure in working.MEASURES.items():
        found[name] = partial(measure, sizes=working.TINY if is_tiny else working.Sizes())
    for core in measures.MEASURES:
        found[core.__name__] = partial(_of_core, core, measures.TINY if is_tiny else measures.Sizes())
    found["library"] = partial(_of_library, *((5, 1) if is_tiny else (600, 3)))
    return found


def _of_core(measure: Callable[..., object], sizes: measures.Sizes, folder: Path) -> Iterator[Row]:
    for row in asyncio.run(measure(folder, sizes)):  # type: ignore[arg-type]
        yield Row(name=row.name, values=[row.value], unit=row.unit, limits=(row.limit, None), is_least=row.is_least)


def _of_library(tokens: int, rounds: int, _folder: Path) -> Iterator[Row]:
    ways = compare(tokens, rounds)
    for name, value in ways["here"].items():
        what, _, unit = name.rpartition(" ")
        yield Row(name=f"model library in the app's process: {what}", values=[value], unit=unit)
        yield Row(name="  in a process of its own", values=[ways["apart"][name]], unit=unit)


def machine() -> str:
    """Where it is measured, and what else goes on there."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{os.cpu_count()} cores, load {load}; Python {platform.python_version()}, Textual {version('textual')}, apsw {version('apsw')}"


def main(names: list[str], *, is_tiny: bool, as_markdown: bool) -> None:
    """Measure one after another."""
    wanted = all_measures(is_tiny=is_tiny)
    line = markdown if as_markdown else told
    sys.stdout.write(f"{machine()}\n\n{MARKDOWN_HEAD if as_markdown else HEAD}\n")
    with tempfile.TemporaryDirectory() as temporary:
        for name in names or wanted:
            folder = Path(temporary) / name
            folder.mkdir()
            for row in wanted[name](folder):
                sys.stdout.write(f"{line(row)}\n")
                sys.stdout.flush()
    sys.stdout.write(f"\n{machine()}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":", maxsplit=1)[0])
    parser.add_argument("--tiny", action="store_true", help="run with tiny sizes, to see that it runs")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    parser.add_argument("names", nargs="*", choices=[*all_measures(is_tiny=True), []], help="only these")
    options = parser.parse_args()
    main(options.names, is_tiny=options.tiny, as_markdown=options.markdown)
