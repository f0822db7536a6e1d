"""What a JSONL store holds when its files end in the middle of something, or when a bit of them has changed."""

from __future__ import annotations

import contextlib
import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import EnvironmentFailure, SchemaTooNew, StoreCorrupt
from pi_durable_tui.records import codec
from pi_durable_tui.records.commit import Batch, DocumentDelta
from pi_durable_tui.records.document import StoredDocument
from pi_durable_tui.records.task import Completed, Running, Terminal
from pi_durable_tui.storage.contents import Contents
from pi_durable_tui.storage.dump import Dump, dump_of
from pi_durable_tui.storage.jsonl import JsonlStorage, open_jsonl
from pi_durable_tui.storage.jsonl.frame import chain, framed, line_at
from pi_durable_tui.storage.jsonl.lines import ClosedLine, CommitLine, Growth, RevisionLine, RowLine, decoded
from pi_durable_tui.storage.jsonl.recovery import Cut, Recovered, recovered
from pi_durable_tui.storage.jsonl.snapshot import main_of
from tests.support.sometimes import happened
from tests.support.storage_journal import JournalFiles, Moment, contents, kept_as_killed
from tests.support.storage_records import address, base, batch, conversation, entry, submission, task

SET = [["s", ["a"], 2]]


async def opened(folder: Path, **options: Any) -> JsonlStorage:
    return await open_jsonl(folder, clock=ManualClock(), inline=True, **options)


@dataclass(frozen=True, slots=True)
class Story:
    """A store that was killed, before and after its last commit: what it held, and its files."""

    folder: Path
    before: Dump
    after: Dump
    files_before: dict[str, bytes]
    files: dict[str, bytes]

    @property
    def main(self) -> bytes:
        return self.files["main"]

    def is_before(self, found: Recovered) -> bool:
        return dump_of(found.contents) == self.before

    def is_after(self, found: Recovered) -> bool:
        return dump_of(found.contents) == self.after


def files_of(folder: Path) -> dict[str, bytes]:
    return {item.stem: item.read_bytes() for item in sorted(folder.glob("*.jsonl"))}


def read(files: dict[str, bytes]) -> Recovered:
    """What these files hold, without a disk."""
    return recovered("store", files["main"], {name: data for name, data in files.items() if name != "main"})


LAST: dict[str, Batch] = {
    "rows": batch(9, entries=[entry(6, text="é\u2028 {}"), entry(7)], submissions=[submission(8)]),
    "a partial": batch(6, documents=[DocumentDelta(document_id=4, ops=SET)], priority="partial"),
    "a task that goes on": batch(6, tasks=[task(3, state=Running(checkpoint={"n": 2}))]),
    "all kinds": batch(
        9,
        entries=[entry(6)],
        tasks=[task(3, state=Terminal(outcome=Completed())), task(7)],
        documents=[base(4, {"a": 9}), base(8, {"new": True}, address=address(kind="test.other"))],
    ),
}


async def story(tmp_path: Path, last: Batch, *, is_closed: bool = False) -> Story:
    folder = tmp_path / "data" / "session.jsonl"
    storage = await opened(folder, fsync=False)  # then what is over is removed later: the files are as at the kill
    first = batch(6, conversations=[conversation(1)], entries=[entry(2)], tasks=[task(3)], documents=[base(4, {"a": 1})], submissions=[submission(5)])
    await storage.commit(first)
    await storage.commit(batch(6, documents=[DocumentDelta(document_id=4, ops=SET)]))
    before, files_before = await storage.export(), files_of(folder)
    await storage.commit(last)
    after = await storage.export()
    if is_closed:
        await storage.close()
    killed = kept_as_killed(folder)
    await storage.close()
    return Story(killed, before, after, files_before, files_of(killed))


def tails(story: Story, start: int, draw: random.Random) -> dict[str, bytes]:
    """What a disk may have put in the place of what is missing from `start` on."""
    missing = len(story.main) - start
    stale = story.files_before["main"].splitlines(keepends=True)
    return {
        "none": b"",
        "zeros": bytes(missing),
        "a page of zeros": bytes(4096),
        "random": draw.randbytes(max(missing, 40)),
        "a stale line": stale[-1],
        "stale lines": b"".join(stale[1:]),
        "another's line": framed(b'{"type":"closed"}', seq=2, prev="ab" * 16)[0],
        "CRLF": b"\r\n",
        "LF": b"\n",
        "BOM": b"\xef\xbb\xbf",
        "text": b'{"sum":"not a line"}\n',
    }


