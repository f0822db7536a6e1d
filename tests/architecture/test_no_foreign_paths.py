"""Nothing of the machine it was made on is in the project: no paths, hosts of package registries, keys or caches."""

from __future__ import annotations

import re

import pytest

from tests.architecture.source import ROOT, name, tracked

# Written in pieces, so that this file does not find itself.
PATTERNS = {
    "a path of somebody's machine": re.compile(r"(?<![\w.$}>\-])/(?:ro" + r"ot|ho" + r"me/(?!me\b|user\b)\w+|Us" + r"ers/\w+|wo" + r"rk|opt/v)(?:/|\b)"),
    "the host of a package registry": re.compile(
        r"pypi\.o" + r"rg|pythonho" + r"sted|registry\.npm" + r"js|index-u" + r"rl *=|--extra-index-u" + r"rl|proxy\.gol" + r"ang"
    ),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE K" + r"EY-----"),
    "a key of a provider": re.compile(r"\b(?:sk-(?:ant-|proj-)?[A-Za-z0-9_\-]{32,}|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|xox[abp]-[A-Za-z0-9\-]{20,})"),
}
BINARY = frozenset({".sqlite", ".png", ".gz", ".zip"})


@pytest.mark.parametrize("what", sorted(PATTERNS))
def test_no_file_holds(what: str):
    found = [
        f"{name(path)}:{number}: {match[0]}"
        for path in tracked()
        if path.suffix not in BINARY
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
        if (match := PATTERNS[what].search(line))
    ]
    assert found == []


def test_the_patterns_find_what_they_are_for():
    assert PATTERNS["a path of somebody's machine"].search("see /ho" + "me/somebody/x")
    assert not PATTERNS["a path of somebody's machine"].search("tmp_path/home/x")
    assert not PATTERNS["a path of somebody's machine"].search("/ho" + "me/me, who is nobody")
    assert PATTERNS["the host of a package registry"].search("https://files.pythonho" + "sted.org/x")
    assert PATTERNS["a key of a provider"].search("sk-ant-" + "a" * 40)


@pytest.mark.rule("SA-19")
def test_every_locked_package_has_a_hash_and_comes_from_no_address():
    for lock in ("requirements.lock", "requirements-dev.lock"):
        blocks = re.split(r"\n(?=[a-z0-9])", (ROOT / lock).read_text(encoding="utf-8"))
        assert [block.splitlines()[0] for block in blocks if "--hash=sha256:" not in block] == []
        assert [block.splitlines()[0] for block in blocks if "://" in block or " @ " in block] == []


@pytest.mark.rule("SA-19", "CASE-G5")
def test_the_lock_files_agree_and_leave_out_the_bad_releases():
    pins = [
        dict(re.findall(r"^([a-z0-9\-]+)==(\S+)", (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE))
        for lock in ("requirements.lock", "requirements-dev.lock")
    ]
    runtime, development = pins
    assert {package: version for package, version in runtime.items() if development.get(package) != version} == {}
    assert runtime["litellm"] not in {"1.82.7", "1.82.8"}
    assert "!=1.82.7,!=1.82.8" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
