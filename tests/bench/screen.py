"""Print what the screen costs: `python -m tests.bench.screen`. A pty, a model server on loopback, and a bare app of the same library beside it.

The exit status is 0 whatever it says; a person reads it. Ratios are taken within one run; the milliseconds are those of this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pi_durable_tui.tui.draw.markdown import MarkdownPainter
from pi_durable_tui.tui.draw.paint import new_console
from pi_durable_tui.tui.draw.stream import MarkdownStream
from pi_durable_tui.tui.palette import DARK, LIGHT
from tests.bench.filled import fill
from tests.bench.hands import Hands
from tests.bench.table import HEAD, Row, ratio, told
from tests.support.journey_desk import journey
from tests.support.tui_rig import running
from tests.support.tui_views import answer, user, view

PROGRAM = (sys.executable, "-P", "-m", "pi_durable_tui.cli.main")
BARE = (sys.executable, "-P", "-m", "tests.bench.bare_app")
READY = b"sk for"  # the cursor stands on the letter before


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured."""

    starts: int = 5
    keys: int = 150
    entries: int = 10_000
    stream_s: float = 20.0
    paste_bytes: int = 5_000_000
    answer_chars: int = 1_000_000
    turns: int = 4_000


TINY = Sizes(starts=1, keys=5, entries=20, stream_s=1.0, paste_bytes=20_000, answer_chars=5_000, turns=20)


# ------------------------------------------------------------------------------------------------------------ in a terminal


@contextmanager
def started(command: Sequence[str], folder: Path, environ: dict[str, str]) -> Iterator[Hands]:
    """A program in a terminal, ready for keys."""
    hands = Hands.start(command, cwd=folder, environ=environ)
    try:
        hands.wait_for(READY)
        yield hands
    finally:
        hands.end()


def starting(folder: Path, sizes: Sizes) -> Iterator[Row]:
    """From exec to the first paint and to the first key that is echoed; by turns with the bare app."""
    times: dict[str, list[float]] = {f"{name}{suffix}": [] for name in ("ours", "bare") for suffix in ("", " key", " cpu")}
    with journey(folder) as made:
        for _ in range(sizes.starts):
            for name, command in (("ours", PROGRAM), ("bare", BARE)):
                with started(command, made.work, made.environ) as hands:
                    times[name].append((time.monotonic() - hands.started_s) * 1_000)
                    times[f"{name} cpu"].append(hands.cpu_s() * 1_000)
                    hands.echo_ms()
                    times[f"{name} key"].append((time.monotonic() - hands.started_s) * 1_000)
    for what, suffix in (("exec to first paint", ""), ("exec to first echoed key", " key"), ("processor time to first paint", " cpu")):
        yield Row(name=what, values=times[f"ours{suffix}"])
        yield Row(name="  the bare app", values=times[f"bare{suffix}"])
        yield ratio("  ratio", times[f"ours{suffix}"], times[f"bare{suffix}"], 1.25)


