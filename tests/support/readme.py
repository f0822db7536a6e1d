"""Writes the tables of the README from the tables of the program: `python -m tests.support.readme`."""

from __future__ import annotations

import re
from pathlib import Path

import typer.main

from pi_durable_tui.cli.commands.application import app
from pi_durable_tui.cli.routing import CHAT
from pi_durable_tui.tui.commands import COMMANDS
from pi_durable_tui.tui.keymap import KEYS
from pi_durable_tui.tui.keys.bindings import keymap

README = Path(__file__).parents[2] / "README.md"


def with_tables(text: str) -> str:
    """The README with its three tables as the program says they are."""
    for name, table in (("keys", keys()), ("commands", commands()), ("shell", shell())):
        block = re.compile(rf"(<!-- {name}: [^>]*-->\n).*?(<!-- /{name} -->)", re.DOTALL)
        assert block.search(text), f"README.md has no block {name}"
        text = block.sub(lambda found, table=table: f"{found[1]}{table}{found[2]}", text)
    return text


def keys() -> str:
    """Every key and what it does."""
    return _table(("key", "what it does"), [(keymap().all_shown(key.name), key.help) for key in KEYS])


def commands() -> str:
    """Every slash command."""
    return _table(
        ("command", "what it does"), [(f"`/{command.name}{' ' if command.argument else ''}{command.argument}`", command.help) for command in COMMANDS]
    )


def shell() -> str:
    """Every option and command of the program."""
    group = typer.main.get_command(app)
    chat = group.commands[CHAT]  # type: ignore[attr-defined]
    rows = [("`pidurable [PROMPT…]`", "open a new chat, with a first prompt if one is given; `--` makes any words a prompt")]
    for option in chat.params:
        if option.param_type_name == "option" and not option.hidden:
            names = ", ".join(f"`{name}`" for name in sorted(option.opts, key=len, reverse=True))
            rows.append((names, _sentence(option.help)))
    for name, command in sorted(group.commands.items()):  # type: ignore[attr-defined]
        if not command.hidden:
            rows.append((f"`pidurable {name}`", _sentence(command.get_short_help_str(200))))
    return _table(("command", "what it does"), rows)


def _sentence(text: str) -> str:
    text = " ".join(text.split()).rstrip(".")
    return text[:1].lower() + text[1:]


def _table(head: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    cells = [tuple(cell.replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join([f"| {head[0]} | {head[1]} |", "|---|---|", *(f"| {first} | {second} |" for first, second in cells)]) + "\n"


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text(encoding="utf-8")), encoding="utf-8")
