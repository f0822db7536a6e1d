"""Whatever looks at a folder meets one full of oddities: it ends, within bounds, and shows names that do nothing: SA-10."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pi_durable_tui.cli.screen import files as completion
from pi_durable_tui.cli.screen.files import FileNames, walk
from pi_durable_tui.clock import SystemClock
from pi_durable_tui.context.attachments import gather
from pi_durable_tui.records.messages import Text
from pi_durable_tui.tools.history.contents import Contents
from pi_durable_tui.tools.history.log import NOT_KEPT
from pi_durable_tui.tools.history.scan import Scan
from pi_durable_tui.tools.search import tree
from pi_durable_tui.tools.text.names import shown
from tests.support.tools_calls import Workplace, text_of

SPARSE_BYTES = 100 * 1024**3
NAMES = 300
BAD_NAMES = (os.fsdecode(b"\xff\xfe"), "esc\x1b]0;title\x07", "two\nlines", "\u202egnp.exe", "[red]", "-rf", "$(touch ran)", " ")
ODD = ("pipe", "socket", "self", "ping", "hole", "up", *BAD_NAMES)


@pytest.fixture
def odd(work: Workplace) -> Iterator[Workplace]:
    """A workplace whose folder has one of everything."""
    folder = work.folder
    os.mkfifo(folder / "pipe")
    (folder / "self").symlink_to("self")
    (folder / "ping").symlink_to("pong")
    (folder / "pong").symlink_to("ping")
    (folder / "up").symlink_to(".")
    with (folder / "hole").open("wb") as file:
        file.truncate(SPARSE_BYTES)
    for name in BAD_NAMES:
        (folder / name).write_text("needle\n")
    (folder / "many").mkdir()
    for number in range(NAMES):
        (folder / "many" / f"{number:04}").touch()
    _make_deep(folder, levels=40)
    with socket.socket(socket.AF_UNIX) as listener:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            listener.bind(f"/proc/self/fd/{descriptor}/socket")  # a socket's path is short
            yield work
        finally:
            os.close(descriptor)


def _make_deep(folder: Path, *, levels: int) -> None:
    """A chain of folders whose path is longer than any call takes."""
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 200, dir_fd=descriptor)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)


@pytest.mark.rule("SA-10")
@pytest.mark.parametrize("name", [*ODD, "d" * 200, "many"], ids=lambda name: ascii(name)[:12])
async def test_reading_writing_and_editing_anything_odd_ends_and_says_what_it_is(odd: Workplace, name: str):
    path = f"./{name}"
    answers = [
        await odd.call("read", path=path),
        await odd.call("edit", path=path, edits=[{"old": "nothing like it", "new": "b"}]),
        await odd.call("ls", path=path),
        await odd.call("grep", pattern="nowhere to be found", path=path),
    ]
    if name not in BAD_NAMES:
        answers.append(await odd.call("write", path=path, content="text"))
        assert answers[-1].is_error
        assert (odd.folder / "hole").stat().st_size == SPARSE_BYTES
    assert all(len(text_of(answer)) < 60_000 for answer in answers)
    assert not (odd.folder / "ran").exists()


@pytest.mark.rule("SA-10")
async def test_going_through_the_folder_ends_and_no_name_holds_a_control_sequence(odd: Workplace):
    listed = text_of(await odd.call("ls"))
    found = text_of(await odd.call("find", glob="*", limit=2_000))
    matches = text_of(await odd.call("grep", pattern="needle"))
    for answer in (listed, found, matches):
        assert not {"\x1b", "\x07", "\u202e", "\udcff"} & set(answer)
    assert {shown(name) for name in BAD_NAMES} <= {line.partition(" (7 bytes)")[0] for line in listed.splitlines()}
    assert {shown(name) for name in BAD_NAMES} <= set(matches.split("\n"))
    assert found.count("many/0") == NAMES


@pytest.mark.rule("SA-10")
def test_of_a_folder_with_too_many_names_a_part_is_looked_at_everywhere(odd: Workplace, monkeypatch: pytest.MonkeyPatch):
    for module in (tree, completion):
        monkeypatch.setattr(module, "FOLDER_NAMES", 100)  # the same code as for a million, without making a million files
    many = odd.folder / "many"
    assert sum(1 for _ in walk(str(many))) == 100
    assert len(FileNames(str(many), SystemClock()).complete("", limit=NAMES)) == 100
    counted = tree.Tree(str(many))
    assert (sum(1 for _ in counted.entries()), counted.is_cut) == (100, True)


@pytest.mark.rule("SA-10")
def test_the_files_that_are_kept_for_undo_leave_the_odd_ones_out(odd: Workplace, tmp_path: Path):
    scan = Scan(str(odd.folder), Contents(tmp_path / "kept"), SystemClock())
    scan.look()
    kept = {Path(path).name: seen.content for path, seen in scan.seen.items()}
    assert kept["hole"] == NOT_KEPT
    assert not {"pipe", "socket", "self", "ping", "up"} & set(kept)
    assert set(BAD_NAMES) <= set(kept)


@pytest.mark.rule("SA-10")
@pytest.mark.parametrize("name", ["pipe", "socket", "self", "ping", "hole", "up"])
def test_nothing_odd_comes_along_with_a_prompt(odd: Workplace, name: str):
    attached = gather(f"look at @{name}", directory=odd.folder, home=None, takes_images=True)
    texts = [part.text for part in attached.parts if isinstance(part, Text)]
    assert len(attached.remarks) + len(texts) == 1
    assert sum(map(len, texts)) < 10_000