# --------------------------------------------------------------------------------------------------------------- torn ends


@pytest.mark.rule("PR-12", "ST-16", "ST-18", "FB-10")
@pytest.mark.parametrize("name", LAST)
async def test_a_last_commit_torn_at_any_byte_with_anything_behind_it_never_happened(tmp_path: Path, name: str, seed: int):
    told, draw = await story(tmp_path, LAST[name]), random.Random(seed)
    begun = len(told.files_before["main"])
    assert told.main.startswith(told.files_before["main"])
    for start in range(begun, len(told.main)):
        for kind, tail in tails(told, start, draw).items():
            if tail.startswith(told.main[start:]):
                continue  # that is no tear: the missing bytes are just these
            main = told.main[:start] + tail
            found = read({**told.files, "main": main})
            assert told.is_before(found), (start, kind)
            assert found.main.size_bytes == begun
            if begun < start < len(told.main) - 1 and kind == "none":
                happened("a torn marker")
            assert (Cut("main", begun, len(main) - begun) in found.cuts) == (len(main) > begun)


@pytest.mark.rule("PR-12", "ST-18")
@pytest.mark.parametrize("name", LAST)
async def test_a_whole_last_commit_stays_whatever_stands_behind_it(tmp_path: Path, name: str, seed: int):
    told = await story(tmp_path, LAST[name])
    for kind, tail in tails(told, len(told.main), random.Random(seed)).items():
        found = read({**told.files, "main": told.main + tail})
        assert told.is_after(found), kind
        assert found.cuts == ([Cut("main", len(told.main), len(tail))] if tail else [])


@pytest.mark.rule("PR-12", "ST-16", "FB-10")
@pytest.mark.parametrize("name", ["a partial", "a task that goes on", "all kinds"])
async def test_dying_between_any_byte_of_the_sidecars_and_the_marker_is_a_commit_that_never_happened(tmp_path: Path, name: str):
    told = await story(tmp_path, LAST[name])
    grown = {item: data for item, data in told.files.items() if item != "main" and told.files_before.get(item) != data}
    assert grown
    for item, data in grown.items():
        begun = len(told.files_before.get(item, b""))
        for end in range(begun, len(data) + 1):
            files = {**told.files_before, item: data[:end]}
            found = read(files)
            assert told.is_before(found)
            assert [cut.name for cut in found.cuts] == ([item] if end > begun else [])


@pytest.mark.rule("PR-12", "ST-15", "FB-10")
@pytest.mark.parametrize("name", ["a partial", "a task that goes on", "all kinds"])
async def test_a_sidecar_without_a_line_that_a_marker_names_is_refused_wherever_it_ends(tmp_path: Path, name: str):
    told = await story(tmp_path, LAST[name])
    for item in told.files.keys() - {"main"}:
        data = told.files[item]
        if item == "task-3" and name == "all kinds":
            continue  # its task ended: nobody needs it
        for end in range(len(data)):
            with pytest.raises(StoreCorrupt, match=item):
                read({**told.files, item: data[:end]})


@pytest.mark.rule("ST-16", "ST-18", "FB-10")
@pytest.mark.parametrize("name", LAST)
async def test_what_is_cut_is_kept_and_told_and_the_store_goes_on(tmp_path: Path, name: str):
    told = await story(tmp_path, LAST[name])
    main = told.folder / "main.jsonl"
    begun = len(told.files_before["main"])
    main.write_bytes(told.main[:-1] + b"\0\0")
    unconfirmed = {
        item: data[len(told.files_before.get(item, b"")) :] for item, data in told.files.items() if item != "main" and told.files_before.get(item) != data
    }
    storage = await opened(told.folder)
    assert await storage.export() == told.before
    cut = {path.name: path.read_bytes() for path in told.folder.glob("*.cut-1")}
    assert cut == {"main.jsonl.cut-1": told.main[begun:-1] + b"\0\0", **{f"{item}.jsonl.cut-1": data for item, data in unconfirmed.items()}}
    assert {path.stat().st_mode & 0o777 for path in told.folder.glob("*.cut-1")} == {0o600}
    size = len(told.main) - begun + 1
    assert f"{size} bytes of an unfinished commit after commit 2 were cut from main.jsonl and kept in main.jsonl.cut-1." in storage.notices
    assert len(storage.notices) == len(cut)
    assert await storage.commit(LAST[name]) == 3
    assert await storage.export() == told.after
    await storage.close()
    storage = await opened(told.folder)
    assert (await storage.export(), storage.notices) == (told.after, ())
    await storage.close()


