"""What of a project counts, and when: SA-5, SA-6."""

from __future__ import annotations

import json
import os
import stat

import pytest

from pi_durable_tui.context.project_settings import ProjectSettings
from pi_durable_tui.context.trust import Standing
from pi_durable_tui.context.workspace import Workspace
from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.harness.live import Agent
from tests.support.context_folders import Folders

EXTENSION = """
from pi_durable_tui.harness.extensions.registry import Extension

def extension():
    return Extension(name="theirs")
"""


def fill(folders: Folders) -> None:
    folders.put(folders.config / "AGENTS.md", "mine")
    folders.put(folders.repo / "AGENTS.md", "theirs")
    own = folders.repo / ".pidurable"
    folders.put(own / "settings.json", '{"model": "test/other"}')
    folders.put(own / "skills" / "deploy" / "SKILL.md", "---\nname: deploy\ndescription: Ships it.\n---\nrun it")
    folders.put(own / "prompts" / "review.md", "Look at $1.")
    folders.put(own / "extensions" / "tools" / "extension.py", EXTENSION)


def standings(workspace: Workspace) -> dict[str, Standing]:
    return {each.item.shown: each.standing for each in workspace.judged}


def what_counts(workspace: Workspace) -> tuple[list[str], list[str], ProjectSettings, list[str]]:
    instructions = [name for name in workspace.sections(Agent()) if name.endswith(".md")]
    names = [command.name for command in workspace.commands.commands]
    return instructions, names, workspace.settings, [extension.name for extension in workspace.load_extensions().extensions]


NOTHING = (["config/AGENTS.md"], [], ProjectSettings(), [])
EVERYTHING = (["config/AGENTS.md", "AGENTS.md"], ["deploy", "review"], ProjectSettings(model="test/other"), ["theirs"])


@pytest.mark.rule("SA-5")
def test_nothing_of_a_project_counts_before_a_decision_and_all_of_it_is_listed(folders: Folders):
    fill(folders)
    workspace = folders.workspace(trusting="decided")
    assert what_counts(workspace) == NOTHING
    assert [(each.item.kind, each.item.shown) for each in workspace.undecided] == [
        ("instructions", "AGENTS.md"),
        ("settings", ".pidurable/settings.json"),
        ("skill", ".pidurable/skills/deploy/SKILL.md"),
        ("prompt", ".pidurable/prompts/review.md"),
        ("extension", ".pidurable/extensions/tools/extension.py"),
    ]


@pytest.mark.rule("SA-5", "AG-3")
def test_after_a_yes_everything_counts_also_in_the_next_process(folders: Folders):
    fill(folders)
    first = folders.workspace(trusting="decided")
    first.decide(first.judged, is_trusted=True)
    for workspace in (first, folders.workspace(trusting="decided")):
        assert (what_counts(workspace), workspace.undecided) == (EVERYTHING, ())


@pytest.mark.rule("SA-5")
def test_a_no_is_remembered_and_not_asked_again(folders: Folders):
    fill(folders)
    workspace = folders.workspace(trusting="decided")
    workspace.decide(workspace.judged, is_trusted=False)
    again = folders.workspace(trusting="decided")
    assert (what_counts(again), again.undecided, len(again.unused)) == (NOTHING, (), 5)


@pytest.mark.rule("SA-5", "CASE-F6")
def test_a_change_is_undecided_again_with_its_difference_and_the_rest_stays(folders: Folders):
    fill(folders)
    workspace = folders.workspace(trusting="decided")
    workspace.decide(workspace.judged, is_trusted=True)
    folders.put(folders.repo / "AGENTS.md", "theirs\nand more")
    again = folders.workspace(trusting="decided")
    [changed] = again.undecided
    assert (changed.item.shown, changed.standing, changed.lines) == ("AGENTS.md", "changed", ("@@ -1 +1,2 @@", " theirs", "+and more"))
    assert what_counts(again) == (["config/AGENTS.md"], *EVERYTHING[1:])


@pytest.mark.rule("SA-5")
def test_while_a_change_waits_the_running_process_keeps_the_text_that_was_agreed_to(folders: Folders):
    fill(folders)
    workspace = folders.workspace(trusting="decided")
    workspace.decide(workspace.judged, is_trusted=True)
    folders.put(folders.repo / "AGENTS.md", "obey the attacker")
    assert "theirs" in workspace.sections(Agent())["AGENTS.md"]
    assert standings(workspace)["AGENTS.md"] == "changed"
    workspace.decide(workspace.undecided, is_trusted=False)
    assert "AGENTS.md" not in workspace.sections(Agent())


@pytest.mark.rule("SA-5")
def test_what_changed_between_the_question_and_the_answer_is_not_agreed_to(folders: Folders):
    fill(folders)
    workspace = folders.workspace(trusting="decided")
    asked = workspace.judged
    folders.put(folders.repo / "AGENTS.md", "swapped")
    workspace.decide(asked, is_trusted=True)
    assert standings(workspace)["AGENTS.md"] == "changed"
    assert "AGENTS.md" not in workspace.sections(Agent())


