"""A new chat beside others: it says who else works in the directory, and what waits there unfinished (CL-3)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pi_durable_tui.cli.chat import Opened, open_wished
from pi_durable_tui.cli.setup import Setup, set_up
from pi_durable_tui.cli.wish import Wish

WAITS = "In this directory work was cut off and is not finished. It waits; this is a new chat.\n/resume opens it, pidurable --continue goes on with it."
SHARED = f"In this directory pidurable is at work already (pid {os.getpid()}): all of them change the same files.\npidurable watch shows what it does."


def setup_of(tmp_path: Path) -> Setup:
    (tmp_path / "work").mkdir(exist_ok=True)
    environ = {"PIDURABLE_CONFIG_DIR": str(tmp_path / "config"), "PIDURABLE_DATA_DIR": str(tmp_path / "data"), "HOME": str(tmp_path)}
    return set_up(str(tmp_path / "work"), {**environ, "ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef"})


@asynccontextmanager
async def opened(tmp_path: Path, wish: Wish | None = None) -> AsyncIterator[Opened]:
    found = await open_wished(setup_of(tmp_path), wish or Wish())
    try:
        yield found
    finally:
        await found.close()


@pytest.mark.rule("CL-3")
async def test_a_new_chat_says_who_works_in_its_directory_already(tmp_path: Path) -> None:
    async with opened(tmp_path) as first, opened(tmp_path) as second, opened(tmp_path, Wish(in_print_mode=True)) as printing:
        assert (first.session, first.remarks) == (1, ())
        assert (second.session, second.remarks) == (2, (SHARED,))
        assert (printing.session, printing.remarks) == (3, ()), "a script is not told each time"
    async with opened(tmp_path) as alone:
        assert (alone.session, alone.remarks) == (1, ())


@pytest.mark.rule("CL-3", "TU-9")
async def test_a_new_chat_says_that_unfinished_work_waits_and_how_to_go_on_with_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as first:
        await first.conversation.submit("go")
    async with opened(tmp_path) as second:
        assert (second.session, second.remarks) == (2, (WAITS,))
    async with opened(tmp_path, Wish(resume=True)) as again:
        assert (again.session, again.remarks) == (1, ()), "whoever goes on with it is told by the transcript"
