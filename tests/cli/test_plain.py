"""Command lines that are read without a parser mean what the parser makes of them."""

from __future__ import annotations

import pytest
import typer

from pi_durable_tui.cli import wish
from pi_durable_tui.cli.commands.application import app


@pytest.mark.parametrize("line", ["", "fix the bug", "-c", "--continue", "-c go on", "--continue @a and b", "fix sessions"])
def test_a_plain_line_means_the_same_without_a_parser(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    monkeypatch.setattr(wish, "open_chat", lambda wished: seen.append(wished) or 0)
    plain = wish.plain_wish(line.split())
    command = typer.main.get_command(app)
    with command.make_context("pidurable", line.split()) as context:
        command.invoke(context)
    assert [plain] == seen


@pytest.mark.parametrize("line", ["sessions", "log", "--help", "-p x", "fix -c", "-c --debug", "-- x", "chat"])
def test_everything_else_takes_the_parser(line: str) -> None:
    assert wish.plain_wish(line.split()) is None


def test_every_command_is_known_by_its_name() -> None:
    assert set(typer.main.get_command(app).commands) == wish.COMMANDS