@pytest.mark.rule("ST-18")
async def test_what_is_cut_is_on_the_disk_elsewhere_before_it_is_cut(tmp_path: Path):
    told = await story(tmp_path, LAST["a partial"])
    (told.folder / "main.jsonl").write_bytes(told.main[:-1])
    files = JournalFiles()
    await (await opened(told.folder, files=files)).close()
    kept = [(kind, name) for kind, name in files.journal if name != "session.jsonl.reserve"]
    assert kept[: kept.index(("sync", "doc-4.jsonl")) + 1] == [
        *((kind, f"{name}.jsonl.cut-1{end}") for name in ("main", "doc-4") for kind, end in KEPT),
        ("sync_folder", "session.jsonl"),
        *((kind, f"{name}.jsonl") for name in ("main", "doc-4") for kind in ("cut", "sync")),
    ]


KEPT = [("create", ".new"), ("append", ".new"), ("sync", ".new"), ("rename", "")]


@pytest.mark.rule("ST-18", "PR-17")
@pytest.mark.parametrize("moment", ["before", "short", "after"])
async def test_a_copy_of_what_is_cut_is_whole_or_not_there_wherever_the_disk_is_full(tmp_path: Path, moment: Moment):
    told = await story(tmp_path, LAST["a partial"])
    (told.folder / "main.jsonl").write_bytes(told.main[:-1])
    cut = {name: told.files[name][len(told.files_before[name]) :] for name in ("main", "doc-4")}
    cut["main"] = cut["main"][:-1]
    operation, files = 0, JournalFiles()
    while files.happened or not operation:
        operation += 1
        folder = tmp_path / str(operation) / "session.jsonl"
        shutil.copytree(told.folder, folder)
        files.arm(operation, moment, "full", for_good=True)
        with contextlib.suppress(EnvironmentFailure):
            await (await opened(folder, files=files)).close()
        assert {kept.read_bytes() for kept in folder.glob("*.cut-*") if kept.suffix != ".new"} <= set(cut.values())
        storage = await opened(folder)
        assert await storage.export() == told.before
        assert {item.size_bytes for item in await storage.put_aside()} >= set(map(len, cut.values()))
        await storage.close()
    assert operation > 10


@pytest.mark.rule("ST-18")
async def test_a_second_cut_is_kept_beside_the_first(tmp_path: Path):
    told = await story(tmp_path, LAST["rows"])
    for number in (1, 2):
        with (told.folder / "main.jsonl").open("ab") as file:
            file.write(b"torn %d" % number)
        storage = await opened(told.folder)
        kept_as_killed(told.folder)
        await storage.close()
        shutil.rmtree(told.folder.parent.with_name(told.folder.parent.name + "-killed"))
    assert [path.read_bytes() for path in sorted(told.folder.glob("*.cut-*"))] == [b"torn 1", b"torn 2"]


@pytest.mark.rule("PR-12", "FB-10")
async def test_the_first_commit_of_a_store_may_be_torn_too(tmp_path: Path):
    folder = tmp_path / "data" / "session.jsonl"
    storage = await opened(folder)
    empty = await storage.export()
    await storage.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {})]))
    killed = kept_as_killed(folder)
    await storage.close()
    (killed / "main.jsonl").write_bytes((killed / "main.jsonl").read_bytes()[:-5])
    storage = await opened(killed)
    assert await storage.export() == empty
    assert sorted(notice.partition(" were")[0].partition(" bytes ")[2] for notice in storage.notices) == ["of an unfinished commit before the first commit"] * 2
    assert sorted(path.name for path in killed.iterdir()) == ["doc-2.jsonl.cut-1", "main.jsonl", "main.jsonl.cut-1"]
    await storage.close()


