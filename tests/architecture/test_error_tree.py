"""The tree of errors in the docstring of errors.py is the tree of its classes, with the same exit codes."""

from __future__ import annotations

import inspect
import re

import pytest

from pi_durable_tui import errors
from pi_durable_tui.errors import PidurableError


def drawn() -> dict[str, tuple[str | None, int | None]]:
    """Class name -> (parent, exit code where one is drawn), from the docstring."""
    found: dict[str, tuple[str | None, int | None]] = {}
    path: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"^ {4}(?P<indent>(?:[│├└─ ]{3})*)(?P<name>[A-Z]\w+)(?P<rest>.*)$", line)
        if match is None:
            continue
        depth = len(match["indent"]) // 3
        path = [(level, above) for level, above in path if level < depth]
        exit_code = re.search(r"exit (\d+)$", match["rest"])
        found[match["name"]] = (path[-1][1] if path else None, int(exit_code[1]) if exit_code else None)
        path.append((depth, match["name"]))
    return found


def classes() -> list[type[PidurableError]]:
    return [value for _, value in inspect.getmembers(errors, inspect.isclass) if issubclass(value, PidurableError)]


def test_the_drawn_tree_is_the_tree_of_classes():
    actual = {cls.__name__: None if cls is PidurableError else cls.__base__.__name__ for cls in classes() if cls.__base__ is not None}
    assert {name: parent for name, (parent, _) in drawn().items()} == actual


@pytest.mark.rule("CL-6")
def test_exit_codes_are_as_drawn_and_inherited():
    codes = {name: code for name, (_, code) in drawn().items()}

    def expected(cls: type[PidurableError]) -> int:
        code = codes[cls.__name__]
        assert cls.__base__ is not None
        return code if code is not None else expected(cls.__base__)

    families = [cls for cls in classes() if cls is not PidurableError]
    assert {cls.__name__: cls.exit_code for cls in families} == {cls.__name__: expected(cls) for cls in families}


def test_every_error_says_what_is_true_when_it_is_raised():
    assert [cls.__name__ for cls in classes() if not (cls.__doc__ or "").strip()] == []


def test_the_root_is_never_raised_itself():
    with pytest.raises(TypeError):
        PidurableError("x")
