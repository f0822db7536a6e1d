"""Which AGENTS.md and CLAUDE.md are found: CASE-F6, AG-1, SA-10."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pi_durable_tui.context.project import LIMIT_BYTES, MOST_ITEMS, TOTAL_CHARS, root_of
from pi_durable_tui.context.workspace import Workspace
from pi_durable_tui.harness.live import Agent
from tests.support.context_folders import Folders


def texts(workspace: Workspace) -> list[tuple[str, str]]:
    return [(item.shown, item.text) for item in workspace.items if item.kind == "instructions"]


@pytest.mark.rule("CASE-F6", "AG-1")
def test_the_users_file_comes_first_then_each_from_the_root_down_to_the_working_directory(folders: Folders):
    folders.put(folders.config / "AGENTS.md", "U")
    folders.put(folders.repo / "AGENTS.md", "R")
    folders.put(folders.repo / "pkg" / "AGENTS.md", "P")
    (folders.repo / "pkg" / "sub").mkdir()
    workspace = folders.workspace(folders.repo / "pkg" / "sub")
    assert texts(workspace) == [("config/AGENTS.md", "U"), ("AGENTS.md", "R"), ("pkg/AGENTS.md", "P")]
    assert workspace.warnings == ()


@pytest.mark.rule("CASE-F6")
def test_files_of_folders_beside_and_below_are_not_read(folders: Folders):
    folders.put(folders.repo / "other" / "AGENTS.md", "beside")
    folders.put(folders.repo / "pkg" / "sub" / "AGENTS.md", "below")
    assert texts(folders.workspace(folders.repo / "pkg")) == []


@pytest.mark.rule("CASE-F6")
def test_a_worktree_inside_the_repository_is_a_project_of_its_own(folders: Folders):
    folders.put(folders.repo / "AGENTS.md", "R")
    worktree = folders.repo / "trees" / "one"
    folders.put(worktree / ".git", "gitdir: ../../.git/worktrees/one")
    folders.put(worktree / "AGENTS.md", "R")
    workspace = folders.workspace(worktree)
    assert (workspace.root, texts(workspace)) == (worktree, [("AGENTS.md", "R")])


@pytest.mark.rule("CASE-F6")
def test_the_same_file_or_the_same_text_is_used_once(folders: Folders):
    folders.put(folders.repo / "AGENTS.md", "R")
    (folders.repo / "a").mkdir()
    (folders.repo / "a" / "AGENTS.md").symlink_to(folders.repo / "AGENTS.md")
    folders.put(folders.repo / "a" / "b" / "AGENTS.md", "R")
    assert texts(folders.workspace(folders.repo / "a" / "b")) == [("AGENTS.md", "R")]


@pytest.mark.rule("CASE-F6")
def test_claude_md_is_read_where_there_is_no_agents_md(folders: Folders):
    folders.put(folders.repo / "AGENTS.md", "A")
    folders.put(folders.repo / "CLAUDE.md", "not this one")
    folders.put(folders.repo / "pkg" / "CLAUDE.md", "C")
    assert texts(folders.workspace(folders.repo / "pkg")) == [("AGENTS.md", "A"), ("pkg/CLAUDE.md", "C")]


@pytest.mark.rule("CASE-F6")
@pytest.mark.parametrize("start", ["home", "home/plain/deep", "elsewhere/deep"])
def test_without_a_repository_only_the_working_directory_counts(folders: Folders, start: str):
    (folders.top / "home" / ".git").mkdir()  # a home kept in git is no project
    for above in (folders.top, folders.top / "home", folders.top / "home" / "plain", folders.top / "elsewhere"):
        folders.put(above / "AGENTS.md", f"from {above.name}")
    directory = folders.top / start
    directory.mkdir(parents=True, exist_ok=True)
    expected = [("AGENTS.md", "from home")] if start == "home" else []
    assert texts(folders.workspace(directory)) == expected


def test_the_root_of_the_file_system_is_no_project():
    assert root_of(Path("/"), None) == Path("/")


@pytest.mark.rule("CASE-F6", "CASE-G4", "SA-5")
@pytest.mark.parametrize("how", ["file", "folder"])
def test_a_link_that_leads_out_of_the_project_is_not_followed(folders: Folders, how: str):
    secret = folders.put(folders.top / "home" / ".ssh" / "AGENTS.md", "KEY")
    if how == "file":
        (folders.repo / "AGENTS.md").symlink_to(secret)
    else:
        (folders.repo / "pkg").symlink_to(secret.parent)
    workspace = folders.workspace(folders.repo / "pkg" if how == "folder" else folders.repo)
    assert texts(workspace) == []
    assert "KEY" not in repr(workspace.judged)


@pytest.mark.rule("CASE-G4", "SA-5", "SA-10")
def test_a_folder_that_leads_out_of_the_project_is_not_even_listed(folders: Folders):
    folders.put(folders.top / "home" / "private" / "secret-name.md", "KEY")
    (folders.repo / ".pidurable").mkdir()
    (folders.repo / ".pidurable" / "prompts").symlink_to(folders.top / "home" / "private")
    workspace = folders.workspace()
    assert workspace.judged == ()
    assert workspace.warnings == (".pidurable/prompts is a link that leads out of the project and is not used.",)


def odd_loop(path: Path) -> None:
    path.symlink_to(path.with_name("other"))
    path.with_name("other").symlink_to(path)


def odd_unreadable(path: Path) -> None:
    path.write_text("x")
    path.chmod(0)


def odd_sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(100 * 1024**3)


ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "directory": (Path.mkdir, "is a directory"),
    "named pipe": (os.mkfifo, "is a named pipe"),
    "loop": (odd_loop, "cannot be read (too many levels of symbolic links)"),
    "dangling": (lambda path: path.symlink_to("nowhere"), "cannot be read (no such file or directory)"),
    "binary": (lambda path: path.write_bytes(b"a\0b"), "is not a text"),
    "sparse": (odd_sparse, "is not a text"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "is a link that leads out of the project"),
}


@pytest.mark.rule("CASE-F6", "SA-10")
@pytest.mark.parametrize("kind", sorted(ODD))
def test_an_odd_file_gives_one_warning_and_the_start_goes_on(folders: Folders, kind: str):
    make, words = ODD[kind]
    make(folders.repo / "AGENTS.md")
    folders.put(folders.repo / "pkg" / "AGENTS.md", "P")
    workspace = folders.workspace(folders.repo / "pkg")
    assert texts(workspace) == [("pkg/AGENTS.md", "P")]
    assert workspace.warnings == (f"AGENTS.md {words} and is not used.",)


@pytest.mark.rule("CASE-F6")
@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_file_gives_one_warning(folders: Folders):
    odd_unreadable(folders.repo / "AGENTS.md")
    assert folders.workspace().warnings == ("AGENTS.md cannot be read (permission denied) and is not used.",)


@pytest.mark.rule("CASE-F6")
def test_a_long_file_is_cut_and_says_so(folders: Folders):
    folders.put(folders.repo / "AGENTS.md", "ä" * (5 * 1024 * 1024 // 2))
    workspace = folders.workspace()
    [(_, text)] = texts(workspace)
    assert text == "ä" * (LIMIT_BYTES // 2) + f"\n[Cut here: {5 * 1024 * 1024 - LIMIT_BYTES:,} more bytes are in the file.]"
    assert workspace.warnings == ("AGENTS.md is 5,242,880 bytes long, of which 48 KiB are used.",)


@pytest.mark.rule("CASE-F6")
def test_all_instructions_together_are_bounded(folders: Folders):
    folder = folders.repo
    for number in range(6):
        folders.put(folder / "AGENTS.md", str(number) * 40_000)
        folder = folder / "d"
    folder.mkdir()
    workspace = folders.workspace(folder)
    assert sum(len(text) for _, text in texts(workspace)) <= TOTAL_CHARS
    assert [warning for warning in workspace.warnings if "fill" in warning] == [
        f"{'d/' * number}AGENTS.md is not used: the instruction files before it fill 120,000 characters." for number in (3, 4, 5)
    ]


@pytest.mark.rule("CASE-F6")
@pytest.mark.parametrize(
    ("data", "text", "warning"),
    [
        ("caf\xe9".encode("latin-1"), "café", "AGENTS.md is not UTF-8 and was read as Latin-1."),
        (b"\xef\xbb\xbfone\r\ntwo\rthree", "one\ntwo\nthree", None),
        (b"a[/x]b", "a[/x]b", None),
        (b"a\x1b]52;c;QQ==\x07b", "a\ufffd]52;c;QQ==\ufffdb", "AGENTS.md has 2 control characters, which were replaced."),
        ("a\u202eb\U000e0041\u200bc".encode(), "abc", "AGENTS.md has 3 invisible characters, which were left out."),
    ],
)
def test_odd_bytes_are_made_readable_and_told(folders: Folders, data: bytes, text: str, warning: str | None):
    folders.put(folders.repo / "AGENTS.md", data)
    workspace = folders.workspace()
    assert texts(workspace) == [("AGENTS.md", text)]
    assert workspace.warnings == ((warning,) if warning else ())


@pytest.mark.rule("SA-10")
def test_names_that_cannot_be_printed_are_shown_escaped(folders: Folders):
    folders.put(folders.repo / ".pidurable" / "skills" / "a\x1b]0;x" / "SKILL.md", "no head")
    assert folders.workspace().warnings == (
        ".pidurable/skills/a\\x1b]0;x/SKILL.md is not used: a skill needs a name of letters, digits and dashes, and a description.",
    )


@pytest.mark.rule("SA-10")
def test_a_folder_with_very_many_names_is_not_read_to_its_end(folders: Folders):
    for number in range(MOST_ITEMS + 20):
        folders.put(folders.repo / ".pidurable" / "prompts" / f"p{number:03}.md", f"text {number}")
    workspace = folders.workspace()
    assert len(workspace.commands.commands) == MOST_ITEMS
    assert workspace.warnings == (".pidurable/prompts holds more than 100 names; the others are not looked at.",)


@pytest.mark.rule("AG-1", "CASE-F6")
def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(folders: Folders):
    path = folders.put(folders.config / "AGENTS.md", "first")
    workspace = folders.workspace()
    before = workspace.items
    workspace.sections(Agent())
    assert workspace.items is before
    folders.put(path, "second, longer")
    assert "second, longer" in workspace.sections(Agent())["config/AGENTS.md"]
    path.unlink()
    assert "config/AGENTS.md" not in workspace.sections(Agent())
