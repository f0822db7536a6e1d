"""Every promise of SPEC.md has a test, and every test's promise is in SPEC.md."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import PACKAGE, ROOT, SPEC, modules, name, tracked, tree

RULE = re.compile(r"^- \*\*(?P<id>[A-Z]{2}-\d+|CASE-[A-H]\d+)\*\*(?P<planned> \*\(planned\)\*)? (?P<text>\S.*)$")
MENTION = re.compile(r"\b(?:ST|SE|DO|TK|SU|GE|TO|CO|CX|EX|OB|FA|FB|CL|TU|AG|SA|PR)-\d+\b|\bCASE-[A-H]\d+\b")


def promises() -> list[re.Match[str]]:
    return [match for line in SPEC.read_text(encoding="utf-8").splitlines() if (match := RULE.match(line))]


def citations(path: Path) -> Iterator[tuple[int, str | None]]:
    """Line and id of everything `pytest.mark.rule(...)` is given in a file; None for what is no plain text."""
    for node in ast.walk(tree(path)):
        match node:
            case ast.Call(func=ast.Attribute(attr="rule", value=ast.Attribute(attr="mark"))):
                for argument in node.args:
                    yield node.lineno, argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else None
                if not node.args or node.keywords:
                    yield node.lineno, None


def all_citations() -> dict[str | None, list[str]]:
    found: defaultdict[str | None, list[str]] = defaultdict(list)
    for path in modules(ROOT / "tests"):
        for line, rule in citations(path):
            found[rule].append(f"{name(path)}:{line}")
    return dict(found)


def test_a_promise_stands_in_the_spec_once_and_on_one_line():
    text = SPEC.read_text(encoding="utf-8")
    ids = [match["id"] for match in promises()]
    assert sorted(set(ids)) == sorted(ids)
    assert sorted(re.findall(r"\*\*((?:CASE|[A-Z]{2})-[A-H]?\d+)\*\*", text)) == sorted(ids), "a line with an id does not have the form of a promise"


def test_promises_of_a_group_are_in_order():
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for match in promises():
        group = match["id"].rstrip("0123456789")
        groups[group].append(int(match["id"].removeprefix(group)))
    assert {group: numbers for group, numbers in groups.items() if numbers != sorted(numbers)} == {}


def test_an_id_is_cited_as_plain_text():
    assert all_citations().get(None, []) == []


def test_every_cited_id_is_in_the_spec():
    known = {match["id"] for match in promises()}
    assert {rule: places for rule, places in all_citations().items() if rule is not None and rule not in known} == {}


def test_every_promise_that_is_not_planned_is_proved_by_a_test():
    kept = [match["id"] for match in promises() if not match["planned"]]
    cited = all_citations()
    assert [rule for rule in kept if rule not in cited] == []


def test_ids_mentioned_in_the_code_and_the_documents_are_in_the_spec():
    known = {match["id"] for match in promises()}
    documents = [path for path in tracked() if path.suffix in {".md", ".toml"} and not path.is_relative_to(ROOT / "sessions")]
    unknown = [
        f"{name(path)}: {rule}"
        for path in [*modules(PACKAGE), *documents]
        for rule in sorted(set(MENTION.findall(path.read_text(encoding="utf-8"))))
        if rule not in known
    ]
    assert unknown == []
