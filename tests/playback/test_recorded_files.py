"""The files that a recording takes along: as they were when the chat began, and a word about everything that is not so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pi_durable_tui.playback.recording.source import Source, Strand
from pi_durable_tui.playback.recording.workspace import MOST_FILES, Doors, OnDisk, Workspace, workspace_of
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.task import Completed, Task, Terminal
from pi_durable_tui.tools.history.log import NOT_KEPT, FileChange

ROOT = "/p"
BEGAN = 1_000


def _call(number: int, name: str, **arguments: str) -> Task:
    given: JsonObject = {"name": name, "callId": f"c{number}", "assistant": 1, "arguments": dict(arguments)}
    return Task(id=number, kind="pi.tool", conversation_id=1, input=given, state=Terminal(outcome=Completed()), created_at_ms=BEGAN)


def _change(path: str, before: str | None, at_ms: int = BEGAN + 1) -> FileChange:
    return FileChange(path=path, before=before, after="x", at_ms=at_ms, group="task 1")


def _source(*tasks: Task, changes: tuple[FileChange, ...] = (), forgotten: int = 0) -> Source:
    strand = Strand(conversation=Conversation(id=1, created_at_ms=BEGAN), name="", tasks=tasks, changes=changes, forgotten=forgotten)
    return Source(title="", line=(strand,), subagents=(), approval="all", model=None)


def _files(source: Source, disk: dict[str, str], *, kept: dict[str, bytes] | None = None, extent: str = "needed", at_ms: int = 0) -> Workspace:
    doors = Doors(
        kept=(kept or {}).get,
        on_disk=lambda path: OnDisk(disk[path].encode("utf-8", "surrogateescape"), at_ms) if path in disk else None,
        tree=lambda: disk,
    )
    clean: Callable[[str], str] = lambda text: text.replace("sk-secret", "[redacted]")  # noqa: E731 - a word beside its use
    return workspace_of(source, ROOT, extent, doors, clean)  # type: ignore[arg-type]


def test_files_that_calls_name_are_taken_and_no_others() -> None:
    disk = {f"/p/{name}": name for name in ("read.py", "named in.sh", "sub/word.txt", "other.py")}
    source = _source(
        _call(2, "read", path="read.py"), _call(3, "bash", command="sh 'named in.sh' < sub/word.txt; ls -l /etc ~/x"), _call(4, "read", path="/p/gone")
    )
    made = _files(source, disk)
    assert made.files == {name: name.encode() for name in ("read.py", "named in.sh", "sub/word.txt")}
    assert made.remarks == ["1 command(s) or searches may have looked at files that are not in it; --files all takes the whole directory."]


def test_a_changed_file_is_as_it_was_before_the_first_change_of_the_chat() -> None:
    changes = (_change("/p/a", "later", BEGAN + 5), _change("/p/a", "first"), _change("/p/a", "of an earlier chat", BEGAN - 1), _change("/p/new", None))
    made = _files(_source(changes=changes), {"/p/a": "now", "/p/new": "now"}, kept={"first": b"then", "later": b"between"})
    assert (made.files, made.remarks) == ({"a": b"then"}, [])


def test_what_is_not_kept_or_was_changed_by_others_is_said() -> None:
    source = _source(_call(2, "read", path="late"), changes=(_change("/p/gone", "swept"), _change("/p/large", NOT_KEPT)), forgotten=3)
    made = _files(source, {"/p/late": "now"}, at_ms=BEGAN + 1)
    assert made.files == {"late": b"now"}
    assert made.remarks == [
        "gone is missing: what it held when the chat began is not kept.",
        "large is missing: what it held when the chat began is not kept.",
        "late was changed since, by no call of the chat: it is taken as it is now.",
        "So many files were changed that the first changes are forgotten: some files are as they were later.",
    ]


@pytest.mark.rule("SA-17")
@pytest.mark.parametrize("name", [".env", ".env.local", "server.pem", "id_ed25519", "credentials.json", ".netrc", "prod-secrets.yaml"])
def test_files_that_hold_secrets_by_their_name_are_left_out_and_named(name: str) -> None:
    made = _files(_source(_call(2, "read", path=name)), {f"/p/{name}": "x"})
    assert (made.files, made.remarks) == ({}, [f"{name} is left out: files of that name hold secrets."])


@pytest.mark.rule("SA-17")
def test_a_key_in_a_file_is_taken_out_and_what_is_no_text_stays_as_it_is() -> None:
    made = _files(_source(_call(2, "read", path="a"), _call(3, "read", path="b")), {"/p/a": "k = sk-secret", "/p/b": "\udcffsk-secret"})
    assert made.files == {"a": b"k = [redacted]", "b": b"\xffsk-secret"}
    assert made.remarks == ["a held something that looks like a key; it is taken out."]


def test_a_file_outside_of_the_directory_is_named_and_left_out() -> None:
    made = _files(_source(_call(2, "read", path="../x"), _call(3, "read", path="/etc/hosts")), {"/x": "x", "/etc/hosts": "x"})
    assert (made.files, made.remarks) == (
        {},
        ["/etc/hosts lies outside of the directory and is left out.", "/x lies outside of the directory and is left out."],
    )


def test_all_files_or_none_can_be_wished_for_and_there_is_an_end_to_them() -> None:
    disk = {f"/p/{number:05}": "x" for number in range(MOST_FILES + 5)}
    assert len(_files(_source(_call(2, "bash", command="make")), {"/p/a": "x", "/p/b": "y"}, extent="all").files) == 2
    assert _files(_source(_call(2, "read", path="a")), {"/p/a": "x"}, extent="none") == Workspace(remarks=["No files are in it."])
    made = _files(_source(), disk, extent="all")
    assert (len(made.files), made.remarks) == (MOST_FILES, ["02000 and what follows it is left out: there are too many files, or too large ones."])
