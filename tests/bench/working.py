"""What the app costs at work: an answer that streams, long sessions that are opened, a kill and what follows it, Esc. Beside a bare app of the same run.

In a pty, with a provider on loopback. The tokens are the nanoseconds of their sending, so a token on the screen says how old it is.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bench.filled import fill
from tests.bench.hands import Hands
from tests.bench.models import provider
from tests.bench.screen import BARE, PROGRAM, started, typed_ms
from tests.bench.table import Row, ratio
from tests.support.journey_desk import calls, journey, processes, says

OPEN = b"approve "  # stands in the footer once a chat is open
SHORT = 20
TOKEN = re.compile(rb"(?<!\d)(\d{12,17})(?= |\x1b|\r)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured."""

    tokens: int = 2_000
    submits: int = 10
    keys: int = 150
    starts: int = 5
    kills: int = 5
    stops: int = 10
    entries: tuple[int, ...] = (1_000, 10_000, 100_000)
    load_s: float = 6.0  # within this the model library is loaded


TINY = Sizes(tokens=30, submits=1, keys=3, load_s=0.0, starts=1, kills=1, stops=1, entries=(20,))


@dataclass(slots=True, kw_only=True)
class Answered:
    """An answer as it came onto the screen. `lags_ms`: how old each token was when it did, in the order of sending; `sent_ms`: Enter to the request."""

    sent_ms: float
    lags_ms: list[float]
    cpu_ms: float
    rss_mb: float


def answered(hands: Hands, tokens: int) -> Answered:
    """Ask, and watch the answer to its end."""
    hands.write(f"tokens={tokens}".encode())
    hands.drain(0.3)
    before_s, entered_ns = hands.cpu_s(), time.monotonic_ns()
    hands.write(b"\r")
    seen, held = dict[int, int](), b""
    while len(seen) < tokens and time.monotonic_ns() - entered_ns < 120e9:
        data = held + hands.read(0.5)
        now_ns = time.monotonic_ns()
        for found in TOKEN.findall(data):
            if entered_ns < int(found) <= now_ns:
                seen.setdefault(int(found), now_ns)
        held = data[-32:]
        if seen and now_ns - max(seen.values()) > 1e9:
            break  # the others scrolled by between two frames
    order = sorted(seen)
    return Answered(
        sent_ms=(order[0] - entered_ns) / 1e6,
        lags_ms=[(seen[token] - token) / 1e6 for token in order],
        cpu_ms=1_000 * (hands.cpu_s() - before_s),
        rss_mb=hands.rss_mb(),
    )


def answering(folder: Path, sizes: Sizes) -> Iterator[Row]:
    """A long answer at 100 tokens a second."""
    with provider(sizes.tokens) as port, journey(folder) as made:
        with started((*BARE, str(port)), made.work, made.environ) as hands:
            bare_rss_mb = hands.rss_mb()
            bare_short = [answered(hands, SHORT) for _ in range(sizes.submits)]
            bare = answered(hands, sizes.tokens)
        with started(PROGRAM, made.work, _asking(made.environ, port)) as hands:
            start_rss_mb = hands.rss_mb()
            hands.drain(sizes.load_s)
            loaded_rss_mb = hands.rss_mb()
            answered(hands, SHORT)  # the first connection
            short = [answered(hands, SHORT) for _ in range(sizes.submits)]
            ours = answered(hands, sizes.tokens)
    yield Row(name="Enter to the request leaving", values=[each.sent_ms for each in short], limits=(60, None))
    yield Row(name="  the bare app, which stores nothing", values=[each.sent_ms for each in bare_short])
    yield Row(name="first token, server to screen, committed in between", values=[each.lags_ms[0] for each in short], limits=(30, None))
    yield Row(name="  the bare app", values=[each.lags_ms[0] for each in bare_short])
    yield Row(name="later tokens, server to screen", values=ours.lags_ms[1:], limits=(70, 150))
    yield Row(name="  the bare app", values=bare.lags_ms[1:])
    yield Row(name="processor time for a token, all processes", values=[ours.cpu_ms / sizes.tokens])
    yield ratio("  ratio to the bare app", [ours.cpu_ms], [bare.cpu_ms])
    yield Row(name="memory at the first paint, all processes", values=[start_rss_mb], unit="MB", limits=(90, None))
    yield Row(name="  the bare app", values=[bare_rss_mb], unit="MB")
    yield Row(name="  with the model library loaded", values=[loaded_rss_mb], unit="MB", limits=(330, None))
    yield Row(name=f"  after an answer of {sizes.tokens:,} tokens", values=[ours.rss_mb], unit="MB", limits=(330, None))
    yield Row(name="  the bare app after it", values=[bare.rss_mb], unit="MB")


def typing_while(folder: Path, sizes: Sizes) -> Iterator[Row]:
    """Keys while an answer streams at 100 tokens a second, in the bare app and in ours."""
    times: dict[str, list[float]] = {}
    with provider(sizes.tokens) as port, journey(folder) as made:
        for name, command, environ in (("bare", (*BARE, str(port)), made.environ), ("ours", PROGRAM, _asking(made.environ, port))):
            with started(command, made.work, environ) as hands:
                hands.drain(sizes.load_s)
                hands.write(b"go")
                hands.drain(0.3)
                hands.write(b"\r")
                _some_tokens(hands, min(10, sizes.tokens))
                times[name] = typed_ms(hands, sizes.keys)
    yield Row(name="key echo while 100 tokens/s stream: the bare app", values=times["bare"])
    yield Row(name="key echo while 100 tokens/s stream", values=times["ours"], limits=(12, 50))
    yield ratio("  ratio of the medians to the bare app", times["ours"], times["bare"])


