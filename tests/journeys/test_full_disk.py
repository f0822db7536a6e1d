"""The app on a disk that fills up under it (PR-17): it says so, stays usable, and goes on when there is room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.conftest import Begin
from tests.support.journey_desk import calls, numbered, says
from tests.support.small_disk import SmallDisk, small_disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "data") as made:
        if made is None:
            pytest.skip("no disk may be mounted here")
        yield made


@pytest.mark.slow
@pytest.mark.rule("PR-17")
def test_the_app_says_that_the_disk_is_full_stays_and_goes_on_when_there_is_room(disk: SmallDisk, begin: Begin) -> None:
    journey = begin(
        [*numbered(40, delay_ms=15), {"text": " the end."}, {"finish": "stop"}, {"usage": {"prompt": 10, "completion": 5, "cached": 0}}],
        says("There is room again."),
        calls(("bash", {"command": "seq 30000; echo the end"})),
        says("I printed a lot."),
        says("Still here."),
    )
    app = journey.start("--approve", "all")
    app.send("count for me")
    app.wait_for("n005")
    disk.fill()
    app.wait_for("n039", "the end.")  # for the end of what had begun there is room
    app.send("are you there?")
    app.wait_until(lambda: any(app.sees(text) for text in ("bytes left", "no space", "disk is full", "There is room again.")), what="a word about the disk")
    assert app.process.poll() is None
    disk.free()
    app.read_for(0.5)
    if not app.sees("There is room again."):
        app.press("enter")
    app.wait_for("There is room again.", "● stored")
    app.send("print a lot")
    disk.fill(leave_bytes=150 * 1024)
    app.wait_until(lambda: app.sees("I printed a lot.") or app.sees("bytes left"), what="the command, or a word about the disk")
    disk.free()
    app.wait_for("I printed a lot.", "● stored")
    app.kill()
    again = journey.start("--continue")
    again.wait_for("There is room again.", "I printed a lot.", "● stored")
    assert journey.refused == []
