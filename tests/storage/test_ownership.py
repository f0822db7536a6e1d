"""A store of somebody else is not opened, nor one behind somebody else's link (SA-16, CASE-G2)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import Refused
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.sqlite import open_sqlite
from tests.support.storage_journal import contents
from tests.support.storage_records import first_chat

NOBODY = 54321
OPENERS = {"sqlite": open_sqlite, "jsonl": open_jsonl}

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


async def opened(kind: str, path: Path, *, read_only: bool = False) -> Any:
    return await OPENERS[kind](path, clock=ManualClock(), inline=True, read_only=read_only)


async def made(kind: str, path: Path) -> None:
    storage = await opened(kind, path)
    await storage.commit(first_chat())
    await storage.close()


@needs_root
@pytest.mark.rule("SA-16", "CASE-G2")
@pytest.mark.parametrize("kind", sorted(OPENERS))
@pytest.mark.parametrize("read_only", [False, True])
async def test_a_store_of_another_user_is_refused_and_not_touched(tmp_path: Path, kind: str, read_only: bool) -> None:
    path = tmp_path / f"s.{kind}"
    await made(kind, path)
    os.chown(path, NOBODY, NOBODY)
    before = contents(tmp_path)
    with pytest.raises(Refused, match=f"belongs to the user {NOBODY}, not to you"):
        await opened(kind, path, read_only=read_only)
    assert contents(tmp_path) == before
    os.chown(path, os.geteuid(), -1)
    await (await opened(kind, path)).close()


@needs_root
@pytest.mark.rule("SA-16", "CASE-G2")
@pytest.mark.parametrize("kind", sorted(OPENERS))
@pytest.mark.parametrize("place", ["store", "folder"])
async def test_a_link_of_another_user_leads_nowhere_and_ones_own_does(tmp_path: Path, kind: str, place: str) -> None:
    (tmp_path / "real").mkdir()
    await made(kind, tmp_path / "real" / f"s.{kind}")
    link = tmp_path / ("there" if place == "folder" else f"link.{kind}")
    link.symlink_to(tmp_path / "real" if place == "folder" else tmp_path / "real" / f"s.{kind}")
    way = link / f"s.{kind}" if place == "folder" else link
    await (await opened(kind, way)).close()
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    before = contents(tmp_path)
    for read_only in (False, True):
        with pytest.raises(Refused, match=r"the link .* belongs to the user"):
            await opened(kind, way, read_only=read_only)
    assert contents(tmp_path) == before
