"""The app never lets its library read text as markup: `[/` in somebody's message would crash it, `[@click=…]` would run an action."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.source import PACKAGE, modules, name, tree

READ_MARKUP_UNLESS_TOLD = frozenset(
    {"Button", "Checkbox", "Collapsible", "Label", "Link", "Option", "OptionList", "RadioButton", "Static", "Tab", "TabPane", "Toggle", "notify"}
)
READ_MARKUP = frozenset({"from_markup", "render_str"})
TITLES = frozenset({"border_title", "border_subtitle", "tooltip", "BORDER_TITLE", "BORDER_SUBTITLE"})


def findings(module: ast.Module) -> list[tuple[int, str]]:
    """Line and reason of each place at which text could be read as markup."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=args, keywords=keywords):
                plain = any(word.arg == "markup" and isinstance(word.value, ast.Constant) and word.value.value is False for word in keywords)
                if called in READ_MARKUP or (called in READ_MARKUP_UNLESS_TOLD and (args or keywords) and not plain):
                    found.append((node.lineno, f"{called} without markup=False"))
            case ast.Assign(targets=[ast.Attribute(attr=target) | ast.Name(id=target)], value=value) if target in TITLES:
                if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "Content"):
                    found.append((node.lineno, f"{target} that is no Content"))
            case ast.FunctionDef(name="render", returns=ast.Name(id="str")):
                found.append((node.lineno, "render returns text, which is read as markup"))
            case _:
                pass
    return sorted(found)


@pytest.mark.rule("SA-2", "CASE-E1")
def test_no_widget_reads_text_as_markup():
    assert [f"{name(path)}:{line}: {reason}" for path in modules(PACKAGE / "tui") for line, reason in findings(tree(path))] == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("Static(text)", 1),
        ("Static(text, markup=True)", 1),
        ("Static(text, markup=False)", 0),
        ("Static()", 0),
        ("self.app.notify(text)", 1),
        ("self.notify(text, markup=False)", 0),
        ("Content.from_markup(text)", 1),
        ("self.border_title = text", 1),
        ("self.border_title = Content(text)", 0),
        ("def render(self) -> str: ...", 1),
        ("def render(self) -> Content: ...", 0),
    ],
)
def test_what_counts_as_reading_markup(source: str, count: int):
    assert len(findings(ast.parse(source))) == count