@pytest.mark.rule("ST-1")
@pytest.mark.parametrize("is_begun", [False, True])
async def test_a_creation_that_was_cut_off_is_finished_by_the_next_opening(tmp_path: Path, is_begun: bool):
    folder = tmp_path / "session.jsonl"
    folder.mkdir()
    if is_begun:
        (folder / "main.jsonl.new").write_bytes(b'{"sum"')
    storage = await opened(folder)
    assert await storage.commit(batch(2, conversations=[conversation(1)])) == 1
    assert [path.name for path in folder.iterdir()] == ["main.jsonl"]
    await storage.close()


# ------------------------------------------------------------------------------------------------------------------ damage


@pytest.mark.rule("PR-15", "ST-15")
@pytest.mark.parametrize("name", LAST)
@pytest.mark.slow
async def test_a_changed_bit_of_a_closed_store_changes_nothing_or_is_refused(tmp_path: Path, name: str, seed: int):
    """Every byte of every file, one bit of each: no commit that was acknowledged is lost or altered."""
    told, draw = await story(tmp_path, LAST[name], is_closed=True), random.Random(seed)
    refused = unchanged = 0
    for item, data in told.files.items():
        for offset in range(len(data)):
            changed = bytearray(data)
            changed[offset] ^= 1 << draw.randrange(8)
            try:
                found = read({**told.files, item: bytes(changed)})
            except (StoreCorrupt, SchemaTooNew):
                refused += 1
            else:
                assert told.is_after(found), (item, offset)
                unchanged += 1
    assert refused > 1000
    assert 0 < unchanged < 300  # the closing line


@pytest.mark.rule("PR-15", "ST-15")
@pytest.mark.parametrize("name", LAST)
async def test_a_changed_bit_leaves_the_files_of_a_refused_store_as_they_are(tmp_path: Path, name: str, seed: int):
    told, draw = await story(tmp_path, LAST[name], is_closed=True), random.Random(seed)
    refused = 0
    for _ in range(60):
        item = draw.choice(sorted(told.files))
        path = told.folder / f"{item}.jsonl"
        changed = bytearray(told.files[item])
        changed[draw.randrange(len(changed) - 100)] ^= 1 << draw.randrange(8)
        path.write_bytes(bytes(changed))
        before = contents(told.folder)
        try:
            await (await opened(told.folder, read_only=True)).close()
        except StoreCorrupt:
            refused += 1
            with pytest.raises(StoreCorrupt):
                await opened(told.folder)
        assert contents(told.folder) == before
        path.write_bytes(told.files[item])
    assert refused > 40


@pytest.mark.rule("PR-12", "PR-15", "ST-18")
async def test_damage_before_the_end_is_refused_and_damage_at_the_end_of_a_killed_store_is_cut(tmp_path: Path):
    """What tells the two apart is what was written after it, not where a line breaks."""
    told = await story(tmp_path, LAST["rows"])
    lines = told.main.splitlines(keepends=True)

    def without(index: int) -> bytes:
        return b"".join(lines[:index] + lines[index + 1 :])

    def spoiled(index: int) -> bytes:
        return b"".join([*lines[:index], lines[index].replace(b'"prev":"', b'"prev":"0', 1), *lines[index + 1 :]])

    last = len(told.files_before["main"].splitlines())
    for change in (without, spoiled):
        for index in range(last):
            with pytest.raises(StoreCorrupt):
                read({**told.files, "main": change(index)})
        for index in range(last, len(lines)):
            assert told.is_before(read({**told.files, "main": change(index)}))


@pytest.mark.rule("PR-12", "ST-15")
async def test_a_closing_line_makes_every_line_before_it_one_of_the_middle(tmp_path: Path):
    told = await story(tmp_path, LAST["rows"], is_closed=True)
    *lines, closing = told.main.splitlines(keepends=True)
    assert b'"data":{"type":"closed"}' in closing
    for index in range(len(lines)):
        with pytest.raises(StoreCorrupt):
            read({**told.files, "main": b"".join([*lines[:index], *lines[index + 1 :], closing])})
    assert told.is_after(read({**told.files, "main": b"".join(lines)}))


