"""PURE. What rules say to a shell command, and which rule could be offered for it (rule SA-13, CASE-G3).

Forbidding looks wide: through wrappers, quotes and options. Allowing looks narrow: every simple command must begin with the plain words
of a rule, and none may be of the kinds that run or write something else.
"""

from __future__ import annotations

from collections.abc import Sequence

from pi_durable_tui.harness.approval import Rule, Verdict, rule_text
from pi_durable_tui.permissions.shell import Parsed, Simple, parse
from pi_durable_tui.permissions.tables import words_of

WRAPPERS = words_of(
    "env xargs sudo doas su nohup timeout nice ionice setsid stdbuf time command builtin exec eval source . bash sh zsh dash ksh fish csh tcsh "
    "busybox parallel watch ssh script strace ltrace gdb chroot unshare nsenter flock trap alias enable coproc entr find-exec runuser setarch "
    "systemd-run systemd-inhibit at batch crontab screen tmux expect unbuffer rlwrap faketime proot fakeroot bwrap firejail pkexec sg newgrp gosu "
    "taskset chrt numactl prlimit setpriv capsh valgrind perf hyperfine caffeinate xvfb-run dbus-run-session run-parts start-stop-daemon ssh-agent direnv"
)
"""Programs that run what their arguments say: no permission for a first word covers them."""

SETTERS = words_of("declare typeset local export readonly read mapfile readarray getopts hash set unset shopt let")
"""Builtins that change what later words of the command mean, such as PATH: no permission for a first word covers them either."""

CARRIERS: dict[str, frozenset[str]] = {
    "find": frozenset({"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"}),
    "git": words_of("-c -C --config-env --exec-path --git-dir --work-tree --output -O --ext-diff --exec -x --upload-pack --open-files-in-pager"),
    "rg": frozenset({"--pre", "--hostname-bin"}),
    "fd": frozenset({"-x", "-X", "--exec", "--exec-batch"}),
    "sort": frozenset({"-o", "--output", "--compress-program", "-T"}),
    "tar": frozenset({"--to-command", "-I", "--use-compress-program", "--checkpoint-action", "--rsh-command", "-F"}),
    "sed": frozenset({"-i", "--in-place", "-f", "--file"}),
    "python": frozenset({"-c"}),
    "python3": frozenset({"-c"}),
    "node": frozenset({"-e", "--eval", "-p", "-r"}),
    "perl": frozenset({"-e", "-E", "-i"}),
    "ruby": frozenset({"-e", "-i"}),
    "make": frozenset({"-f", "--file", "--eval", "-C"}),
    "rsync": frozenset({"-e", "--rsh"}),
    "tee": frozenset({"-a"}),
    "go": frozenset({"-exec", "-toolexec"}),
}
"""Options with which a program runs or writes something else than its first words say: no permission for these covers them."""

REACHING: dict[str, frozenset[str]] = {
    "man": frozenset({"-P", "--pager", "-H", "--html", "-C", "--config-file"}),
    "printf": frozenset({"-v"}),
    "test": frozenset({"-v"}),
    "[": frozenset({"-v"}),
}
"""The same of programs whose other words are no commands. With -v a shell evaluates the name of a variable, and sets one such as PATH."""

EXACT = words_of("rm rmdir mv cp dd chmod chown ln kill pkill killall curl wget scp rsync tee truncate shred mkfs mount reboot shutdown awk sed perl")
"""Programs whose name alone says too little: only the whole command is offered as a rule."""

SUBCOMMANDS = words_of(
    "git npm npx pnpm yarn bun bunx deno cargo go docker podman kubectl helm terraform pip pip3 pipx uv uvx poetry hatch gradle mvn dotnet apt brew gh make "
    "just task tox nox ruff systemctl bundle rake composer aws gcloud az"
)
"""Programs whose second word says what they do; it belongs into the rule."""

LONGER = frozenset(
    {
        ("npm", "run"),
        ("pnpm", "run"),
        ("yarn", "run"),
        ("bun", "run"),
        ("uv", "run"),
        ("poetry", "run"),
        ("go", "run"),
        ("docker", "compose"),
        ("deno", "run"),
        ("bundle", "exec"),
        ("pipx", "run"),
    }
)
INTERPRETERS = frozenset({"python", "python3", "node", "ruby", "php", "lua", "java", "Rscript", "julia", "osascript", "pwsh"})
DEPTH = 4  # how deep commands inside of commands are looked for


def standing(command: str, rules: Sequence[Rule]) -> Verdict | None:
    """What prohibitions, and wishes to be asked, say to a command; the first of the stricter kind. None: nothing."""
    inner = _every(parse(command), DEPTH)
    for decision in ("deny", "ask"):
        for rule in rules:
            if rule.decision == decision and _names(rule, command, inner):
                return by_rule(rule)
    return None


