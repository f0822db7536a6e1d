"""One word, one meaning: names of modules, classes and functions keep to the words of SPEC.md."""

from __future__ import annotations

import ast
import re

from tests.architecture.source import PACKAGE, modules, name, tree

NO_MODULE_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "misc", "manager", "handler", "base", "data"})
NO_WORDS = {
    # word in a name -> the word to use
    "database": "store",
    "db": "store",
    "thread": "conversation (threading itself is the exception below)",
    "chatroom": "conversation",
    "cassette": "recorded session",
    "job": "task",
    "manager": "what it manages, and how",
    "handler": "phase",
    "helper": "what it does",
    "util": "what it does",
    "utils": "what it does",
    "misc": "what it does",
    "patch": "delta",
    "engine": "harness",
}
ALLOWED = frozenset({"thread"})  # an operating system's thread is called that; a conversation never is
REPLAY_MEANS = re.compile(r"replay", re.IGNORECASE)


def words(identifier: str) -> list[str]:
    """A name cut into lower-case words: `openStore`, `open_store` and `OpenStore` are open, store."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", identifier)]


def names_defined() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for path in modules(PACKAGE):
        found.append((f"{name(path)}: module", path.stem))
        found += [
            (f"{name(path)}:{node.lineno}", node.name)
            for node in ast.walk(tree(path))
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        ]
    return found


def test_words_are_cut_as_people_read_them():
    assert words("open_StoreID2") == ["open", "store", "id", "2"]
    assert words("SQLiteStorage") == ["sq", "lite", "storage"]


def test_no_module_is_named_by_a_word_that_says_nothing():
    assert [name(path) for path in modules(PACKAGE) if path.stem in NO_MODULE_NAMES or path.parent.name in NO_MODULE_NAMES] == []


def test_names_use_the_words_of_the_specification():
    wrong = [
        f"{place} {identifier}: not {word}, but {NO_WORDS[word]}"
        for place, identifier in names_defined()
        for word in words(identifier)
        if word in NO_WORDS.keys() - ALLOWED
    ]
    assert wrong == []


def test_playing_a_recorded_session_is_not_called_replay():
    wrong = [
        f"{place} {identifier}" for place, identifier in names_defined() if place.startswith("pi_durable_tui/playback/") and REPLAY_MEANS.search(identifier)
    ]
    assert wrong == []


def test_a_moment_and_a_length_carry_their_unit():
    """A number of seconds, bytes or tokens without its unit in the name is a bug waiting for a caller."""
    bare = re.compile(r"^(timeout|delay|duration|interval|elapsed|deadline|size|started_at|ended_at|created_at|updated_at)$")
    wrong = [
        f"{name(path)}:{node.lineno} {node.target.id}"
        for path in modules(PACKAGE)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and bare.match(node.target.id)
        and ast.unparse(node.annotation).split(" |")[0] in {"int", "float"}
    ]
    assert wrong == []