def typing(folder: Path, sizes: Sizes) -> Iterator[Row]:
    """Keys while nothing happens, and while an answer streams under 10,000 entries; processor time of all processes meanwhile."""
    words = " ".join(f"word{number}" + (".\n\n" if number % 60 == 59 else "") for number in range(int(sizes.stream_s * 100)))
    with journey(folder, [{"words": words, "delay_ms": 10}]) as made:
        with started(BARE, made.work, made.environ) as hands:
            bare = typed_ms(hands, sizes.keys)
            yield Row(name="key echo, idle: the bare app", values=bare)
        with started(PROGRAM, made.work, made.environ) as hands:
            yield Row(name="key echo while the model library is loaded", values=typed_ms(hands, max(1, sizes.keys // 4)), limits=(None, 50))
            hands.drain(6.0)
            hands.write(b"\x15")
            hands.drain(0.1)
            idle = typed_ms(hands, sizes.keys)
            yield Row(name="key echo, idle", values=idle, limits=(10, 25))
            yield ratio("  ratio of the medians to the bare app", idle, bare)
            before_s, begun_s = hands.cpu_s(), time.monotonic()
            hands.drain(min(5.0, sizes.stream_s))
            yield Row(name="processor, idle", values=[100 * (hands.cpu_s() - before_s) / (time.monotonic() - begun_s)], unit="%", limits=(0.5, None))
            yield Row(name="memory of all processes, model code loaded", values=[hands.rss_mb()], unit="MB", limits=(330, None))
        asyncio.run(fill(made.desk.data, made.work, sizes.entries))
        with started((*PROGRAM, "--continue", "--approve", "all"), made.work, made.environ) as hands:
            hands.drain(6.0)
            hands.write(b"go")
            hands.drain(0.3)
            hands.write(b"\r")
            hands.wait_for(b"word3")
            before_s, begun_s = hands.cpu_s(), time.monotonic()
            hands.drain(sizes.stream_s / 3)
            used = 100 * (hands.cpu_s() - before_s) / (time.monotonic() - begun_s)
            yield Row(name=f"key echo, streaming 100 words/s under {sizes.entries:,} entries", values=typed_ms(hands, sizes.keys), limits=(12, 50))
            yield Row(name="processor, streaming, all processes", values=[used], unit="%", limits=(40, None))


def typed_ms(hands: Hands, count: int) -> list[float]:
    """Echo times of keys at a typist's pace, seeded."""
    pace = random.Random(7)
    times: list[float] = []
    for _ in range(count):
        times.append(hands.echo_ms())
        hands.drain(pace.uniform(0.03, 0.08))
        if len(times) % 40 == 0:
            hands.write(b"\x15")  # an empty line again: what is measured is a key, not a long line
            hands.drain(0.1)
    return times


def pasting(folder: Path, sizes: Sizes) -> Iterator[Row]:
    """A paste of megabytes: until its marker stands there, and until the next key is echoed."""
    with journey(folder) as made, started(PROGRAM, made.work, made.environ) as hands:
        hands.drain(6.0)
        body = (b"0123456789abcde\n" * (sizes.paste_bytes // 16 + 1))[: sizes.paste_bytes]
        begun_s = time.monotonic()
        hands.write(b"\x1b[200~" + body + b"\x1b[201~")
        hands.wait_for(b"pasted")
        yield Row(name=f"paste of {sizes.paste_bytes:,} bytes to its marker", values=[(time.monotonic() - begun_s) * 1_000], limits=(2_000, None))
        hands.echo_ms()
        yield Row(name="  to the next echoed key", values=[(time.monotonic() - begun_s) * 1_000], limits=(2_000, None))
        yield Row(name="  keys after it", values=typed_ms(hands, max(5, sizes.keys // 5)), limits=(None, None))


# ---------------------------------------------------------------------------------------------------------- in this process


def streams(_folder: Path, sizes: Sizes) -> Iterator[Row]:
    """Drawing answers that grow, frame by frame: the longest stall of blocks that are hard, and whether a long answer stays as cheap."""
    fence = "```python\n" + "".join(f"value_{number} = compute({number}, 'text')  # why\n" for number in range(300)) + "```\n"
    items = "".join(f"- item {number} with **bold** and `code`\n" for number in range(150))
    table = "| name | value | note |\n|---|---:|:---:|\n" + "".join(f"| `row{number}` | {number * 7} | some **words** here |\n" for number in range(60))
    for name, text in (("a fence of 300 lines", fence), ("a list of 150 items", items), ("a table of 60 rows", table)):
        yield Row(name=f"frame of {name}", values=_frames(text, 60), limits=(None, 100))
    paragraph = "Some words of an answer with `code` and **weight**, again and again, until the paragraph is long enough to wrap. " * 3
    whole = "".join(f"{paragraph}\n\n## Part {number}\n\n" for number in range(sizes.answer_chars // (len(paragraph) + 12) + 1))[: sizes.answer_chars]
    frames = _frames(whole, max(20, len(whole) // 1_000))
    half = len(frames) // 2
    yield Row(name=f"frame of an answer of {sizes.answer_chars:,} characters", values=frames)
    yield Row(name="  its second half against its first", values=[sum(frames[half:]) / sum(frames[:half])], unit="x", limits=(1.5, None))


def _frames(text: str, step: int) -> list[float]:
    stream = MarkdownStream(MarkdownPainter(width=112, palette=DARK, console=new_console()))
    times: list[float] = []
    for end in range(step, len(text) + step, step):
        begun_ns = time.perf_counter_ns()
        stream.show(text[:end])
        times.append((time.perf_counter_ns() - begun_ns) / 1e6)
    return times


def changes(_folder: Path, sizes: Sizes) -> Iterator[Row]:
    """Focus of the window, another theme, another size, under a long transcript: until the screen is drawn."""
    yield from asyncio.run(_changes(sizes))


async def _changes(sizes: Sizes) -> list[Row]:
    entries = [
        made for number in range(1, 2 * sizes.turns, 2) for made in (user(number, f"question {number}"), answer(number + 1, f"An *answer*.\n\n- {number}"))
    ]
    times: dict[str, list[float]] = {"window focus": [], "theme": [], "resize": []}
    async with running(view(*entries), size=(120, 40)) as rig:

        async def timed(name: str, act: Callable[[], Any]) -> None:
            begun_ns = time.perf_counter_ns()
            result = act()
            if asyncio.iscoroutine(result):
                await result
            await asyncio.sleep(0)
            rig.app.screen._on_timer_update()
            rig.app.screen._compositor.render_update(full=True)
            times[name].append((time.perf_counter_ns() - begun_ns) / 1e6)

        for number in range(10):
            await timed("window focus", lambda number=number: setattr(rig.app, "app_focus", number % 2 == 1))
            await timed("theme", lambda number=number: (rig.app.put_on(DARK if number % 2 else LIGHT), rig.chat.set_palette(DARK if number % 2 else LIGHT)))
            await timed("resize", lambda number=number: rig.pilot.resize_terminal(100 + number * 3, 40))
    limits = {"window focus": 50.0, "theme": 100.0, "resize": 150.0}
    return [Row(name=f"{name} under {sizes.turns:,} turns", values=each, limits=(limits[name], None)) for name, each in times.items()]


MEASURES: dict[str, Callable[[Path, Sizes], Iterator[Row]]] = {
    "starting": starting,
    "typing": typing,
    "pasting": pasting,
    "streams": streams,
    "changes": changes,
}


def main(wanted: Sequence[str], sizes: Sizes, folder: Path) -> None:
    """Measure one after another."""
    sys.stdout.write(f"{HEAD}\n")
    for name in wanted:
        part = folder / name
        part.mkdir()
        for row in MEASURES[name](part, sizes):
            sys.stdout.write(f"{told(row)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":", maxsplit=1)[0])
    parser.add_argument("--tiny", action="store_true", help="run with tiny sizes, to see that it runs")
    parser.add_argument("names", nargs="*", choices=[*MEASURES, []], help="only these")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(options.names or list(MEASURES), TINY if options.tiny else Sizes(), Path(temporary))