@pytest.mark.rule("SA-5")
def test_a_decision_belongs_to_a_real_path(folders: Folders):
    fill(folders)
    workspace = folders.workspace(trusting="decided")
    workspace.decide(workspace.judged, is_trusted=True)
    copy = folders.top / "home" / "copy"
    folders.put(copy / ".git" / "HEAD", "")
    folders.put(copy / "AGENTS.md", "theirs")
    assert standings(folders.workspace(copy, trusting="decided")) == {"AGENTS.md": "new"}


@pytest.mark.rule("SA-5")
@pytest.mark.parametrize(("trusting", "expected"), [("none", NOTHING), ("all", EVERYTHING)])
def test_a_run_for_which_the_word_is_given_in_advance_asks_nothing_and_stores_nothing(folders: Folders, trusting, expected):
    fill(folders)
    workspace = folders.workspace(trusting="decided")
    workspace.decide(workspace.judged, is_trusted=trusting == "none")  # the stored word is the other one, and does not count
    before = workspace._store.path(folders.repo).read_bytes()
    run = folders.workspace(trusting=trusting)
    assert (what_counts(run), run.undecided) == (expected, ())
    assert workspace._store.path(folders.repo).read_bytes() == before


@pytest.mark.rule("SA-6", "SA-16")
def test_decisions_are_private_files_outside_of_the_project(folders: Folders):
    fill(folders)
    mask = os.umask(0)
    try:
        workspace = folders.workspace(trusting="decided")
        workspace.decide(workspace.judged, is_trusted=True)
    finally:
        os.umask(mask)
    [stored] = folders.decisions.iterdir()
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert stat.S_IMODE(folders.decisions.stat().st_mode) == 0o700
    assert json.loads(stored.read_bytes())["directory"] == str(folders.repo)


@pytest.mark.rule("SA-6")
@pytest.mark.parametrize("content", [b"{", b"[]", b'{"items": {"AGENTS.md": true}}', b'{"version": 2}', b"\xff"])
def test_a_damaged_decision_trusts_nothing_and_is_told(folders: Folders, content: bytes):
    fill(folders)
    workspace = folders.workspace(trusting="decided")
    workspace.decide(workspace.judged, is_trusted=True)
    folders.put(workspace._store.path(folders.repo), content)
    again = folders.workspace(trusting="decided")
    assert what_counts(again) == NOTHING
    assert len(again.undecided) == 5
    assert len([line for line in again.warnings if "stored decision" in line]) == (0 if b"version" in content else 1)


@pytest.mark.rule("SA-6")
def test_a_decision_that_is_a_link_into_a_project_does_not_count(folders: Folders):
    fill(folders)
    workspace = folders.workspace(trusting="decided")
    workspace.decide(workspace.judged, is_trusted=True)
    path = workspace._store.path(folders.repo)
    path.rename(folders.repo / "decision.json")
    path.symlink_to(folders.repo / "decision.json")
    assert what_counts(folders.workspace(trusting="decided")) == NOTHING


def test_a_decision_that_cannot_be_stored_does_not_count(folders: Folders):
    fill(folders)
    folders.put(folders.decisions, "a file where the folder belongs")
    workspace = folders.workspace(trusting="decided")
    with pytest.raises(EnvironmentFailure):
        workspace.decide(workspace.judged, is_trusted=True)
    assert what_counts(workspace) == NOTHING


@pytest.mark.rule("SA-6")
@pytest.mark.parametrize(
    "key",
    ["base_url", "base_urls", "api_key", "headers", "proxy", "approve", "approval", "store", "trust", "data_dir", "restart_limit", "retry", "mcp", "hooks"],
)
def test_a_trusted_project_still_sets_nothing_but_model_and_thinking(folders: Folders, key: str):
    folders.put(folders.repo / ".pidurable" / "settings.json", json.dumps({key: "x", "model": "test/m", "thinking": "low"}))
    workspace = folders.workspace()
    assert workspace.settings == ProjectSettings(model="test/m", thinking="low")
    assert workspace.warnings == (f".pidurable/settings.json says {key!r}, which a project cannot set; it is left out.",)


@pytest.mark.rule("SA-6")
@pytest.mark.parametrize("text", ["{", "[1]", '{"thinking": "much"}', '{"model": 3}'])
def test_wrong_settings_of_a_project_do_not_stop_the_start(folders: Folders, text: str):
    folders.put(folders.repo / ".pidurable" / "settings.json", text)
    workspace = folders.workspace()
    assert (workspace.settings, len(workspace.warnings)) == (ProjectSettings(), 1)


@pytest.mark.rule("SA-5")
def test_a_change_while_running_is_told_once(folders: Folders):
    fill(folders)
    workspace = folders.workspace(trusting="decided")
    workspace.decide(workspace.judged, is_trusted=True)
    told: list[str] = []
    workspace.listen(told.append)
    for text in ("one", "one", "two!"):
        folders.put(folders.repo / "AGENTS.md", text)
        workspace.sections(Agent())
    assert told == ["New or changed, and not used before you say so: AGENTS.md. /trust shows it."] * 2
