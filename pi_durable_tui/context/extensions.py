"""Runs the Python extensions of the user and of a trusted project, and keeps track of what they installed (rules AG-3, EX-1).

An extension is one module, `extensions/NAME/extension.py`, with a function `extension() -> Extension`. It is run from the text that was read
(and, of a project, agreed to), not from the file as it is by then; its folder is not put on the import path. What it raises is told.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType

from pi_durable_tui.context.project import Item
from pi_durable_tui.harness.extensions.registry import Extension

RESERVED = ("pidurable", "pidurable.")
_PREFIX = "pidurable_extension_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What the modules gave, in their order, and one line for each that gave nothing."""

    extensions: tuple[Extension, ...]
    warnings: tuple[str, ...]


def load(items: Iterable[Item]) -> Loaded:
    """Run the modules among files. Blocks for as long as they take."""
    extensions: dict[str, Extension] = {}
    warnings: list[str] = []
    for item in items:
        if item.kind != "extension":
            continue
        made = _run(item)
        if isinstance(made, str):
            warnings.append(f"The extension {item.shown} is not used: {made}")
        elif made.name in extensions:
            warnings.append(f"The extension {item.shown} is not used: another one has the name {made.name!r}.")
        else:
            extensions[made.name] = made
    return Loaded(extensions=tuple(extensions.values()), warnings=tuple(warnings))


def replaced(before: Iterable[str], now: Iterable[Extension]) -> tuple[Extension, ...]:
    """What to install so that `now` counts instead of the extensions named `before`: empty ones take the places of those that are gone. PURE."""
    current = tuple(now)
    names = {extension.name for extension in current}
    return (*(Extension(name=name) for name in before if name not in names), *current)


def _run(item: Item) -> Extension | str:
    """The extension of a module, or why there is none."""
    # A name of its own for each text: work under way keeps the module it began with.
    module = ModuleType(f"{_PREFIX}{item.digest[:16]}")
    module.__file__ = str(item.path)
    sys.modules[module.__name__] = module  # records defined in it look their annotations up there
    try:
        exec(compile(item.text, str(item.path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - the person's own code, or code they agreed to
        make = getattr(module, "extension", None)
        if not callable(make):
            return "it has no function extension()."
        made = make()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever foreign code raises is told, and the start goes on
        return f"{type(error).__name__}: {error}"
    if not isinstance(made, Extension):
        return f"extension() gave a {type(made).__name__}, not an Extension."
    if made.name == RESERVED[0] or made.name.startswith(RESERVED[1]):
        return f"the name {made.name!r} is taken."
    return made
