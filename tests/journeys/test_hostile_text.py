"""Foreign text and the terminal (SA-1 to SA-3, CASE-G1): more than 400 texts at every place that shows any, in a real terminal, judged byte by byte.

The oracle is the grammar of what the program itself writes. Nothing in that grammar asks the terminal for anything but two modes, changes its
title or its clipboard, so nothing foreign does either, and nothing is typed in a person's place.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pi_durable_tui.tui.safe_text import safe_line
from tests.journeys.conftest import Begin
from tests.support.cli_runs import ROOT
from tests.support.hostile_app import AROUND, TRANSCRIPT
from tests.support.hostile_text import CASE_G1, hostile_texts
from tests.support.journey_desk import Journey, calls
from tests.support.terminal_grammar import MODES, OWN, breaches, plain
from tests.support.terminal_recording import Recording, recorded

COMMAND = [sys.executable, "-P", "-m", "pi_durable_tui.cli.main"]
SWITCHES = re.compile(rb"\x1b\[\?(?:[0-9;]+)[hl]|\x1b\[[<>][0-9]*u")
TOO_NARROW = 4
"""So many texts of a place may be cut off by the width of a name."""


def switched(raw: bytes) -> list[bytes]:
    """The modes of the terminal that were switched, in order, without the marks around every frame."""
    return [found for found in SWITCHES.findall(raw) if b"2026" not in found]


OWN_SWITCHES = switched(
    b"\x1b[?1049h\x1b[?1000h\x1b[?1003h\x1b[?1015h\x1b[?1006h\x1b[?25l\x1b[?1004h\x1b[>25u\x1b[?2004h\x1b[?7l"
    b"\x1b[?1000h\x1b[?1003h\x1b[?1015h\x1b[?1006h\x1b[?2004l\x1b[?7h\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l"
    b"\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l"
)


@pytest.mark.rule("SA-1")
def test_the_oracle_knows_every_hostile_text_but_those_that_the_driver_writes_too() -> None:
    texts = hostile_texts()
    assert len(texts) > 400
    missed = [text for text in texts if not breaches(text.encode("utf-8", "surrogatepass"))]
    assert [text for text in missed if not OWN.fullmatch(text)] == []
    assert {"25", "1049", "2004"} <= set(MODES)
    assert len(missed) < 12


@pytest.mark.slow
@pytest.mark.rule("SA-1", "SA-2", "SA-3", "CASE-G1", "CASE-E1")
@pytest.mark.parametrize(("act", "places", "columns", "rows"), [("transcript", TRANSCRIPT, 200, 110), ("around", AROUND, 130, 44)])
def test_no_foreign_text_at_any_place_of_the_app_brings_a_byte_to_the_terminal_that_is_not_the_drivers(
    act: str, places: tuple[str, ...], columns: int, rows: int, record_property: Callable[[str, object], None]
) -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    seen = recorded([sys.executable, "-m", "tests.support.hostile_app", act], cwd=ROOT, environ=environ, columns=columns, rows=rows)
    assert seen.code == 0, plain(seen.raw)[-2000:]
    assert breaches(seen.raw) == []
    assert switched(seen.raw) == OWN_SWITCHES
    assert (seen.is_restored, seen.typed) == (True, b"")
    shown, texts = plain(seen.raw), hostile_texts()
    # The composer drops without a mark what is no text; everywhere else a visible sign stands for it.
    missing = {
        place: [text for number, text in enumerate(texts) if f"{place}{number:03}{safe_line(text)[:1] if place != 'paste' else ''}" not in shown]
        for place in places
    }
    assert {place: found for place, found in missing.items() if len(found) > TOO_NARROW} == {}
    record_property("told", f"{len(texts)} hostile texts at {len(places)} places of the app ({act})")


def on_a_terminal(journey: Journey, *arguments: str) -> Recording:
    """A command of the program on a terminal, to its end."""
    seen = recorded([*COMMAND, *arguments], cwd=journey.work, environ=journey.environ)
    assert (seen.is_restored, seen.typed) == (True, b"")
    return seen


def hostile_run(begin: Begin, root: Path) -> Journey:
    """A run whose every part is hostile: the directory's instructions, names of files, commands and their output, the model in pieces, its thinking."""
    everything = "\n".join(hostile_texts())
    odd = [text for text in hostile_texts() if "/" not in text and "\0" not in text][::9]
    script = f"printf %s {json.dumps(CASE_G1)[1:-1]!r}; cat all.txt; ls"
    pieces = [{"text": everything[start : start + 7]} for start in range(0, len(everything), 7)]
    journey = begin(
        [
            {"reason": everything},
            *calls(("bash", {"command": script}), ("read", {"path": f"no {CASE_G1}"}), ("write", {"path": f"n{odd[3]}", "content": everything})),
        ],
        [{"text": "```\n"}, *pieces, {"text": "\n```\n"}, *pieces, {"finish": "stop"}, {"usage": {"prompt": 10, "completion": 5, "cached": 0}}],
        [{"text": everything}, {"finish": "stop"}],
    )
    (journey.work / "all.txt").write_text(everything, encoding="utf-8")
    (journey.work / "AGENTS.md").write_text(everything, encoding="utf-8")
    for text in odd:
        (journey.work / f"f{text}").touch()
    return journey


@pytest.mark.slow
@pytest.mark.rule("SA-1", "SA-2", "CASE-G1")
def test_no_command_of_the_program_passes_foreign_text_to_a_terminal_as_it_came(begin: Begin, tmp_path: Path) -> None:
    journey = hostile_run(begin, tmp_path)
    answered = on_a_terminal(journey, "-p", "--trust", "--approve", "all", f"title {CASE_G1}")
    assert answered.code == 0, plain(answered.raw)[-1500:]
    assert journey.refused == []
    assert "\u241b" in plain(answered.raw)
    seen = {
        "answer": answered,
        "json": on_a_terminal(journey, "-p", "--mode", "json", "hello"),
        "log": on_a_terminal(journey, "log", "1.1"),
        "inspect": on_a_terminal(journey, "inspect"),
        "sessions": on_a_terminal(journey, "sessions"),
        "inspect json": on_a_terminal(journey, "inspect", "--json"),
        "sessions json": on_a_terminal(journey, "sessions", "--json"),
        "doctor": on_a_terminal(journey, "doctor"),
        "export": on_a_terminal(journey, "export", "1.1"),
        "wrong option": on_a_terminal(journey, f"--{CASE_G1}"),
        "wrong command": on_a_terminal(journey, "log", CASE_G1),
        "wrong model": on_a_terminal(journey, "-p", "--model", f"playback/{CASE_G1}", "hello"),
        "wrong folder": on_a_terminal(journey, "-p", "--cwd", f"/nowhere/{CASE_G1}", "hello"),
    }
    assert {name: found for name, one in seen.items() if (found := breaches(one.raw))} == {}
    assert plain(seen["log"].raw).count("\u241b") > 1_000
    assert json.loads(plain(seen["sessions json"].raw))[1]["title"].startswith("title A")
