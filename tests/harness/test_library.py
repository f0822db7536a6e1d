"""The durable core is pleasant to use from outside, and drags nothing in."""

from __future__ import annotations

import asyncio
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pi_durable_tui import library
from tests.support.harness_rig import Rig
from tests.support.scripted_model import ScriptedModel, say


def test_every_name_that_is_promised_is_there_once() -> None:
    assert [name for name in library.__all__ if not hasattr(library, name)] == []
    assert len(set(library.__all__)) == len(library.__all__)


def test_every_type_that_a_promised_one_hands_out_or_takes_is_promised_too() -> None:
    """Beside those that only whoever writes a storage or a screen deals with."""
    aside = {"Address", "Batch", "DocumentStep", "Dump", "EntriesOf", "Metadata", "Permissions", "Provider", "PutAside", "Revisions", "StoredDocument"}
    promised = [getattr(library, name) for name in library.__all__]
    missing: dict[str, str] = {}
    for each in promised:
        if not inspect.isclass(each) or not each.__module__.startswith("pi_durable_tui"):
            continue
        calls = [member.fget if isinstance(member, property) else member for name, member in vars(each).items() if not name.startswith("_")]
        hints = [each.__annotations__] if "__annotations__" in vars(each) else []
        hints += [getattr(member, "__func__", member).__annotations__ for member in calls if hasattr(getattr(member, "__func__", member), "__annotations__")]
        for name in {name for hint in hints for text in hint.values() for name in re.findall(r"[A-Z]\w+", str(text))} - aside:
            found = getattr(inspect.getmodule(each), name, None)
            if inspect.isclass(found) and found.__module__.startswith("pi_durable_tui") and found not in promised:
                missing[name] = each.__qualname__
    assert missing == {}


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
        )
        chats = await harness.chats()
        chat = await harness.conversation(chats[0].conversation_id) if chats else await harness.create_conversation(library.Agent(model="any/name"))
        handed_in = await chat.submit("Do something that takes hours.", request_id="once")
        assert (await chat.settled(handed_in.id)).status == "done"
        assert len(await chat.entries()) == 2
        await harness.close()


async def test_one_can_wait_for_the_end_of_a_task_also_of_one_that_has_ended_before(tmp_path: Path) -> None:
    async def count(runtime: library.TaskRuntime) -> None:
        async def write(_transaction: library.Transaction, _task: library.Task) -> library.Move:
            return library.End(library.Completed(value=5))

        await runtime.commit(write)

    counting = library.Extension(name="counting", tasks=(library.TaskDefinition(kind="count", phases={"count": count}),))
    rig = Rig(tmp_path, extensions=(counting,))
    chat = await rig.start()
    task_id = await rig.harness.start_task(chat.id, "count", {}, {"phase": "count"})
    assert await rig.harness.ended(task_id) == library.Completed(value=5)
    with pytest.raises(library.NotFound, match="There is no task 999 in memory"):
        await rig.harness.ended(999)
    await rig.close()
    await rig.open()
    assert await rig.harness.ended(task_id) == library.Completed(value=5)
    await rig.close()


@pytest.mark.rule("SE-7", "SE-8")
async def test_a_wait_ends_with_the_session_or_when_it_is_given_up_and_the_task_goes_on(tmp_path: Path) -> None:
    async def wait(_runtime: library.TaskRuntime) -> None:
        await asyncio.Event().wait()

    rig = Rig(tmp_path, extensions=(library.Extension(name="slow", tasks=(library.TaskDefinition(kind="slow", phases={"wait": wait}),)),))
    chat = await rig.start()
    task_id = await rig.harness.start_task(chat.id, "slow", {}, {"phase": "wait"})
    waits = [asyncio.ensure_future(rig.harness.ended(task_id)) for _ in range(2)]
    await rig.settle()
    waits[0].cancel()
    await rig.settle()
    assert [task.status for task in await rig.tasks("slow")] == ["running"]
    await rig.close()
    with pytest.raises(library.SessionClosed, match=f"The end of task {task_id} came after the session was closed"):
        await waits[1]


@pytest.mark.rule("SE-5", "SU-3")
async def test_what_could_not_be_read_again_is_refused_and_the_session_goes_on(tmp_path: Path) -> None:
    rig = Rig(tmp_path, backend="sqlite")
    chat = await rig.start(say("yes"))
    before = len(rig.storage.batches)
    with pytest.raises(library.BadRequest, match="There is no mode 'later'; the modes are followUp, steer, reject, write"):
        await chat.submit("hello", mode="later")  # type: ignore[arg-type]
    with pytest.raises(library.BadRequest, match=r"The Agent is not one: Invalid enum value 'never' - at `\$.approval`"):
        await chat.set_agent(approval="never")
    with pytest.raises(library.BadRequest, match="The Agent is not one"):
        await rig.harness.create_conversation(library.Agent(tools="read"))  # type: ignore[arg-type]
    with pytest.raises(library.StorageRejected, match="Expected `int`, got `str`"):
        await rig.harness.session.commit(badly_written)
    assert len(rig.storage.batches) == before
    assert (await chat.settled((await chat.submit("hello")).id)).status == "done"
    await rig.close()


async def badly_written(transaction: library.Transaction) -> None:
    state = library.Pending(checkpoint={"phase": "count"})
    transaction.put_task(library.Task(id=transaction.new_id(), kind="count", version="one", conversation_id=1, input={}, state=state, created_at_ms=0))  # type: ignore[arg-type]


async def test_a_task_of_no_kind_or_in_no_conversation_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    rig = Rig(tmp_path, extensions=[library.Extension(name="test", tasks=(library.TaskDefinition(kind="work", phases={}),))])
    chat = await rig.start()
    seq = rig.harness.session.next_seq
    with pytest.raises(library.BadRequest, match="'play' is installed"):
        await rig.harness.start_task(chat.id, "play", {}, {"phase": "start"})
    with pytest.raises(library.NotFound, match="conversation 999"):
        await rig.harness.start_task(999, "work", {}, {"phase": "start"})
    assert (rig.harness.session.next_seq, rig.harness.failed) == (seq, None)


async def test_what_is_told_under_a_known_request_id_ends_the_task_that_tells_it_and_no_other(tmp_path: Path) -> None:
    async def tell(runtime: library.TaskRuntime) -> None:
        async def write(transaction: library.Transaction, task: library.Task) -> library.Move:
            desk = await library.Desk.take(transaction, task.conversation_id)
            desk.notify("It is done.", runtime.services.settings, request_id="the end", data={})
            desk.put_back()
            return library.End(library.Completed(value="told"))

        await runtime.commit(write)

    rig = Rig(tmp_path, extensions=[library.Extension(name="test", tasks=(library.TaskDefinition(kind="teller", phases={"tell": tell}),))])
    chat = await rig.start(say("good"))
    outcomes = []
    for _ in range(2):
        outcomes.append(await rig.harness.ended(await rig.harness.start_task(chat.id, "teller", {}, {"phase": "tell"})))
        await rig.run_out(chat)
    assert outcomes[0] == library.Completed(value="told")
    assert isinstance(outcomes[1], library.Faulted)
    assert "Request 'the end' of conversation" in outcomes[1].message
    assert [entry.kind for entry in await rig.entries(chat.id)] == ["pidurable.notice", "pi.assistant"]
