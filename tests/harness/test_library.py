"""The durable core is pleasant to use from outside, and drags nothing in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pi_durable_tui import library
from tests.support.harness_rig import Folder
from tests.support.scripted_model import ScriptedModel, say


def test_every_name_that_is_promised_is_there_and_sorted() -> None:
    assert [name for name in library.__all__ if not hasattr(library, name)] == []
    assert library.__all__ == sorted(library.__all__)


@pytest.mark.slow
def test_it_imports_no_user_interface_and_no_model_library() -> None:
    probe = "import sys, pi_durable_tui.library; print([n for n in ('textual', 'rich', 'typer', 'litellm', 'platformdirs') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


async def test_the_program_of_its_docstring_works(tmp_path: Path) -> None:
    clock = library.ManualClock()
    for _ in range(2):  # the second time everything is there already
        storage = await library.open_sqlite(tmp_path / "work.sqlite", clock=clock, inline=True)
        harness = await library.Harness.open(
            storage,
            models=ScriptedModel(clock, say("done")),
            clock=clock,
            entropy=library.SystemEntropy(),
            environment=lambda _conversation_id, agent: Folder(agent.cwd),
        )
        chats = await harness.chats()
        chat = await harness.conversation(chats[0].conversation_id) if chats else await harness.create_conversation(library.Agent(model="any/name"))
        handed_in = await chat.submit("Do something that takes hours.", request_id="once")
        assert (await chat.settled(handed_in.id)).status == "done"
        assert len(await chat.entries()) == 2
        await harness.close()
