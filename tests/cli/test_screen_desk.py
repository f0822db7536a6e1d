"""File names and the editor that the composer is given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pi_durable_tui.cli.screen.editor import edit, editor_command
from pi_durable_tui.cli.screen.files import FileNames, candidates, rank_of, walk
from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import EnvironmentFailure


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("src/cart.py", "src/deep/till.py", "build/out.o", "notes [x].md", ".hidden/a", "docs/cart.md", ".git/config"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (tmp_path / ".gitignore").write_text("build/\n*.o\n")
    (tmp_path / "src/.gitignore").write_text("deep/\n")
    (tmp_path / "loop").symlink_to(tmp_path)
    return tmp_path


@pytest.mark.rule("TU-10")
def test_a_walk_gives_what_is_near_first_and_nothing_that_is_ignored_or_behind_a_link(tree: Path) -> None:
    found = list(walk(str(tree)))
    assert found == [
        ".gitignore",
        ".hidden/",
        "docs/",
        "loop",
        "notes [x].md",
        "src/",
        ".hidden/a",
        "docs/cart.md",
        "src/.gitignore",
        "src/cart.py",
    ]


@pytest.mark.rule("TU-10")
def test_names_are_found_by_a_few_letters_the_best_ones_first(tree: Path) -> None:
    names = FileNames(str(tree), ManualClock())
    names.find("", limit=1)
    names._first.wait(5)
    assert names.find("cart", limit=10) == ["src/cart.py", "docs/cart.md"]
    assert names.find("srcrt", limit=10) == ["src/cart.py"]
    assert names.find("CART", limit=1) == ["src/cart.py"]
    assert names.find("nothing like it", limit=10) == []
    assert names.find("", limit=2) == ["loop", ".gitignore"]


@pytest.mark.rule("TU-10")
def test_names_are_looked_up_again_after_a_while(tree: Path) -> None:
    clock = ManualClock()
    names = FileNames(str(tree), clock)
    names.find("", limit=1)
    names._first.wait(5)
    (tree / "new.py").write_text("x")
    assert names.find("new", limit=5) == []
    clock.advance(10_000)
    names._first.clear()
    names.find("new", limit=5)
    names._first.wait(5)
    assert names.find("new", limit=5) == ["new.py"]


@pytest.mark.rule("TU-10")
def test_a_path_is_completed_in_order_and_hidden_names_only_when_asked_for(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = FileNames(str(tree), ManualClock())
    assert names.complete("src/c", limit=5) == ["src/cart.py"]
    assert names.complete("", limit=9) == ["build/", "docs/", "loop/", "notes [x].md", "src/"]
    assert names.complete(".h", limit=9) == [".hidden/"]
    assert names.complete(f"{tree}/sr", limit=9) == [f"{tree}/src/"]
    assert names.complete("no/such/place", limit=9) == []
    monkeypatch.setenv("HOME", str(tree))
    assert names.complete("~/docs/", limit=9) == ["~/docs/cart.md"]


def test_a_rank_prefers_the_beginning_of_the_last_part() -> None:
    ordered = ["cart.py", "src/cart.py", "my-cart.py", "cart/other.py", "c-a-r-t.py", "c/a/r/t"]
    assert sorted(ordered, key=lambda name: rank_of(name, "cart") or ()) == ordered
    assert rank_of("till.py", "cart") is None
    assert candidates([f"{number}/cart" for number in range(50)] + ["c-a-r-t"], "cart") == [f"{number}/cart" for number in range(50)]


def script(folder: Path, body: str) -> str:
    path = folder / "editor.sh"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.rule("TU-10", "SA-16")
def test_the_editor_gets_the_text_in_a_file_of_its_own_that_goes_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = script(tmp_path, f'ls -l "$2" > {tmp_path}/seen; echo "$1" >> {tmp_path}/seen; cat "$2" >> {tmp_path}/seen; printf "new text\\n" > "$2"')
    assert edit("old [/x] text", {"EDITOR": f"{command} --wait", "PATH": os.environ["PATH"]}) == "new text"
    seen = (tmp_path / "seen").read_text()
    assert seen.startswith("-rw-------")
    assert seen.endswith("--wait\nold [/x] text")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("pidurable-")] == []


@pytest.mark.rule("TU-10")
def test_an_editor_that_fails_leaves_the_text_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure, match="ended with code 3"):
        edit("x", {"VISUAL": script(tmp_path, "exit 3")})
    with pytest.raises(EnvironmentFailure, match="could not be used"):
        edit("x", {"VISUAL": str(tmp_path / "missing")})
    with pytest.raises(EnvironmentFailure, match="There is no editor"):
        editor_command({"PATH": str(tmp_path)})
    assert editor_command({"VISUAL": "code --wait", "EDITOR": "vi"}) == ["code", "--wait"]
