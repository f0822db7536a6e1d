"""The approver: modes, permissions and paths together (rules TU-19, SA-12, SA-13)."""

from __future__ import annotations

import itertools

import pytest

from pi_durable_tui.harness.approval import PLAN_ONLY, ApprovalRequest, Rule, Verdict
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import Effects
from pi_durable_tui.permissions.approver import approver

APPROVE = approver(own=("/people/me/.config/pidurable", "/people/me/.local/share/pidurable"))


def edit(path: str, mode="edits", *rules: Rule) -> Verdict:
    return APPROVE(
        ApprovalRequest(
            agent=Agent(approval=mode),
            tool="write",
            access="edit",
            arguments={"path": path},
            effects=Effects(root="/project", directory="/project", paths=(path,)),
            rules=rules,
        )
    )


def bash(command: str, mode="ask", *rules: Rule, directory: str = "/project/sub") -> Verdict:
    return APPROVE(
        ApprovalRequest(
            agent=Agent(approval=mode),
            tool="bash",
            access="command",
            arguments={"command": command},
            effects=Effects(root="/project", directory=directory, command=command),
            rules=rules,
        )
    )


def other(access, mode="ask", *rules: Rule) -> Verdict:
    return APPROVE(ApprovalRequest(agent=Agent(approval=mode), tool="deploy", access=access, arguments={}, effects=None, rules=rules))


SENSITIVE = [
    "/project/.git/config",
    "/project/.git/hooks/pre-commit",
    "/project/sub/.git/hooks/x",
    "/project/.GIT/config",
    "/project/.bashrc",
    "/project/.envrc",
    "/project/.github/workflows/ci.yml",
    "/project/.gitlab-ci.yml",
    "/project/Jenkinsfile",
    "/project/.circleci/config.yml",
    "/project/AGENTS.md",
    "/project/pkg/claude.md",
    "/project/.pidurable/settings.toml",
    "/project/.claude/skills/x/SKILL.md",
    "/project/.github/copilot-instructions.md",
    "/project/.vscode/tasks.json",
    "/people/me/.config/pidurable/settings.toml",
    "/people/me/.local/share/pidurable/x/session-1.sqlite",
    "/people/me/.ssh/authorized_keys",
]


@pytest.mark.rule("SA-12")
@pytest.mark.parametrize("path", SENSITIVE)
@pytest.mark.parametrize("mode", ["ask", "edits"])
def test_sensitive_files_are_asked_about_whatever_was_permitted_and_no_rule_is_offered(path: str, mode):
    generous = (Rule(kind="path", text="/"), Rule(kind="tool", text="write"), Rule(kind="path", text=path))
    found = edit(path, mode, *generous)
    assert (found.decision, found.rule) == ("ask", None)
    assert found.reason.startswith(f"{path} is always asked about: ")


@pytest.mark.rule("SA-12", "TU-19")
@pytest.mark.parametrize("path", [*SENSITIVE, "/etc/passwd", "/project/a.py"])
def test_mode_all_is_all_and_mode_plan_is_nothing(path: str):
    assert edit(path, "all") == Verdict(decision="allow")
    assert edit(path, "plan") == Verdict(decision="deny", reason=PLAN_ONLY)


@pytest.mark.rule("SA-12")
@pytest.mark.parametrize("path", ["/project/a.py", "/project/.gitignore", "/project/docs/agents/x.md", "/project/.github/CODEOWNERS", "/project/bashrc"])
def test_files_of_the_working_directory_are_free_in_mode_edits_and_asked_in_mode_ask(path: str):
    assert edit(path) == Verdict(decision="allow")
    assert edit(path, "ask") == Verdict(decision="ask", rule=Rule(kind="path", text="/project/"))
    assert edit(path, "ask", Rule(kind="path", text="/project/")) == Verdict(decision="allow")


@pytest.mark.rule("SA-12")
@pytest.mark.parametrize("path", ["/project-two/a.py", "/etc/x", "/people/me/a"])
def test_files_elsewhere_are_asked_about_and_their_folder_can_be_permitted(path: str):
    folder = path.rpartition("/")[0] + "/"
    assert edit(path) == Verdict(decision="ask", reason=f"{path} lies outside of the working directory.", rule=Rule(kind="path", text=folder))
    assert edit(path, "ask", Rule(kind="path", text=folder)).decision == "allow"
    assert edit(path, "edits", Rule(kind="path", text="/project/")).decision == "ask"
    assert edit(path, "edits", Rule(kind="tool", text="write")).decision == "ask"


