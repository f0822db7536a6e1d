"""Print what the core costs, in one table: `python -m tests.bench`. The exit status is 0 whatever it says; a person reads it."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.bench.measures import MEASURES, TINY, Row, Sizes


def told(row: Row) -> str:
    """One line: the name, the value, the limit, and whether it holds."""
    limit = f"{'>=' if row.is_least else '<='} {row.limit:g}" if row.limit is not None else ""
    verdict = "" if row.limit is None else "ok" if row.holds else "OVER"
    return f"{row.name:<64} {row.value:>10.2f} {row.unit:<8} {limit:<8} {verdict}".rstrip()


async def main(sizes: Sizes, folder: Path) -> None:
    """Measure one after another."""
    for number, measure in enumerate(MEASURES):
        part = folder / str(number)
        part.mkdir()
        for row in await measure(part, sizes):
            sys.stdout.write(f"{told(row)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":", maxsplit=1)[0])
    parser.add_argument("--tiny", action="store_true", help="run with tiny sizes, to see that it runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(main(TINY if options.tiny else Sizes(), Path(temporary)))
