"""Skills and prompt templates: AG-3."""

from __future__ import annotations

import pytest

from pi_durable_tui.cli.project.prompting import expanded
from pi_durable_tui.context.commands import UserCommand, filled
from pi_durable_tui.context.front_matter import Document, split
from tests.support.context_folders import Folders


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("just text", Document({}, "just text")),
        ("---\nname: a\nDescription: 'b: c'\n---\n\nbody", Document({"name": "a", "description": "b: c"}, "body")),
        ("---\ndescription: >-\n  one\n  two\nname: x\n---\nbody", Document({"description": "one two", "name": "x"}, "body")),
        ("---\nno end", Document({}, "---\nno end")),
        ("---\n- a list\n---\nbody", Document({}, "body")),
    ],
)
def test_the_head_of_a_file(text: str, document: Document):
    assert split(text) == document


@pytest.mark.rule("AG-3")
@pytest.mark.parametrize(
    ("body", "arguments", "sent"),
    [
        ("Look at $1 and $2.", "a b", "Look at a and b."),
        ("Look at $1.", "'two words' more", "Look at two words."),
        ("All: $ARGUMENTS!", "a  b", "All: a  b!"),
        ("All: $@", "x", "All: x"),
        ("$1$2", "only", "only"),
        ("$1", "$2 two", "$2"),
        ("$ARGUMENTS", "$1", "$1"),
        ("Costs $10 in $ARGUMENTSX", "z", "Costs z0 in $ARGUMENTSX"),
        ("$1", 'open "quote', "open"),
        ("No place.\n", "extra", "No place.\n\nextra"),
        ("No place.\n", "", "No place.\n"),
    ],
)
def test_a_template_is_filled_in_once(body: str, arguments: str, sent: str):
    assert filled(body, arguments) == sent


@pytest.mark.rule("AG-3")
def test_skills_and_templates_are_commands_of_their_names(folders: Folders):
    folders.put(folders.config / "prompts" / "review.md", "---\ndescription: Reads a change\nargument-hint: FILE\n---\nReview $1 carefully.")
    folders.put(folders.config / "prompts" / "tidy.md", "# Tidy up\nTidy.")
    folders.put(folders.repo / ".pidurable" / "skills" / "deploy" / "SKILL.md", "---\nname: deploy\ndescription: Ships it.\n---\n")
    found = folders.workspace().commands
    path = str(folders.repo / ".pidurable" / "skills" / "deploy" / "SKILL.md")
    assert found.commands == (
        UserCommand(kind="skill", name="deploy", description="Ships it.", hint="[task]", body="", path=path),
        UserCommand(
            kind="prompt",
            name="review",
            description="Reads a change",
            hint="FILE",
            body="Review $1 carefully.",
            path=str(folders.config / "prompts" / "review.md"),
        ),
        UserCommand(kind="prompt", name="tidy", description="Tidy up", hint="", body="# Tidy up\nTidy.", path=str(folders.config / "prompts" / "tidy.md")),
    )
    assert expanded("/review a.py", found) == "Review a.py carefully."
    assert expanded("/deploy to staging", found) == f"Use the skill deploy: read {path} first and follow it. to staging"
    assert expanded("/other x", found) == "/other x"
    assert expanded("see /review", found) == "see /review"


@pytest.mark.rule("AG-3", "SA-5")
def test_a_project_does_not_replace_a_command_of_the_user(folders: Folders):
    folders.put(folders.config / "prompts" / "review.md", "mine")
    folders.put(folders.repo / ".pidurable" / "prompts" / "review.md", "theirs")
    workspace = folders.workspace()
    assert [command.body for command in workspace.commands.commands] == ["mine"]
    assert workspace.warnings == (".pidurable/prompts/review.md is not used: there is another review.",)


@pytest.mark.rule("AG-3", "SA-10")
@pytest.mark.parametrize("head", ["", "---\nname: a b\ndescription: x\n---\n", "---\nname: a\n---\n"])
def test_a_skill_without_name_or_description_is_told(folders: Folders, head: str):
    folders.put(folders.config / "skills" / "one two" / "SKILL.md", f"{head}text")
    workspace = folders.workspace()
    assert (workspace.commands.commands, len(workspace.warnings)) == ((), 1)