@pytest.mark.rule("SA-13")
def test_prohibitions_hold_in_every_mode_and_beat_every_permission():
    for mode in ("ask", "edits", "all"):
        assert edit("/project/a", mode, Rule(kind="path", text="/project/"), Rule(kind="path", text="/project/a", decision="deny")).decision == "deny"
        assert bash("rm x", mode, Rule(kind="exact", text="rm x"), Rule(kind="command", text="rm", decision="deny")).decision == "deny"
        assert bash("ls", mode, Rule(kind="tool", text="bash", decision="deny")).decision == "deny"
        assert bash("git push", mode, Rule(kind="command", text="git push", decision="ask")).decision == "ask"
    found = bash("rm x", "all", Rule(kind="tool", text="bash", decision="ask"), Rule(kind="command", text="rm", decision="deny"))
    assert (found.decision, found.reason) == ("deny", "The user has forbidden this (deny commands that begin with: rm), so it was not run.")


@pytest.mark.rule("TU-19", "SA-13")
def test_commands_are_asked_about_in_both_asking_modes_unless_permitted():
    for mode in ("ask", "edits"):
        assert bash("make test", mode) == Verdict(decision="ask", rule=Rule(kind="command", text="make test"))
        assert bash("make test", mode, Rule(kind="command", text="make test")) == Verdict(decision="allow")
    assert bash("rm -rf /", "all").decision == "allow"
    assert bash("ls", "plan", Rule(kind="command", text="ls")).decision == "deny"


@pytest.mark.rule("SA-13")
def test_a_permission_of_the_working_directory_does_not_reach_elsewhere():
    found = bash("make test", "ask", Rule(kind="command", text="make test"), directory="/etc")
    assert (found.decision, found.reason) == ("ask", "It would run outside of the working directory, in /etc.")


@pytest.mark.rule("TU-19")
def test_a_tool_that_does_not_say_what_it_touches_is_asked_about_and_can_be_permitted_by_name():
    offered = Rule(kind="tool", text="deploy")
    for access, mode in itertools.product(("edit", "command"), ("ask", "edits")):
        assert other(access, mode) == Verdict(decision="ask", rule=offered)
        assert other(access, mode, offered).decision == "allow"
    assert other("read").decision == "allow"
    assert other("read", "all", Rule(kind="tool", text="deploy", decision="deny")).decision == "deny"


def read(path: str, mode="ask", *rules: Rule, tool: str = "read") -> Verdict:
    effects = Effects(root="/project", directory="/project", reads=(path,))
    return approver(home="/people/me")(
        ApprovalRequest(agent=Agent(approval=mode), tool=tool, access="read", arguments={"path": path}, effects=effects, rules=rules)
    )


SECRET = [
    "/people/me/.ssh/id_ed25519",
    "/people/me/.ssh",
    "/people/me/.aws/credentials",
    "/people/me/.gnupg/private-keys-v1.d/x",
    "/people/me/.config/gcloud/application_default_credentials.json",
    "/people/me/.config/gh/hosts.yml",
    "/people/me/.local/share/keyrings/login.keyring",
    "/people/me/.netrc",
    "/people/me/.Git-Credentials",
    "/people/me/.bash_history",
    "/project/.npmrc",
    "/etc/shadow",
    "/proc/self/environ",
    "/proc/12/task/13/mem",
]


@pytest.mark.rule("SA-12")
@pytest.mark.parametrize("path", SECRET)
@pytest.mark.parametrize("mode", ["ask", "edits", "plan"])
def test_reading_where_keys_are_kept_is_asked_about_whatever_was_permitted(path: str, mode):
    found = read(path, mode, Rule(kind="path", text="/"), Rule(kind="tool", text="read"))
    assert (found.decision, found.rule) == ("ask", None)
    assert found.reason.startswith(f"Reading {path} is always asked about: ")
    assert read(path, "all") == Verdict(decision="allow")
    assert read(path, "all", Rule(kind="tool", text="read", decision="deny")).decision == "deny"


@pytest.mark.rule("SA-12", "TU-19")
@pytest.mark.parametrize(
    "path", ["/project", "/project/.env.example", "/project/environ", "/usr/include/stdio.h", "/people/me/notes", "/people/me/.config/app", "/proc/cpuinfo"]
)
def test_all_other_reading_is_free(path: str):
    for mode in ("ask", "edits", "plan"):
        assert read(path, mode) == Verdict(decision="allow")


@pytest.mark.rule("SA-12")
@pytest.mark.parametrize("path", ["/", "/people", "/people/me"])
def test_going_through_a_whole_home_is_asked_about_and_can_be_permitted(path: str):
    rule = Rule(kind="tool", text="grep")
    assert read(path, tool="grep") == Verdict(decision="ask", reason=f"Your keys and logins are below {path}.", rule=rule)
    assert read(path, "ask", rule, tool="grep") == Verdict(decision="allow")
