"""The app stands on the screen, and takes keys, before it loads its model library or uses the network (speed.md, CASE-B11)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.journeys.conftest import Begin
from tests.support.journey_desk import says


@pytest.mark.slow
@pytest.mark.rule("CASE-B11")
def test_the_first_picture_and_the_first_keys_need_neither_the_model_library_nor_the_network(begin: Begin, tmp_path: Path) -> None:
    journey = begin(says("Hello to you."))
    painted, log = tmp_path / "painted", tmp_path / "watched.log"
    watched = (sys.executable, "-m", "tests.support.journey_watched", str(painted), str(log))
    terminal = journey.start("--approve", "all", command=watched)
    terminal.type("hello")
    terminal.wait_for("hello", "● stored")
    tried = log.read_text().splitlines() if log.exists() else []
    assert set(tried) <= {"before litellm asked for"}

    painted.touch()
    terminal.press("enter")
    terminal.wait_for("Hello to you.", "● stored")
    done = log.read_text().splitlines()
    assert done[:2] == [*(tried or ["after litellm asked for"]), "after litellm loaded"]
    assert set(done[2:]) == {"after network"}
