"""The branch that the footer names: from git's own files, whatever stands in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_durable_tui.cli.screen.branch import branch

HASH = "0123456789abcdef0123456789abcdef01234567"


def head(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "HEAD").write_text(text)


@pytest.mark.rule("TU-11")
@pytest.mark.parametrize(
    ("text", "named"),
    [("ref: refs/heads/main\n", "main"), ("ref: refs/heads/feature/cart\n", "feature/cart"), (f"{HASH}\n", "01234567"), ("", ""), ("x" * 5_000, "")],
)
def test_the_branch_or_the_commit_is_named_from_any_folder_of_the_repository(tmp_path: Path, text: str, named: str) -> None:
    head(tmp_path / ".git", text)
    (tmp_path / "src" / "deep").mkdir(parents=True)
    assert [branch(tmp_path), branch(tmp_path / "src" / "deep")] == [named, named]


@pytest.mark.rule("TU-11")
def test_a_work_tree_is_followed_to_its_own_head(tmp_path: Path) -> None:
    head(tmp_path / "whole" / ".git" / "worktrees" / "w", "ref: refs/heads/other\n")
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / ".git").write_text("gitdir: ../whole/.git/worktrees/w\n")
    assert branch(tmp_path / "w") == "other"


@pytest.mark.rule("TU-11")
def test_what_is_no_repository_or_cannot_be_read_has_no_branch(tmp_path: Path) -> None:
    assert branch(tmp_path) == ""
    (tmp_path / ".git").write_bytes(b"gitdir: \xff\x00")
    assert branch(tmp_path) == ""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".git").write_text("gitdir: nowhere\n")
    assert branch(tmp_path / "sub") == ""