def by_rule(rule: Rule) -> Verdict:
    """The verdict of a rule that denies or asks."""
    if rule.decision == "deny":
        return Verdict(decision="deny", reason=f"The user has forbidden this ({rule_text(rule)}), so it was not run.")
    return Verdict(decision="ask", reason=f"There is a rule: {rule_text(rule)}.")


def permitted(command: str, rules: Sequence[Rule]) -> Verdict:
    """`allow` when permissions cover the whole command, else `ask`, with the reason and the rule to offer."""
    if Rule(kind="exact", text=command) in rules:
        return Verdict(decision="allow")
    parsed = parse(command)
    allowed = [rule for rule in rules if rule.decision == "allow"]
    if not parsed.doubts and parsed.commands and all(any(covers(rule, each) for rule in allowed) for each in parsed.commands):
        return Verdict(decision="allow")
    reason = f"No standing permission can cover it: {'; '.join(parsed.doubts)}." if parsed.doubts and allowed else ""
    return Verdict(decision="ask", reason=reason, rule=offer(command, parsed))


def covers(rule: Rule, command: Simple) -> bool:
    """Whether a permission for first words reaches over a simple command."""
    if rule.kind != "command" or not _is_coverable(command):
        return False
    first = rule.text.split(" ")
    own = command.words[: len(first)]
    return [word.text for word in own] == first and all(word.is_plain for word in own)


def offer(command: str, parsed: Parsed) -> Rule | None:
    """The rule that "always" would make: first words where these say what it does, else the whole command; None for what is not seen whole."""
    if not parsed.commands and parsed.doubts:
        return None
    exact = Rule(kind="exact", text=command)
    if parsed.doubts or len(parsed.commands) != 1 or not _is_coverable(parsed.commands[0]):
        return exact
    words = parsed.commands[0].words
    texts = [word.text or "" for word in words]
    count = 1
    if texts[0] in SUBCOMMANDS:
        count = 3 if tuple(texts[:2]) in LONGER else 2
    elif texts[0] in INTERPRETERS:
        count = 3 if texts[1:2] == ["-m"] else 2
    first = words[:count]
    is_telling = texts[0] not in EXACT and len(first) == count and all(word.is_plain for word in first)
    is_option = count == 2 and any(text.startswith("-") for text in texts[1:2])
    return Rule(kind="command", text=" ".join(texts[:count])) if is_telling and not is_option else exact


def _is_coverable(command: Simple) -> bool:
    """Every word is known, the program is no wrapper and sets nothing, and no option makes it one."""
    texts = [word.text for word in command.words]
    program = texts[0]
    if program is None or not command.words[0].is_plain or _base(program) in WRAPPERS | SETTERS or None in texts:
        return False
    carrying = CARRIERS.get(_base(program), frozenset()) | REACHING.get(_base(program), frozenset())
    return not any(_is_option(text or "", carrying) for text in texts[1:])


def _is_option(text: str, options: frozenset[str]) -> bool:
    """Whether a word is one of the options: also with its value in the same word, and among letters behind one dash."""
    if not text.startswith("-"):
        return False
    name = text.partition("=")[0]
    if name in options:
        return True
    if name.startswith("--"):
        return len(name) > 2 and any(option.startswith(name) for option in options)  # an abbreviation
    return any(len(option) == 2 and option[1] in text[1:] for option in options)


def _every(parsed: Parsed, depth: int) -> list[list[str]]:
    """The words of every command, and of every command that may be hidden in its arguments."""
    found: list[list[str]] = []
    for command in parsed.commands:
        words = [word.text or "" for word in command.words]
        found.append(words)
        if depth and _base(words[0]) in WRAPPERS | CARRIERS.keys():
            found += [words[index:] for index in range(1, len(words))]
            for word in words[1:]:
                if " " in word or "\n" in word:
                    found += _every(parse(word), depth - 1)
    return found


def _names(rule: Rule, command: str, inner: list[list[str]]) -> bool:
    """Whether a prohibition, or a wish to be asked, is about this command; in doubt it is."""
    if rule.kind == "exact":
        return rule.text == command
    if rule.kind != "command":
        return False
    wanted = rule.text.split(" ")
    return any(_base(words[0]) == _base(wanted[0]) and _in_order(wanted[1:], words[1:]) for words in inner if words)


def _in_order(wanted: list[str], words: list[str]) -> bool:
    rest = iter(words)
    return all(each in rest for each in wanted)


def _base(program: str) -> str:
    return program.rpartition("/")[2]
