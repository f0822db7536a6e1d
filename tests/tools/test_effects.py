"""What write, edit and bash say they would touch: real paths, through links (rule SA-12)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pi_durable_tui.harness.ports import Effects
from tests.support.tools_calls import Workplace


async def effects(work: Workplace, name: str, **arguments: Any) -> Effects:
    tool = work.tools[name]
    assert tool.effects is not None
    return await tool.effects(msgspec.convert(arguments, tool.arguments), work.context())


@pytest.mark.rule("SA-12")
async def test_a_path_is_taken_through_links_and_dots_to_where_it_really_leads(work: Workplace, tmp_path):
    root = str(work.folder.resolve())
    outside = tmp_path / "outside"
    outside.mkdir()
    (work.folder / "link").symlink_to(outside)
    (work.folder / "hooks").symlink_to(".git/hooks")
    (work.folder / "file").symlink_to(outside / "not yet")
    for path, real in [
        ("a/b.txt", f"{root}/a/b.txt"),
        ("link/x", f"{outside.resolve()}/x"),
        ("link/../y", f"{tmp_path.resolve()}/y"),
        ("hooks/pre-commit", f"{root}/.git/hooks/pre-commit"),
        ("file", f"{outside.resolve()}/not yet"),
    ]:
        assert await effects(work, "write", path=path, content="") == Effects(root=root, directory=root, paths=(real,))
        assert (await effects(work, "edit", path=path, edits=[{"old": "a", "new": "b"}])).paths == (real,)
    assert (await effects(work, "write", path="a\0b", content="")).paths == ()


@pytest.mark.rule("SA-12", "SA-13")
async def test_a_command_says_where_it_would_run(work: Workplace):
    root = str(work.folder.resolve())
    (work.folder / "sub").mkdir()
    await work.call("bash", command="cd sub")
    assert await effects(work, "bash", command="make") == Effects(root=root, directory=f"{root}/sub", command="make")
