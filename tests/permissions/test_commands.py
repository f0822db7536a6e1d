"""What rules say to shell commands: rule SA-13 and every line of CASE-G3."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.harness.approval import Rule
from pi_durable_tui.permissions.commands import WRAPPERS, permitted, standing
from pi_durable_tui.permissions.shell import parse


def rule(text: str, decision="allow", kind="command") -> Rule:
    return Rule(kind=kind, text=text, decision=decision)


RULES = (rule("git status"), rule("echo"), rule("git push", "ask"), rule("rm", "deny"))


def verdict(command: str, rules=RULES) -> str:
    said = standing(command, rules)
    return said.decision if said is not None else permitted(command, rules).decision


G3 = [
    "git status && id",
    "git status\nid",
    "echo $(id)",
    "echo `id`",
    "echo x > ~/.bashrc",
    "echo x | sh",
    "git -C . push",
    "GIT_SSH_COMMAND=id git status",
    "git -c core.pager=id status",
    "env rm x",
    r"r\m x",
    "$'rm' x",
    "xargs rm",
    "find . -exec rm {} +",
    "echo <(id)",
    "bash -c 'rm x'",
]


@pytest.mark.rule("CASE-G3", "SA-13")
@pytest.mark.parametrize("command", G3)
def test_no_way_around_a_permission_passes_as_allowed(command: str):
    assert verdict(command) in {"ask", "deny"}


@pytest.mark.rule("CASE-G3", "SA-13")
@pytest.mark.parametrize("command", G3)
def test_nor_when_everything_that_stands_first_is_permitted(command: str):
    generous = (*(rule(word) for word in ("git", "echo", "env", "xargs", "find", "bash", "sh", "r")), rule("rm", "deny"), rule("git push", "ask"))
    assert verdict(command, generous) in {"ask", "deny"}


@pytest.mark.rule("CASE-G3", "SA-13")
@pytest.mark.parametrize(
    "command",
    [
        "test -v 'a[$(id)]'",
        "[ -v 'a[$(id)]' ]",
        "printf -v 'a[$(id)]' x",
        "printf -v PATH /tmp/other && ls",
        "read -r PATH && ls",
        "hash -p /tmp/other/ls ls; ls",
        "export PATH=/tmp/other; ls",
        "git grep --open-files-in-pager=id x",
        "git grep --open=id x",
        "go test -exec id",
        "go test -toolexec=id",
        "man -P id ls",
        "man --pager=id ls",
        "taskset 1 ls",
    ],
)
def test_what_sets_or_evaluates_variables_or_runs_by_an_option_is_asked_for_though_its_first_word_is_permitted(command: str):
    generous = tuple(rule(word) for word in ("test", "[", "printf", "read", "hash", "export", "ls", "git grep", "go test", "man", "taskset"))
    assert verdict(command, generous) == "ask"


@pytest.mark.rule("SA-13")
@pytest.mark.parametrize("command", ["printf 'rm x'", "man rm", "test -f rm"])
def test_a_prohibition_does_not_reach_into_words_that_are_no_commands(command: str):
    assert verdict(command, (rule("printf"), rule("man"), rule("test"), rule("rm", "deny"))) == "allow"


@pytest.mark.rule("CASE-G3", "SA-13")
@pytest.mark.parametrize(
    "command",
    [
        "rm x",
        "/bin/rm x",
        r"r\m x",
        "$'rm' x",
        "'rm' x",
        "env rm x",
        "env A=1 rm x",
        "xargs rm",
        "find . -exec rm {} +",
        "bash -c 'rm x'",
        "bash -c 'sh -c \"rm x\"'",
        "echo $(rm x)",
        "echo `rm x`",
        "true && rm x",
        "if true; then rm x; fi",
        "echo x | xargs -n1 rm",
        "sudo -u me rm x",
        "f() { rm x; }; f",
        "(rm x)",
        "rm x &",
        "echo x > $(rm x)",
        "cat <<E\n$(rm x)\nE",
        "A=$(rm x) true",
        "git status; rm x",
    ],
)
def test_a_prohibition_reaches_through_quotes_wrappers_and_chains(command: str):
    assert verdict(command) == "deny"


@pytest.mark.rule("SA-13")
@pytest.mark.parametrize("command", ["git push", "git -C . push", "git push origin main", "git --no-pager push", "/usr/bin/git push"])
def test_a_wish_to_be_asked_is_kept_with_options_in_between_and_beats_a_permission(command: str):
    assert verdict(command, (rule("git"), rule("git push", "ask"))) == "ask"


@pytest.mark.rule("SA-13")
def test_deny_beats_ask_beats_allow_whatever_their_order():
    allow, ask, deny = rule("make"), rule("make", "ask"), rule("make", "deny")
    assert verdict("make", (allow,)) == "allow"
    assert verdict("make", (allow, ask)) == "ask"
    assert verdict("make", (ask, allow)) == "ask"
    assert verdict("make", (allow, ask, deny)) == "deny"
    assert verdict("make", (deny, ask, allow)) == "deny"


@pytest.mark.rule("SA-13")
@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git status -s",
        "git status 2>&1",
        "git  status\n",
        "echo 'a; b' \"c && d\" e",
        "git status && echo ok",
        "git status; echo a",
        "git status\necho x",
        "git status 2>/dev/null",
        r"echo a\ b",
        "echo src/*.py",
        "git status || echo no",
    ],
)
def test_a_permission_covers_plain_commands_and_lists_of_which_every_part_is_permitted(command: str):
    assert verdict(command) == "allow"


@pytest.mark.rule("SA-13")
@pytest.mark.parametrize(
    "command",
    [
        "git statusx",
        "gitstatus",
        "git 'status'",
        "./git status",
        "/opt/git status",
        "git status &",
        "(git status)",
        "{ git status; }",
        "! git status",
        "time git status",
        "git status | cat",
        "git status < in",
        "git status >> out",
        "git status >| out",
        "git status &> out",
        "git status <<< x",
        "echo ${A:-x}",
        "echo $HOME",
        "echo $((1+1))",
        "echo *",
        "echo {a,b}",
        "echo ~",
        "echo 'unclosed",
        'echo "a $(id)"',
        "echo a\rid",
        "echo a\x00b",
        "echo a\u2028id",
        "echo a\u00a0b",
        "git sta\\\ntus",
        "echo x # comment",
        "coproc git status",
        "echo " + "x" * 30_000,
        "",
        "   ",
        "&&",
    ],
)
def test_everything_else_asks(command: str):
    assert verdict(command) == "ask"


@pytest.mark.rule("SA-13")
@pytest.mark.parametrize("wrapper", sorted(WRAPPERS))
def test_no_permission_covers_a_wrapper(wrapper: str):
    assert verdict(f"{wrapper} x", (rule(wrapper),)) == "ask"


@pytest.mark.rule("SA-13")
@pytest.mark.parametrize(
    ("permitted_words", "command"),
    [
        ("git", "git -c core.pager=id log"),
        ("git", "git -ccore.pager=id log"),
        ("git", "git --exec-path=/tmp log"),
        ("git diff", "git diff --output=/etc/x"),
        ("git diff", "git diff --outp=/etc/x"),
        ("git diff", "git diff --out\\\nput=/etc/x"),
        ("git diff", "git diff --o'utput'=/etc/x"),
        ("git diff", r"git diff --out\put=/etc/x"),
        ("git diff", "git diff --out*"),
        ("git diff", "git diff --ext-diff"),
        ("find", "find . -delete"),
        ("find", "find . -fprint x"),
        ("rg", "rg --pre=sh x"),
        ("sort", "sort -nuo x y"),
        ("tar", "tar xf a --to-command=sh"),
        ("sed", "sed -ni p a"),
        ("python", "python -c x"),
        ("python", "python -Ic x"),
        ("perl", "perl -ne x"),
    ],
)
def test_no_permission_covers_options_that_run_or_write_something_else(permitted_words: str, command: str):
    assert verdict(command, (rule(permitted_words),)) == "ask"


@pytest.mark.rule("SA-13", "TU-19")
@pytest.mark.parametrize(
    ("command", "kind", "text"),
    [
        ("ls -la src", "command", "ls"),
        ("git log --oneline -3", "command", "git log"),
        ("npm run build -- --x", "command", "npm run build"),
        ("python -m pytest -q", "command", "python -m pytest"),
        ("python tool.py 1", "command", "python tool.py"),
        ("npx eslint .", "command", "npx eslint"),
        ("npx --yes eslint .", "exact", "npx --yes eslint ."),
        ("php tool.php 1", "command", "php tool.php"),
        ("printf -v A x", "exact", "printf -v A x"),
        ("make", "exact", "make"),
        ("make test", "command", "make test"),
        ("rm -rf build", "exact", "rm -rf build"),
        ("python -c 'x'", "exact", "python -c 'x'"),
        ("git -C x status", "exact", "git -C x status"),
        ("git status && ls", "exact", "git status && ls"),
        ("make 2>&1 | tail", "exact", "make 2>&1 | tail"),
        ("env A=1 make", "exact", "env A=1 make"),
        ("'my tool' x", "exact", "'my tool' x"),
    ],
)
def test_the_rule_that_is_offered_covers_the_command_and_says_enough(command: str, kind: str, text: str):
    found = permitted(command, ())
    assert (found.decision, found.rule) == ("ask", rule(text, kind=kind))
    assert permitted(command, (found.rule,)).decision == "allow"


@pytest.mark.rule("SA-13")
def test_no_rule_is_offered_for_what_cannot_be_seen():
    assert permitted("echo a\u202ex", ()).rule is None
    assert permitted("x" * 30_000, ()).rule is None


def test_an_exact_permission_covers_that_text_only():
    exact = (rule("make | tail", kind="exact"),)
    assert verdict("make | tail", exact) == "allow"
    assert verdict("make | tail ", exact) == "ask"
    assert verdict("make | tail; id", exact) == "ask"


def test_why_nothing_can_cover_a_command_is_said():
    found = permitted("echo a | sh > x &", RULES)
    assert found.reason.startswith("No standing permission can cover it: ")
    assert "it is a pipe" in found.reason
    assert "it runs in the background" in found.reason


PIECES = [
    "git status",
    "echo",
    "rm x",
    "id",
    "&&",
    ";",
    "|",
    "\n",
    "$(",
    ")",
    "`",
    "'",
    '"',
    ">",
    "<",
    "&",
    "\\",
    "#",
    "{",
    "}",
    "~",
    " ",
    "x",
    "\t",
    "=",
    "$'",
    "<<E",
    "E",
    "!",
]


@pytest.mark.rule("CASE-G3", "SA-13")
@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_whatever_is_allowed_consists_of_permitted_commands_only(pieces: list[str]):
    command = " ".join(pieces)
    if verdict(command) == "allow":
        texts = [[word.text for word in each.words] for each in parse(command).commands]
        assert texts
        assert all(words[0] == "echo" or words[:2] == ["git", "status"] for words in texts)
        bare = command.replace("\\\\", "").replace("\\'", "").replace('\\"', "")
        quoted = bare.count("'") % 2 == 0
        assert quoted
