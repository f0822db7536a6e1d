"""Files as of an entry: what tools changed is kept, shown, taken back, and that taken back again (rule TU-18). Real files, real commands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from pi_durable_tui.clock import ManualClock, SystemClock
from pi_durable_tui.errors import NotFound
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.records.messages import ToolResultMessage
from pi_durable_tui.records.submission import Done
from pi_durable_tui.tools.catalog import all_tools
from pi_durable_tui.tools.environment import LocalEnvironment
from pi_durable_tui.tools.history import scan as scanning
from pi_durable_tui.tools.history.contents import Contents, content_name
from pi_durable_tui.tools.history.difference import Differences, file_differences
from pi_durable_tui.tools.history.history import FileHistory, Plan
from pi_durable_tui.tools.history.log import FILES, LOG_CHANGES, FileChange, FileLog, appended, log_of, since, targets
from pi_durable_tui.tools.history.recorder import FileRecorder
from tests.support.harness_rig import Rig
from tests.support.scripted_model import call, say, texts


@dataclass
class Place:
    """A harness with the real tools over a folder, and the history of its files."""

    rig: Rig
    folder: Path
    state: Path
    environments: dict[int, LocalEnvironment]
    history: FileHistory | None = None

    def environment(self, conversation_id: int, _agent: Agent) -> LocalEnvironment:
        if conversation_id not in self.environments:
            self.environments[conversation_id] = LocalEnvironment(str(self.folder), self.state / str(conversation_id), SystemClock())
        return self.environments[conversation_id]

    def new_recorder(self) -> FileRecorder:
        reading = frozenset(tool.name for tool in all_tools() if tool.access == "read")
        return FileRecorder(
            root=str(self.folder),
            folder=self.state / "contents",
            clock=SystemClock(),
            reading=reading,
            resolve=lambda conversation_id, path: self.environment(conversation_id, Agent()).resolve(path),
        )

    async def start(self) -> Conversation:
        recorder = self.new_recorder()
        self.rig.extensions = (recorder.extension(),)
        chat = await self.rig.start(agent=Agent(model="test/model", approval="all"))
        self.history = FileHistory(self.rig.harness.session, recorder)
        return chat

    async def restart(self, conversation_id: int) -> Conversation:
        """The process died and another one goes on."""
        await self.rig.kill()
        recorder = self.new_recorder()
        self.rig.extensions = (recorder.extension(),)
        harness = await self.rig.open()
        self.history = FileHistory(harness.session, recorder)
        return await harness.conversation(conversation_id)

    async def run(self, chat: Conversation, *calls: tuple[str, dict]) -> int:
        """One input that makes the calls, one after another; the id of its entry."""
        self.rig.model.then(*(call(each) for each in calls), say("done"))
        submission = await chat.submit("go")
        settled = await chat.settled(submission.id)
        assert isinstance(settled.state, Done)
        return settled.state.entry_id

    async def plan(self, chat: Conversation, entry_id: int) -> Plan:
        return await self.history.plan(await self.history.changed_since(chat.id, entry_id))

    async def take_back(self, chat: Conversation, entry_id: int) -> list[str]:
        """Restore to an entry; the names that changed."""
        restored = await self.history.restore(chat.id, await self.plan(chat, entry_id))
        assert restored.failed == ()
        return [Path(path).name for path in restored.paths]

    def files(self) -> dict[str, str]:
        return {str(path.relative_to(self.folder)): path.read_text() for path in sorted(self.folder.rglob("*")) if path.is_file()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    folder, state = tmp_path / "project", tmp_path / "state"
    folder.mkdir()
    made = Place(Rig(tmp_path, "memory", tools=all_tools()), folder.resolve(), state, {})
    made.rig.place = made.environment
    return made


def bash(command: str) -> tuple[str, dict]:
    return ("bash", {"command": command})


@pytest.mark.rule("TU-18")
async def test_what_tools_and_commands_changed_is_previewed_taken_back_and_brought_again(place: Place):
    (place.folder / "a.txt").write_text("one\n")
    (place.folder / "old.sh").write_text("#!/bin/sh\n")
    (place.folder / "old.sh").chmod(0o750)
    before = place.files()
    chat = await place.start()
    entry = await place.run(
        chat,
        ("read", {"path": "a.txt"}),
        ("edit", {"path": "a.txt", "edits": [{"old": "one", "new": "two"}]}),
        ("write", {"path": "new/b.txt", "content": "b\n"}),
        bash("rm old.sh; echo made > c.txt; echo three >> a.txt"),
    )
    after = place.files()
    assert after == {"a.txt": "two\nthree\n", "c.txt": "made\n", "new/b.txt": "b\n"}

    plan = await place.plan(chat, entry)
    assert [(Path(step.path).name, step.data) for step in plan.steps] == [("a.txt", b"one\n"), ("c.txt", None), ("b.txt", None), ("old.sh", b"#!/bin/sh\n")]
    assert plan.steps[0].diff.text.splitlines()[1:] == ["-two", "-three", "+one"]
    assert (plan.impossible, plan.is_whole) == ((), True)
    assert place.files() == after  # a plan does nothing

    restored = await place.history.restore(chat.id, plan)
    assert (len(restored.paths), restored.failed) == (4, ())
    assert place.files() == before
    assert (place.folder / "old.sh").stat().st_mode & 0o777 == 0o750
    assert (await place.plan(chat, entry)).steps == ()

    await place.history.restore(chat.id, await place.history.plan_undo(chat.id))
    assert place.files() == after
    await place.rig.close()


@pytest.mark.rule("TU-18", "CASE-C6")
@pytest.mark.parametrize("is_killed", [False, True])
async def test_the_model_is_told_once_that_files_changed_under_it_and_cannot_write_over_them_unread(place: Place, is_killed: bool):
    (place.folder / "a.txt").write_text("one\n")
    chat = await place.start()
    edit = ("edit", {"path": "a.txt", "edits": [{"old": "one", "new": "two"}]})
    entry = await place.run(chat, ("read", {"path": "a.txt"}), edit)
    await place.take_back(chat, entry)
    if is_killed:
        chat = await place.restart(chat.id)
    await place.run(chat, ("write", {"path": "a.txt", "content": "three\n"}), ("read", {"path": "a.txt"}), edit)

    told = f"[The user has set {place.folder}/a.txt back to an earlier state, or forward again. Read a file again before you change it.]"
    users = [text for role, text in texts(place.rig.model.requests[-1]) if role == "user"]
    assert [text.count(told) for text in users] == [0, 1]
    refused, _, done = [entry.message for entry in await place.rig.entries(chat.id) if isinstance(entry.message, ToolResultMessage)][-3:]
    assert (refused.is_error, done.is_error) == (True, False)
    assert place.files() == {"a.txt": "two\n"}
    await place.rig.close()


@pytest.mark.rule("TU-18", "TO-10")
async def test_what_a_person_changes_while_a_command_runs_in_the_background_stays(place: Place):
    chat = await place.start()
    entry = await place.run(chat, ("bash", {"command": "sleep 300", "background": True}), bash("echo made > a"))
    (place.folder / "mine").write_text("by a person\n")
    await place.run(chat, bash("echo 2 > b"))
    assert await place.take_back(chat, entry) == ["a", "b"]
    assert place.files() == {"mine": "by a person\n"}
    await place.rig.close()


@pytest.mark.rule("TU-18")
async def test_only_what_came_after_the_entry_is_taken_back(place: Place):
    chat = await place.start()
    first = await place.run(chat, bash("echo 1 > a; echo 1 > b"))
    second = await place.run(chat, bash("echo 2 > a"), bash("echo 3 > a"))
    assert await place.take_back(chat, second) == ["a"]
    assert place.files() == {"a": "1\n", "b": "1\n"}
    assert await place.take_back(chat, first) == ["a", "b"]
    assert place.files() == {}
    with pytest.raises(NotFound):
        await place.history.changed_since(chat.id, 9_999)
    await place.rig.close()


@pytest.mark.rule("TU-18")
async def test_what_a_person_changes_between_calls_is_no_call_s_and_stays(place: Place):
    (place.folder / "mine").write_text("0\n")
    chat = await place.start()
    first = await place.run(chat, bash("echo agent > a"))
    (place.folder / "mine").write_text("I was here\n")
    (place.folder / "a").write_text("edited by hand\n")
    second = await place.run(chat, bash("echo agent again > a"))
    assert await place.take_back(chat, second) == ["a"]
    assert place.files() == {"a": "edited by hand\n", "mine": "I was here\n"}
    assert await place.take_back(chat, first) == ["a"]
    assert place.files() == {"mine": "I was here\n"}
    await place.rig.close()


@pytest.mark.rule("TU-18")
async def test_a_file_that_was_changed_after_the_preview_is_left_alone_and_one_behind_a_link_is_not_touched(place: Place, tmp_path: Path):
    chat = await place.start()
    entry = await place.run(chat, bash("mkdir d; echo 1 > a; echo 1 > d/b"))
    plan = await place.plan(chat, entry)
    (place.folder / "a").write_text("later\n")
    (place.folder / "d").rename(tmp_path / "elsewhere")
    (place.folder / "d").symlink_to(tmp_path / "elsewhere")
    restored = await place.history.restore(chat.id, plan)
    assert restored.paths == ()
    assert [Path(path).name for path, _ in restored.failed] == ["a", "b"]
    assert (place.folder / "a").read_text() == "later\n"
    assert (tmp_path / "elsewhere" / "b").read_text() == "1\n"
    assert (await place.plan(chat, entry)).impossible == ((str(place.folder / "d" / "b"), "A link stands in its place or in its way now."),)
    await place.rig.close()


@pytest.mark.rule("TU-18")
async def test_what_a_killed_call_did_can_be_taken_back_after_the_restart(place: Place):
    (place.folder / "a").write_text("0\n")
    chat = await place.start()
    entry = await place.run(chat, bash("true"))
    place.rig.model.then(call(bash("echo half > a; sleep 30")))
    await chat.submit("go")
    while (place.folder / "a").read_text() != "half\n":
        await SystemClock().sleep_ms(10)
    chat = await place.restart(chat.id)
    assert await place.take_back(chat, entry) == ["a"]
    assert place.files() == {"a": "0\n"}
    await place.rig.close()


@pytest.mark.rule("TU-18")
async def test_what_a_stopped_call_did_can_be_taken_back(place: Place):
    (place.folder / "a").write_text("0\n")
    chat = await place.start()
    entry = await place.run(chat, bash("true"))
    place.rig.model.then(call(bash("echo half > a; sleep 30")))
    await chat.submit("go")
    while (place.folder / "a").read_text() != "half\n":
        await SystemClock().sleep_ms(10)
    await chat.abort()
    (place.folder / "mine").write_text("later\n")
    assert await place.take_back(chat, entry) == ["a"]
    assert place.files() == {"a": "0\n", "mine": "later\n"}
    await place.rig.close()


@pytest.mark.rule("TU-18")
async def test_what_a_subagent_changed_belongs_to_the_conversation_that_asked_it(place: Place):
    chat = await place.start()
    place.rig.model.then(call(("subagent", {"name": "helper", "prompt": "work"})), call(bash("echo 1 > a")), say("I did"), say("done"))
    submission = await chat.submit("go")
    entry = (await chat.settled(submission.id)).state.entry_id
    assert await place.take_back(chat, entry) == ["a"]
    assert place.files() == {}
    await place.rig.close()


@pytest.mark.rule("TU-18")
async def test_a_fork_takes_the_log_along_as_of_its_entry(place: Place):
    chat = await place.start()
    await place.run(chat, bash("echo 1 > a"))
    second = await place.run(chat, bash("echo 2 > a"))
    fork = await place.rig.harness.fork(chat.id, second)
    log = log_of(await place.rig.harness.session.snapshot(FILES, fork.id))
    assert [Path(change.path).name for change in log.changes] == ["a"]
    await place.rig.close()


@pytest.mark.rule("TU-18", "SA-16")
async def test_contents_are_private_and_lie_outside_of_the_project_and_ignored_files_are_not_kept(place: Place):
    (place.folder / ".gitignore").write_text("secret\n")
    (place.folder / "secret").write_text("s\n")
    (place.folder / "a").write_text("kept\n")
    chat = await place.start()
    entry = await place.run(chat, bash("echo x > secret; mkdir node_modules; echo made > node_modules/m; rm a"))
    kept = [path for path in (place.state / "contents").rglob("*") if path.is_file() and path.name != "notes"]
    assert sorted(path.read_text() for path in kept) == ["kept\n", "secret\n"]  # the second is the ignore file
    assert {path.stat().st_mode & 0o777 for path in (place.state / "contents").rglob("*") if path.is_file()} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (place.state / "contents").rglob("*") if path.is_dir()} == {0o700}
    assert await place.take_back(chat, entry) == ["a"]
    assert (place.folder / "secret").read_text() == "x\n"
    assert (place.folder / "node_modules" / "m").exists()
    await place.rig.close()


@pytest.mark.rule("TU-18")
async def test_a_file_too_large_to_be_kept_is_said_to_be_impossible(place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scanning, "FILE_BYTES", 10)
    (place.folder / "big").write_text("x" * 20)
    chat = await place.start()
    entry = await place.run(chat, bash("echo > big"))
    plan = await place.plan(chat, entry)
    assert plan.steps == ()
    assert plan.impossible == ((str(place.folder / "big"), "What it held before is not kept: it was too large, or not seen in time."),)
    await place.rig.close()


@pytest.mark.rule("TU-18")
def test_a_file_that_nobody_touched_is_no_difference_however_new_or_large_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scanning, "FILE_BYTES", 10)
    (tmp_path / "small").write_text("x")
    (tmp_path / "large").write_text("x" * 20)
    scan = scanning.Scan(str(tmp_path), Contents(tmp_path.parent / "kept"), ManualClock())  # whose now is long ago: every file counts as just changed
    assert [scan.look() for _ in range(3)] == [[], [], []]
    (tmp_path / "small").write_text("y")
    (tmp_path / "large").write_text("y" * 20)
    found = scan.look()
    assert [(Path(each.path).name, each.before) for each in found] == [("large", "?"), ("small", content_name(b"x"))]


@pytest.mark.rule("TU-18")
async def test_of_a_tree_with_too_many_files_it_is_said_that_not_all_are_known(place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scanning, "TREE_FILES", 3)
    for name in "abcdef":
        (place.folder / name).write_text(name)
    chat = await place.start()
    entry = await place.run(chat, bash("echo 1 > a; echo 1 > f; echo 1 > 0new"))
    plan = await place.plan(chat, entry)
    assert ([Path(step.path).name for step in plan.steps], plan.is_whole) == (["a"], False)
    await place.rig.close()


@pytest.mark.rule("TU-18")
def test_kept_contents_are_bounded_the_longest_unused_go_first_and_damage_is_noticed(tmp_path: Path):
    contents = Contents(tmp_path / "c", limit_bytes=100)
    names = [contents.keep(bytes([letter]) * 30) for letter in b"abc"]
    assert [contents.get(name or "") for name in names] == [b"a" * 30, b"b" * 30, b"c" * 30]
    newest = contents.keep(b"d" * 30)
    assert contents.get(names[0] or "") is None
    assert contents.get(newest or "") == b"d" * 30
    (tmp_path / "c" / newest[:2] / newest).write_bytes(b"damaged")
    assert contents.get(newest) is None


def change(path: str, at_ms: int, before: str | None = None) -> FileChange:
    return FileChange(path=path, before=before, after="x", at_ms=at_ms, group="task 1")


@pytest.mark.rule("TU-18")
def test_the_log_grows_at_its_end_and_forgets_its_beginning():
    value = {}
    for number in range(LOG_CHANGES + 3):
        value = appended([change("a", number)])(value) if number in {0, 1} else value
    value = appended([change("b", number) for number in range(LOG_CHANGES)])(value)
    log = log_of(value)
    assert (log.dropped, len(log.changes)) == (2, LOG_CHANGES)
    assert since(log, FileLog(dropped=0, changes=(change("a", 0), change("a", 1)))) == log.changes
    assert since(log, log) == ()
    assert since(log, FileLog()) == log.changes


@pytest.mark.rule("TU-18")
def test_taking_back_means_the_content_before_the_first_change():
    first, later = change("a", 1, "old"), change("a", 2, "newer")
    assert targets([first, later, change("b", 3)]) == {"a": first, "b": change("b", 3)}


def test_contents_are_named_by_what_they_hold():
    assert content_name(b"") == "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"


# ------------------------------------------------------------------------------------------------------- what it came to


def kept(folder: Path, *contents: bytes) -> tuple[Contents, list[str]]:
    contents_ = Contents(folder)
    names = [contents_.keep(content) for content in contents]
    assert None not in names
    return contents_, [name for name in names if name is not None]


@pytest.mark.rule("TU-18")
def test_what_became_of_files_is_told_from_before_the_first_change_to_after_the_last(tmp_path: Path) -> None:
    contents, (one, two, three, binary) = kept(tmp_path, b"one\n", b"two\n", b"three\n", b"\0\1\2")
    changes = [
        FileChange(path="/w/changed", before=one, after=two, at_ms=1, group="task 1"),
        FileChange(path="/w/there and back", before=one, after=two, at_ms=2, group="task 1"),
        FileChange(path="/w/new", before=None, after=one, at_ms=3, group="task 2"),
        FileChange(path="/w/changed", before=two, after=three, at_ms=4, group="task 2"),
        FileChange(path="/w/gone", before=one, after=None, at_ms=5, group="task 2"),
        FileChange(path="/w/there and back", before=two, after=one, at_ms=6, group="restore 9"),
        FileChange(path="/w/picture", before=None, after=binary, at_ms=7, group="task 3"),
        FileChange(path="/w/large", before="?", after=one, at_ms=8, group="task 3"),
        FileChange(path="/w/swept", before="0" * 64, after=None, at_ms=9, group="task 3"),
    ]
    found = file_differences(changes, contents.get)
    assert [(each.path, each.remark, each.diff.added, each.diff.removed) for each in found] == [
        ("/w/changed", "", 1, 1),
        ("/w/gone", "removed", 0, 1),
        ("/w/large", "what it held is not kept", 0, 0),
        ("/w/new", "new", 1, 0),
        ("/w/picture", "new, no text", 0, 0),
        ("/w/swept", "removed, what it held is not kept", 0, 0),
    ]
    assert "-one\n+three" in found[0].diff.text


@pytest.mark.rule("TU-18")
async def test_differences_are_those_since_an_entry_or_since_the_beginning_also_when_files_are_changed_again(place: Place) -> None:
    chat = await place.start()
    first = await place.run(chat, ("write", {"path": "a.txt", "content": "one\n"}))
    second = await place.run(chat, ("bash", {"command": "printf 'two\\n' > a.txt; echo b > b.txt"}))
    (place.folder / "a.txt").write_text("a person's\n")
    assert place.history is not None

    def names(found: Differences) -> list[tuple[str, str]]:
        return [(Path(each.path).name, each.remark) for each in found.files]

    since_second = await place.history.differences(chat.id, second)
    assert names(since_second) == [("a.txt", ""), ("b.txt", "new")]
    assert "-one\n+two" in since_second.files[0].diff.text
    assert names(await place.history.differences(chat.id, first)) == [("a.txt", "new"), ("b.txt", "new")]
    assert names(await place.history.differences(chat.id, None)) == [("a.txt", "new"), ("b.txt", "new")]
    assert (since_second.is_whole, since_second.is_from_start) == (True, True)
    with pytest.raises(NotFound):
        await place.history.differences(chat.id, 9_999)
