"""Kinds of subagents from files: AG-3, SA-5, SA-14."""

from __future__ import annotations

import pytest

from pi_durable_tui.context.profiles import profiles_text
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import AgentProfile
from tests.support.context_folders import Folders

WHOLE = """---
description: Reads code and answers questions about it.
model: openai/small
thinking: low
tools: read, grep, find
max-turns: 12
max-tokens: 50000
max-cost: $0.50
---

You only read.
"""


@pytest.mark.rule("AG-3", "SA-14")
def test_a_file_says_what_an_agent_is_told_and_may_use(folders: Folders):
    folders.put(folders.config / "agents" / "scout.md", WHOLE)
    folders.put(folders.config / "agents" / "plain.md", "---\ndescription: Anything else.\n---\n")
    workspace = folders.workspace()
    assert workspace.profiles.found == (
        AgentProfile(name="plain", description="Anything else."),
        AgentProfile(
            name="scout",
            description="Reads code and answers questions about it.",
            instructions="You only read.",
            model="openai/small",
            thinking="low",
            tools=("read", "grep", "find"),
            max_turns=12,
            max_tokens=50_000,
            max_cost_usd=0.5,
        ),
    )
    assert workspace.warnings == ()
    listed = profiles_text(workspace.profiles.found)
    assert listed.splitlines()[1:] == ["- plain: Anything else.", "- scout: Reads code and answers questions about it."]


@pytest.mark.rule("AG-3")
@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a b", WHOLE, "the name of an agent is made of letters, digits and dashes"),
        ("x", "no head", "an agent needs a description, which says when it is the right one"),
        (
            "x",
            "---\ndescription: d\nmax_turns: 3\n---\n",
            "its head says max_turns, and may say description, model, thinking, tools, max-turns, max-tokens, max-cost",
        ),
        ("x", "---\ndescription: d\nmax-turns: none\n---\n", "max-turns is 'none', and must be a number from 1"),
        ("x", "---\ndescription: d\nmax-turns: 0\n---\n", "max-turns is '0', and must be a number from 1"),
        ("x", "---\ndescription: d\nmax-cost: nan\n---\n", "max-cost is 'nan', and must be a number from 0"),
        ("x", "---\ndescription: d\nthinking: deep\n---\n", "thinking is 'deep', and may be off, low, medium, high"),
    ],
)
def test_a_file_that_says_something_else_is_told_and_not_used(folders: Folders, name: str, content: str, why: str):
    folders.put(folders.config / "agents" / f"{name}.md", content)
    workspace = folders.workspace()
    assert (workspace.profiles.found, workspace.warnings) == ((), (f"config/agents/{name}.md is not used: {why}.",))


@pytest.mark.rule("SA-5", "AG-3")
def test_those_of_a_project_count_after_a_yes_and_never_replace_the_users(folders: Folders):
    folders.put(folders.config / "agents" / "scout.md", "---\ndescription: Mine.\n---\n")
    for name in ("scout", "other"):
        folders.put(folders.repo / ".pidurable" / "agents" / f"{name}.md", "---\ndescription: Theirs.\n---\n")
    assert [profile.description for profile in folders.workspace(trusting="none").profiles.found] == ["Mine."]
    workspace = folders.workspace(trusting="all")
    assert {profile.name: profile.description for profile in workspace.profiles.found} == {"scout": "Mine.", "other": "Theirs."}
    assert workspace.warnings == (".pidurable/agents/scout.md is not used: there is another scout.",)


@pytest.mark.rule("AG-1", "AG-3")
def test_the_list_is_told_where_subagents_can_be_asked_for_and_follows_the_files(folders: Folders):
    workspace = Folders(top=folders.top, tools=frozenset({"read", "subagent"})).workspace()
    extension = workspace.extension()
    assert extension.profiles is not None
    assert (extension.profiles(), workspace.sections(Agent())["agents"]) == ((), "")
    folders.put(folders.config / "agents" / "scout.md", WHOLE)
    assert [profile.name for profile in extension.profiles()] == ["scout"]
    assert "- scout: Reads code" in workspace.sections(Agent())["agents"]
    assert workspace.sections(Agent(tools=("read",)))["agents"] == ""