@pytest.mark.rule("FB-10", "ST-2")
@pytest.mark.parametrize(("seq", "words"), [(2, "commit 2 follows commit 3"), (3, "commit 3 follows commit 3"), (5, "commit 5 follows commit 3"), (4, None)])
async def test_commits_count_up_by_one(tmp_path: Path, seq: int, words: str | None):
    told = await story(tmp_path, LAST["rows"])
    found = read(told.files)
    marker, _ = framed(b'{"type":"commit","nextId":20}', seq=seq, prev=found.main.sum)
    if words is None:
        assert read({**told.files, "main": told.main + marker}).contents.next_seq == 5
    else:
        with pytest.raises(StoreCorrupt, match=words):
            read({**told.files, "main": told.main + marker})


@pytest.mark.rule("ST-15")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"type":"later"}', "it is no line of a store"),
        (b'{"type":"store","schema":1}', "it does not belong there"),
        (b'{"type":"revision","id":4,"record":{}}', "it does not belong there"),
        (b"[]", "it is no line of a store"),
        (b'{"type":"closed"}', "it does not belong there"),
    ],
)
async def test_a_valid_line_that_says_what_it_must_not_is_refused(tmp_path: Path, body: bytes, words: str):
    told = await story(tmp_path, LAST["rows"])
    line, _ = framed(body, seq=4, prev=read(told.files).main.sum)
    with pytest.raises(StoreCorrupt, match=words):
        read({**told.files, "main": told.main + line})


@pytest.mark.rule("ST-15")
async def test_what_a_file_was_written_with_as_a_whole_is_never_taken_for_a_torn_end(tmp_path: Path):
    told = await story(tmp_path, LAST["rows"])
    storage = await opened(tmp_path / "copy")
    await storage.restore(told.after)
    files = files_of(tmp_path / "copy")
    await storage.close()
    assert (read(files).snapshot_bytes, read(files).is_sealed, told.is_after(read(files))) == (len(files["main"]), True, True)
    for end in range(len(files["main"])):
        with pytest.raises(StoreCorrupt):
            read({**files, "main": files["main"][:end]})
    lines = files["main"].splitlines(keepends=True)
    for index in range(len(lines)):
        with pytest.raises(StoreCorrupt):
            read({**files, "main": b"".join(lines[:index] + lines[index + 1 :])})


@pytest.mark.rule("ST-15", "ST-10")
async def test_a_document_that_may_be_looked_back_on_needs_its_first_line(tmp_path: Path):
    folder = tmp_path / "data" / "session.jsonl"
    storage = await opened(folder)
    await storage.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {"n": 0}, history="rewindable")]))
    await storage.commit(batch(3, documents=[base(2, {"n": 1}, history="rewindable")]))
    await storage.close()
    files = files_of(folder)
    with pytest.raises(StoreCorrupt, match=r"doc-2\.jsonl line 1: what came before it is missing"):
        read({**files, "doc-2": files["doc-2"].splitlines(keepends=True)[1]})


@pytest.mark.rule("ST-16")
async def test_a_closing_line_torn_at_any_byte_changes_nothing(tmp_path: Path):
    told = await story(tmp_path, LAST["rows"])
    growth = Growth(read(told.files).main)
    growth.add(ClosedLine(), 3)
    for end in range(len(growth.data) + 1):
        found = read({**told.files, "main": told.main + bytes(growth.data[:end])})
        assert (told.is_after(found), found.is_sealed) == (True, end == len(growth.data))


@pytest.mark.rule("ST-15", "FB-10")
@pytest.mark.parametrize(
    ("table", "row_seq", "sidecar_seq", "names_it", "words"),
    [
        ("document", 1, 1, True, None),
        ("document", 2, 1, True, "commit 1 holds a row of commit 2"),
        ("document", 0, 1, True, "commit 1 holds a row of commit 0"),
        ("document", 1, 2, True, r"doc-2\.jsonl line 1: it belongs to a later commit"),
        ("document", 1, 1, False, r"doc-2\.jsonl: no stored commit names it"),
        ("conversation", 1, 1, True, r"doc-2\.jsonl: its document is not there"),
        ("task", 1, 1, True, "task 2 is no record"),
    ],
)
def test_valid_lines_that_contradict_each_other_are_refused(table: Any, row_seq: int, sidecar_seq: int, names_it: bool, words: str | None):
    """What no version of the program writes: the checksums are right, and the store is still not taken."""
    texts = {"document": codec.encode(StoredDocument(id=2, address=address(), version=1, history="latest"))}
    main, sidecar = main_of(Contents(), {}), Growth()
    sidecar.add(RevisionLine(id=2, record=Raw(b'{"type":"base","version":1,"value":{}}'), whole=True), sidecar_seq, whole=True)
    main.add(RowLine(table=table, id=2, record=Raw(texts.get(table, codec.encode(conversation(2))).encode())), row_seq)
    main.add(CommitLine(next_id=3, at_ms=1, sidecars={"doc-2": sidecar.tail.sum} if names_it else {}), 1)
    files = {"main": bytes(main.data), "doc-2": bytes(sidecar.data)}
    if words is None:
        assert read(files).contents.counters().next_seq == 2
    else:
        with pytest.raises(StoreCorrupt, match=words):
            read(files)