def opening(folder: Path, sizes: Sizes) -> Iterator[Row]:
    """Long sessions: until the end of the newest chat is on the screen, and until a key is echoed; memory."""
    with journey(folder) as made:
        empty_ms = [_opened_ms(PROGRAM, made.work, made.environ, OPEN) for _ in range(sizes.starts)]
        with started(PROGRAM, made.work, made.environ) as hands:
            hands.drain(sizes.load_s)
            empty_mb = hands.rss_mb()
        yield Row(name="exec to an empty chat, open", values=empty_ms)
        for count in sizes.entries:
            asyncio.run(fill(made.desk.data, made.work, count))
            end = f"one of {count - 1}".encode()
            times = [_opened_ms((*PROGRAM, "--continue"), made.work, made.environ, end) for _ in range(sizes.starts)]
            yield Row(name=f"exec to the end of {count:,} entries on the screen", values=times)
            yield ratio("  ratio to an empty chat", times, empty_ms, 1.2)
            with started((*PROGRAM, "--continue"), made.work, made.environ) as hands:
                hands.drain(sizes.load_s)
                yield Row(name=f"memory that {count:,} entries add", values=[hands.rss_mb() - empty_mb], unit="MB", limits=(30, None))


def recovering(folder: Path, sizes: Sizes) -> Iterator[Row]:
    """`kill -9` in mid-answer; exec of `--continue` to all that was seen on the screen again, beside a cold start."""
    with provider(sizes.tokens) as port, journey(folder) as made:
        environ = _asking(made.environ, port)
        starts = [_opened_ms(PROGRAM, made.work, environ, OPEN) for _ in range(sizes.starts)]
        times: list[float] = []
        for _ in range(sizes.kills):
            with started(PROGRAM, made.work, environ) as hands:
                hands.wait_for(OPEN)
                hands.write(b"go")
                hands.drain(0.3)
                hands.write(b"\r")
                newest = _some_tokens(hands, min(sizes.tokens // 2, 150))
            times.append(_opened_ms((*PROGRAM, "--continue"), made.work, environ, newest))
    yield Row(name="a cold start, exec to an open chat", values=starts)
    yield Row(name="recovery: exec of --continue after kill -9 to all text on the screen again", values=times)
    yield ratio("  ratio to a cold start", times, starts, 1.3)


def stopping(folder: Path, sizes: Sizes) -> Iterator[Row]:
    """Esc while a command of 30 s runs, until no process of it is left."""
    mark = "sleep 30.0419"
    script = [step for _ in range(sizes.stops) for step in (calls(("bash", {"command": f"{mark} & {mark}"})),)]
    times: list[float] = []
    with journey(folder, *script, says("unused")) as made, started((*PROGRAM, "--approve", "all"), made.work, made.environ) as hands:
        hands.wait_for(OPEN)
        hands.drain(sizes.load_s)
        for _ in range(sizes.stops):
            hands.write(b"go")
            hands.drain(0.3)
            hands.write(b"\r")
            _until(hands, lambda: len(processes(mark)) >= 2)
            hands.drain(0.3)
            begun_s = time.monotonic()
            hands.write(b"\x1b")
            _until(hands, lambda: not processes(mark))
            times.append((time.monotonic() - begun_s) * 1_000)
            hands.drain(0.7)
    yield Row(name="Esc to no process left of a command that runs", values=times, limits=(100, 250))


def _asking(environ: Mapping[str, str], port: int) -> dict[str, str]:
    base_url = f"http://127.0.0.1:{port}/v1"
    return {**environ, "OPENAI_BASE_URL": base_url, "OPENAI_API_BASE": base_url}


def _opened_ms(command: tuple[str, ...], work: Path, environ: Mapping[str, str], wanted: bytes) -> float:
    hands = Hands.start(command, cwd=work, environ=environ)
    try:
        hands.wait_for(wanted)
        return (time.monotonic() - hands.started_s) * 1_000
    finally:
        hands.end()


def _some_tokens(hands: Hands, count: int) -> bytes:
    """Watch until so many tokens are on the screen; the newest one."""
    seen: set[bytes] = set()
    end_s = time.monotonic() + 60
    while len(seen) < count:
        if time.monotonic() > end_s:
            raise TimeoutError(f"{count} tokens did not come: {hands.seen[-2_000:]!r}")
        hands.read(0.5)
        seen |= set(TOKEN.findall(hands.seen))
    return max(seen)


def _until(hands: Hands, condition: Callable[[], bool]) -> None:
    """Read until the condition holds, looked at all the time."""
    end_s = time.monotonic() + 30
    while not condition():
        if time.monotonic() > end_s:
            raise TimeoutError(f"it did not come: {hands.seen[-2_000:]!r}")
        hands.read(0.002)


MEASURES: dict[str, Callable[[Path, Sizes], Iterator[Row]]] = {
    "answering": answering,
    "typing_while": typing_while,
    "opening": opening,
    "recovering": recovering,
    "stopping": stopping,
}
