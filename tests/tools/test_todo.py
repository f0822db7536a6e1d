"""The tool todo: a document of the conversation, replaced in the commit of the result."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_durable_tui.tools.work.todo import TODO, todo_tool
from tests.support.harness_rig import Backend, Rig
from tests.support.scripted_model import call, say
from tests.support.tools_calls import Workplace, text_of

STEPS = [{"text": "look", "state": "done"}, {"text": "fix\nit", "state": "doing"}, {"text": "test"}]


@pytest.mark.rule("AG-2")
async def test_the_list_is_replaced_whole_and_can_be_looked_at(work: Workplace):
    assert text_of(await work.call("todo")) == "(The list is empty.)"
    assert text_of(await work.call("todo", items=STEPS)) == "[x] look\n[>] fix it\n[ ] test"
    assert text_of(await work.call("todo")) == "[x] look\n[>] fix it\n[ ] test"
    assert text_of(await work.call("todo", items=[])) == "(The list is empty.)"


@pytest.mark.rule("AG-2", "TO-2")
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
async def test_the_list_is_stored_with_the_result_and_a_fork_has_it_as_of_its_entry(tmp_path: Path, backend: Backend):
    rig = Rig(tmp_path, backend, tools=(todo_tool(),))
    chat = await rig.start(call(("todo", {"items": STEPS[:1]})), call(("todo", {"items": STEPS[1:2]})), say("ok"))
    await chat.submit("plan")
    await rig.run_out(chat)

    assert await rig.harness.session.snapshot(TODO, chat.id) == {"items": [{"text": "fix\nit", "state": "doing"}]}
    results = [entry for entry in await rig.entries(chat.id) if entry.kind == "pi.tool-result"]
    assert (results[0].data or {})["details"] == {"items": [{"text": "look", "state": "done"}]}
    await rig.close()
