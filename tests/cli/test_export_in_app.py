"""The chat that is open, written into a file from the app (SA-16, SA-17)."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from pi_durable_tui.cli.chat import open_wished
from pi_durable_tui.cli.export.exports import Exports
from pi_durable_tui.cli.setup import Setup, set_up
from pi_durable_tui.cli.wish import Wish
from pi_durable_tui.errors import BadRequest, EnvironmentFailure, NotFound

KEY = "sk-ant-0123456789abcdef"


def setup_of(tmp_path: Path) -> Setup:
    (tmp_path / "work").mkdir()
    environ = {"PIDURABLE_CONFIG_DIR": str(tmp_path / "config"), "PIDURABLE_DATA_DIR": str(tmp_path / "data"), "HOME": str(tmp_path)}
    return set_up(str(tmp_path / "work"), {**environ, "ANTHROPIC_API_KEY": KEY})


@pytest.mark.rule("SA-16", "SA-17")
async def test_the_chat_is_written_in_each_form_privately_and_nothing_that_is_there_is_replaced(tmp_path: Path) -> None:
    setup = setup_of(tmp_path)
    opened = await open_wished(setup, Wish(name="My talk"))
    try:
        await opened.conversation.submit(f"remember {KEY}", mode="write")
        exports, chat_id = Exports(setup, opened), opened.conversation.id
        page = Path(await exports.write(chat_id, "html", None))
        assert page == tmp_path / "work" / f"chat-{opened.session}.{chat_id}-my-talk.html"
        lines = Path(await exports.write(chat_id, "jsonl", "~/talk.jsonl"))
        assert lines == tmp_path / "talk.jsonl"
        assert any("remember" in json.dumps(json.loads(line)) for line in lines.read_text().splitlines())
        text = Path(await exports.write(chat_id, "markdown", "talk.md"))
        assert text.read_text().startswith("# My talk\n")
        for path in (page, lines, text):
            assert (stat.S_IMODE(path.stat().st_mode), KEY in path.read_text()) == (0o600, False)

        text.write_text("mine")
        with pytest.raises(BadRequest, match=r"is there already\. Nothing was written\."):
            await exports.write(chat_id, "html", "talk.md")
        assert text.read_text() == "mine"
        with pytest.raises(EnvironmentFailure, match=r"No such file or directory\. Nothing is left of it\."):
            await exports.write(chat_id, "html", "nowhere/talk.html")
        with pytest.raises(NotFound):
            await exports.write(999, "html", None)
    finally:
        await opened.close()