# ------------------------------------------------------------------------------------------------------- an end that is gone


async def many_commits(tmp_path: Path, *, is_closed: bool) -> Path:
    """A store of ten commits, each with a line in a sidecar and a row, as it was killed or closed."""
    folder = tmp_path / "data" / "session.jsonl"
    storage = await opened(folder)
    await storage.commit(batch(4, conversations=[conversation(1)], entries=[entry(2)], documents=[base(3, {"a": 0}, history="rewindable")]))
    for number in range(4, 13):
        await storage.commit(batch(number + 1, entries=[entry(number)], documents=[DocumentDelta(document_id=3, ops=[["s", ["a"], number]])]))
    if is_closed:
        await storage.close()
    killed = kept_as_killed(folder)
    await storage.close()
    return killed


@pytest.mark.rule("PR-12", "ST-15", "ST-16")
async def test_an_end_of_several_commits_that_is_gone_without_a_trace_is_missed_by_what_was_written_after_it(tmp_path: Path):
    folder = await many_commits(tmp_path, is_closed=False)
    main = folder / "main.jsonl"
    ends = [line.end for line in chain(main.read_bytes()) if isinstance(decoded(line.body), CommitLine)]
    whole = main.read_bytes()
    for commits in range(2, 11):
        for tail in (b"", bytes(4096), b"\n"):
            main.write_bytes(whole[: ends[commits]] + tail)
            before = contents(folder)
            if commits >= 9:  # the last one may have been under way: nothing can tell
                assert (await read_all(folder)).counters.next_seq == commits + 1
            else:
                with pytest.raises(StoreCorrupt, match=f"it ends with commit {commits}, and line .* of doc-3.jsonl was written after commit"):
                    await read_all(folder)
            assert contents(folder) == before


@pytest.mark.rule("PR-12", "ST-15")
async def test_a_store_that_was_closed_misses_whatever_is_gone_from_its_end(tmp_path: Path):
    folder = await many_commits(tmp_path, is_closed=True)
    main, sidecar = folder / "main.jsonl", folder / "doc-3.jsonl"
    whole = main.read_bytes()
    ends = [line.end for line in chain(whole) if isinstance(decoded(line.body), CommitLine)]
    sidecar.write_bytes(b"".join(sidecar.read_bytes().splitlines(keepends=True)[: len(ends) - 2]))
    main.write_bytes(whole[: ends[-2]])
    before = contents(folder)
    with pytest.raises(StoreCorrupt, match=r"main\.jsonl line .*: it ends with commit 9, and there was a commit 10"):
        await opened(folder)
    assert contents(folder) == before


@pytest.mark.rule("PR-12")
@pytest.mark.parametrize("note", [b"", b"no line", framed(b'{"type":"closed"}', seq=3, prev="0" * 32)[0]])
async def test_a_note_of_closing_that_is_damaged_or_old_stands_in_nobodys_way(tmp_path: Path, note: bytes):
    folder = await many_commits(tmp_path, is_closed=True)
    (folder / "closed").write_bytes(note)
    storage = await opened(folder)
    assert (await storage.metadata()).next_seq == 11
    await storage.close()
    assert line_at((folder / "closed").read_bytes(), 0) is not None


async def read_all(folder: Path) -> Dump:
    storage = await opened(folder, read_only=True)
    try:
        return await storage.export()
    finally:
        await storage.close()
