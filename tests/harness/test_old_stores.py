"""Stores that older versions left in the middle of things open and finish with the code of today (PR-23)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.harness.live import DRAFT, INBOX
from pi_durable_tui.selftest.oracle import faults
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.kind import STORE_KINDS, StoreKind
from pi_durable_tui.storage.sqlite import open_sqlite
from tests.support.old_stores import PHASES, SHELF, Obliging, leave, rig_at
from tests.support.storage_journal import contents

FOLDERS = sorted(path.name for path in SHELF.iterdir() if path.is_dir())

LEFT = {  # the kinds, states and phases of the tasks that were alive, and what waits in the inbox
    "stream": ({("pi.generation", "running", "request")}, 0),
    "tool": ({("pi.generation", "waiting", "tools"), ("pi.tool", "running", "execute")}, 0),
    "approval": ({("pi.generation", "waiting", "tools"), ("pi.tool", "waiting", "approve"), ("pi.question", "sleeping", "ask")}, 0),
    "queue": ({("pi.generation", "running", "request")}, 2),
    "compaction": ({("pi.compaction", "running", "summarize")}, 0),
    "sleep": ({("pi.generation", "sleeping", "retry")}, 0),
}


async def opened(store: Path, kind: StoreKind, *, read_only: bool = False) -> Any:
    return await (open_sqlite if kind == "sqlite" else open_jsonl)(store, clock=ManualClock(), inline=True, read_only=read_only)


def taken(name: str, kind: StoreKind, tmp_path: Path) -> Path:
    """A copy of a store of the shelf."""
    source, target = SHELF / name / f"session.{kind}", tmp_path / f"session.{kind}"
    (shutil.copytree if source.is_dir() else shutil.copyfile)(source, target)
    return target


def test_the_shelf_has_a_store_of_each_kind_for_each_phase_of_each_version() -> None:
    versions = {name.partition("-")[0] for name in FOLDERS}
    assert "v1" in versions
    assert {f"{version}-{phase}" for version in versions for phase in PHASES} == set(FOLDERS)
    assert [name for name in FOLDERS for kind in STORE_KINDS if not (SHELF / name / f"session.{kind}").exists()] == []
    assert set(LEFT) == set(PHASES)


@pytest.mark.rule("PR-23", "PR-5", "ST-11")
@pytest.mark.parametrize("kind", STORE_KINDS)
@pytest.mark.parametrize("name", FOLDERS)
async def test_an_old_store_shows_what_was_under_way_and_reading_leaves_it_as_it_is(tmp_path: Path, name: str, kind: StoreKind) -> None:
    store = taken(name, kind, tmp_path)
    before = contents(tmp_path)
    reader = await opened(store, kind, read_only=True)
    tasks, waiting = LEFT[name.partition("-")[2]]
    live = [task for task in (await reader.tasks(limit=1_000)).items if task.is_live]
    assert {(task.kind, task.status, (task.checkpoint or {}).get("phase")) for task in live} == tasks
    inbox = await reader.document(INBOX.address((await reader.conversations()).items[0].id))
    revisions = await reader.revisions(inbox.id) if inbox is not None else None
    assert len(revisions.base.get("items", []) if revisions is not None and not revisions.deltas else []) in {0, waiting}
    await reader.close()
    assert contents(tmp_path) == before


@pytest.mark.rule("PR-23", "PR-10", "TK-10")
@pytest.mark.parametrize("kind", STORE_KINDS)
@pytest.mark.parametrize("name", FOLDERS)
async def test_the_work_in_an_old_store_is_finished_by_the_code_of_today(tmp_path: Path, name: str, kind: StoreKind) -> None:
    taken(name, kind, tmp_path)
    effects: list[str] = []
    rig = rig_at(tmp_path, kind, effects)
    rig.model = Obliging(rig.clock)
    harness = await rig.open()
    (chat,) = await harness.chats()
    conversation = await harness.conversation(chat.conversation_id)
    before = await rig.entries(conversation.id)
    await harness.resume()
    await rig.settle()
    for slot in (await rig.live(conversation.id)).tools:
        if slot.question is not None:
            await conversation.answer(slot.question, "allow", by="the test")
    await rig.run_out(conversation)
    for _ in range(5):  # a summary that nobody waits for
        rig.clock.advance(60_000)
        await rig.settle()
    after = await rig.entries(conversation.id)
    assert after[: len(before)] == before
    assert len(after) > len(before) or name.endswith("-compaction")
    found = await faults(rig.storage.inner, acknowledged=[one.id for one in (await rig.storage.inner.submissions()).items])
    if name.endswith("-compaction"):  # what a summary cost is counted, and stands in no entry
        found = [fault for fault in found if not fault.startswith("usage is")]
    assert found == []
    assert effects == (["asked"] if name.endswith("-approval") else [])
    if name.endswith("-queue"):
        assert (await harness.session.snapshot(DRAFT, conversation.id) or {})["text"] == "not sent yet"
    await rig.close()
    storage = await opened(tmp_path / f"session.{kind}", kind)
    await storage.verify()
    await storage.close()


@pytest.mark.rule("PR-23")
@pytest.mark.parametrize("kind", STORE_KINDS)
@pytest.mark.parametrize("phase", sorted(PHASES))
async def test_the_newest_version_on_the_shelf_is_what_the_code_of_today_leaves(tmp_path: Path, phase: str, kind: StoreKind) -> None:
    """When this fails, what is stored has changed: keep the old stores, and add a version to the shelf (or, before a release, make its stores again)."""
    newest = max(FOLDERS, key=lambda name: int(name[1:].partition("-")[0])).partition("-")[0]
    made = await leave(tmp_path, kind, phase)
    (tmp_path / "kept").mkdir()
    kept = taken(f"{newest}-{phase}", kind, tmp_path / "kept")
    assert await shape(made, kind) == await shape(kept, kind)


async def shape(store: Path, kind: StoreKind) -> Any:
    """Names and types of all that is stored, without the values."""
    reader = await opened(store, kind, read_only=True)
    dump = await reader.export()
    await reader.close()
    records = [(record.kind, record.id, record.seq, structure(json.loads(record.text))) for record in dump.records]
    return dump.counters.schema_version, records, [(one.document_id, one.seq, structure(json.loads(one.text))) for one in dump.revisions]


def structure(value: Any) -> Any:
    match value:
        case dict():
            return {key: structure(item) for key, item in value.items()}
        case list():
            return [structure(item) for item in value]
        case _:
            return type(value).__name__
