"""Hooks that keep files before a tool may change them, and record what it changed, with its result (rule TU-18).

write and edit name their file; everything else that may change files is found by looking at the tree before and after. What a call
did that was killed or stopped is found at the next look, and recorded with the next result. What people change between calls is kept,
and belongs to no call; nor does what a command changes that goes on in the background, because nobody could tell it from what people do.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import msgspec

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.harness.extensions.hooks import HookedCall, Hooks
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.ports import ToolResult
from pi_durable_tui.tools.environment import in_thread
from pi_durable_tui.tools.history.contents import Contents
from pi_durable_tui.tools.history.log import FILES, FileChange, appended, stored_path
from pi_durable_tui.tools.history.scan import Difference, Scan, Seen

NAMED = frozenset({"write", "edit"})


class _Notes(msgspec.Struct, frozen=True):
    """What the next process must know: the last look, the calls that have not ended (task id to conversation id), what is not recorded yet."""

    seen: dict[str, Seen]
    is_whole: bool
    open_calls: dict[int, int]
    pending: dict[int, list[FileChange]]


class FileRecorder:
    """One for an open session; the hooks of all its conversations.

    Args:
        root: The working directory, links resolved.
        folder: Where contents are kept; private, and of this session alone.
        reading: The names of tools that change no files.
        resolve: (conversation id, path of a call) -> the absolute path it means; may raise EnvironmentFailure.
        keys: Files that hold one of them are not kept.
    """

    def __init__(self, *, root: str, folder: Path, clock: Clock, reading: frozenset[str], resolve: Callable[[int, str], str], keys: Iterable[str] = ()) -> None:
        self.contents = Contents(folder, keys=keys)
        self._clock = clock
        self._reading = reading
        self._resolve = resolve
        self._scan = Scan(root, self.contents, clock)
        self._open: dict[int, int] = {}
        self._pending: dict[int, list[FileChange]] = {}
        self._has_notes = False
        self._turn = threading.Lock()  # calls of one round look from several threads

    def extension(self) -> Extension:
        """The hooks, to be installed; and the document, so that forks take it along."""
        return Extension(name="files", hooks=Hooks(on_start=self._started, after_tool=self._ended, on_abort=self._stopped), documents=(FILES,))

    @property
    def is_whole(self) -> bool:
        """Whether the last look reached every file; else what commands did to the others is not known."""
        return self._scan.is_whole

    async def unrecorded(self, conversation_id: int) -> tuple[FileChange, ...]:
        """What calls did that were killed or stopped, and that no result has recorded yet."""
        return await in_thread(lambda: self._unrecorded(conversation_id))

    async def looked(self, paths: tuple[str, ...]) -> None:
        """These files were changed by a person on purpose: what they hold now is not a call's doing."""
        await in_thread(lambda: self._look(paths))

    async def recorded(self, conversation_id: int, changes: tuple[FileChange, ...]) -> None:
        """What `unrecorded` gave stands in the log now."""
        await in_thread(lambda: self._recorded(conversation_id, changes))

    def _recorded(self, conversation_id: int, changes: tuple[FileChange, ...]) -> None:
        with self._turn:
            left = [change for change in self._pending.pop(conversation_id, []) if change not in changes]
            self._pending |= {conversation_id: left} if left else {}
            self._save()

    def _is_passed_over(self, call: HookedCall) -> bool:
        return call.name in self._reading or call.in_background

    async def _started(self, call: HookedCall) -> None:
        if not self._is_passed_over(call):
            await in_thread(lambda: self._before(call))

    async def _ended(self, call: HookedCall, result: ToolResult) -> ToolResult | None:
        if self._is_passed_over(call):
            return None
        changes = await in_thread(lambda: self._after(call))
        return replace(result, documents=(*result.documents, (FILES, appended(changes)))) if changes else None

    async def _stopped(self, call: HookedCall) -> None:
        if not self._is_passed_over(call):
            await in_thread(lambda: self._leave(call))

    # ------------------------------------------------------------------------------------------------------ on a thread

    def _before(self, call: HookedCall) -> None:
        with self._turn:
            self._load()
            self._take_leftovers(self._scan.look(self._named(call), at_tree=call.name not in NAMED))
            self._open[call.task_id] = call.conversation_id
            self._save()

    def _after(self, call: HookedCall) -> tuple[FileChange, ...]:
        with self._turn:
            found = self._scan.look(self._named(call), at_tree=call.name not in NAMED)
            self._open.pop(call.task_id, None)
            self._save()
            return (*self._pending.pop(call.conversation_id, []), *(self._change(each, call.task_id) for each in found))

    def _leave(self, call: HookedCall) -> None:
        """A call was stopped: what it did is recorded with the next result."""
        with self._turn:
            self._take_leftovers(self._scan.look(self._named(call), at_tree=call.name not in NAMED))
            self._open.pop(call.task_id, None)
            self._save()

    def _unrecorded(self, conversation_id: int) -> tuple[FileChange, ...]:
        with self._turn:
            self._load()
            return tuple(self._pending.get(conversation_id, ()))

    def _look(self, paths: tuple[str, ...]) -> None:
        with self._turn:
            self._load()
            self._scan.look(paths, at_tree=False)
            self._save()

    def _take_leftovers(self, found: list[Difference]) -> None:
        """Differences that no call has told of: those of a call that did not end, if there is one, else a person's."""
        if found and self._open:
            task_id, conversation_id = max(self._open.items())
            self._pending.setdefault(conversation_id, []).extend(self._change(each, task_id) for each in found)

    def _change(self, each: Difference, task_id: int) -> FileChange:
        return FileChange(
            path=stored_path(each.path), before=each.before, after=each.after, at_ms=self._clock.now_ms(), group=f"task {task_id}", mode=each.mode
        )

    def _named(self, call: HookedCall) -> tuple[str, ...]:
        path = call.arguments.get("path")
        if call.name not in NAMED or not isinstance(path, str):
            return ()
        with contextlib.suppress(EnvironmentFailure, ValueError):
            return (os.path.realpath(self._resolve(call.conversation_id, path)),)
        return ()

    def _load(self) -> None:
        if self._has_notes:
            return
        self._has_notes = True
        data = self.contents.notes()
        if data is not None:
            with contextlib.suppress(msgspec.DecodeError, UnicodeEncodeError):
                notes = msgspec.msgpack.decode(data, type=_Notes)
                self._scan.seen = {os.fsdecode(bytes.fromhex(path)): seen for path, seen in notes.seen.items()}
                self._scan.is_whole = notes.is_whole
                self._open, self._pending = dict(notes.open_calls), dict(notes.pending)
        if self._open:  # a process died with them
            self._take_leftovers(self._scan.look())
            self._open.clear()
            self._save()

    def _save(self) -> None:
        seen = {os.fsencode(path).hex(): each for path, each in self._scan.seen.items()}
        self.contents.save_notes(msgspec.msgpack.encode(_Notes(seen=seen, is_whole=self._scan.is_whole, open_calls=self._open, pending=self._pending)))
