"""What was changed since an entry, what taking it back would do, doing it, and taking that back again (rule TU-18)."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pi_durable_tui.errors import EnvironmentFailure, NotFound
from pi_durable_tui.harness.kinds import SUBAGENT
from pi_durable_tui.harness.subagent.checkpoint import SubagentInput
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.entry import NOTICE, Entry
from pi_durable_tui.records.json import clean_text
from pi_durable_tui.records.messages import Text, UserMessage
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.tools import files
from pi_durable_tui.tools.environment import in_thread
from pi_durable_tui.tools.history.contents import content_name
from pi_durable_tui.tools.history.difference import NO_DIFF, Differences, file_differences
from pi_durable_tui.tools.history.log import FILES, NOT_KEPT, FileChange, appended, log_of, newest_restore, real_path, since, stored_path, targets
from pi_durable_tui.tools.history.recorder import FileRecorder
from pi_durable_tui.tools.text import text_file
from pi_durable_tui.tools.text.diff import Diff, unified

PAGE = 1_000
TOLD_PATHS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One file that would be taken back.

    Attributes:
        path: Absolute.
        data: What it shall hold; None: it shall not be there.
        now: The name of what it holds now; None: it is not there.
        diff: From now to then; empty for files that are no text.
    """

    path: str
    data: bytes | None
    now: str | None
    mode: int
    diff: Diff


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What taking back would do. Nothing was done yet.

    Attributes:
        steps: The files that would change, by path.
        impossible: (path, why) of files that were changed and cannot be taken back.
        is_whole: False: the directory is too large to be looked at whole, so commands may have changed more than is known.
    """

    steps: tuple[Step, ...]
    impossible: tuple[tuple[str, str], ...]
    is_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What was taken back, and (path, why) of what was not: that file is as it was."""

    paths: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]


class FileHistory:
    """Over an open session and its recorder."""

    def __init__(self, session: Session, recorder: FileRecorder) -> None:
        self._session = session
        self._recorder = recorder

    async def changed_since(self, conversation_id: int, entry_id: int | None) -> tuple[FileChange, ...]:
        """Every change that the conversation and its subagents made after an entry, oldest first; None: from the beginning.

        Raises:
            NotFound: The conversation does not see that entry.
        """
        entry = await self._session.storage.entry(entry_id) if entry_id is not None else None
        if entry is None and entry_id is not None:
            raise NotFound(f"entry {entry_id}", where=f"conversation {conversation_id}")
        then = log_of(await self._session.snapshot_as_of(FILES, conversation_id, entry_id) if entry_id is not None else None)
        own = since(log_of(await self._session.snapshot(FILES, conversation_id)), then)
        left = await self._recorder.unrecorded(conversation_id)
        from_ms = entry.entry.at_ms if entry is not None else 0
        below = [[change for change in log if change.at_ms >= from_ms] for log in await self._below(conversation_id)]
        # A clock that was set back cannot bring a log out of its own order.
        return tuple(heapq.merge(own, left, *below, key=lambda change: change.at_ms))

    async def differences(self, conversation_id: int, entry_id: int | None) -> Differences:
        """What became of files since an entry, from what was kept of them; None: since the beginning.

        Raises:
            NotFound: The conversation does not see that entry.
        """
        changes = await self.changed_since(conversation_id, entry_id)
        files = await in_thread(lambda: file_differences(changes, self._recorder.contents.get))
        dropped = log_of(await self._session.snapshot(FILES, conversation_id)).dropped
        is_from_start = entry_id is not None or not dropped
        return Differences(files=files, is_whole=self._recorder.is_whole, is_from_start=is_from_start)

    async def plan(self, changes: Iterable[FileChange]) -> Plan:
        """What taking these changes back would do, as files are now."""
        wanted = targets(changes)
        return await in_thread(lambda: self._plan(wanted))

    async def plan_back(self, conversation_id: int, entry_id: int) -> Plan:
        """What taking back everything since an entry would do.

        Raises:
            NotFound: The conversation does not see that entry.
        """
        return await self.plan(await self.changed_since(conversation_id, entry_id))

    async def plan_undo(self, conversation_id: int) -> Plan:
        """What taking back the last restore would do; no steps when there is none, or its files have been changed since."""
        log = log_of(await self._session.snapshot(FILES, conversation_id))
        return await self.plan(newest_restore(log))

    async def restore(self, conversation_id: int, plan: Plan) -> Restored:
        """Carry a plan out. Each file is changed only if it still holds what the plan saw; what it held is kept, so that this can be undone.

        The changes are recorded in the conversation, and with them a notice that the model reads with its next request: the files changed
        under it. A kill in the middle leaves each file as it was or as it shall be.
        """
        left = await self._recorder.unrecorded(conversation_id)
        await self._append(conversation_id, left)
        await self._recorder.recorded(conversation_id, left)
        group, at_ms = await self._new_group(conversation_id)
        done, failed = await in_thread(lambda: self._carry_out(plan, group, at_ms))
        await self._append(conversation_id, done, is_told=True)
        await self._recorder.looked(tuple(real_path(change.path) for change in done))
        return Restored(paths=tuple(real_path(change.path) for change in done), failed=failed)

    async def _below(self, conversation_id: int) -> list[tuple[FileChange, ...]]:
        """The logs of its subagents, and of theirs."""
        found: list[tuple[FileChange, ...]] = []
        cursor: int | None = None
        while True:
            page = await self._session.storage.tasks(kind=SUBAGENT, conversation_id=conversation_id, cursor=cursor, limit=PAGE)
            for task in page.items:
                child = from_json(task.input, SubagentInput).conversation
                found += [log_of(await self._session.snapshot(FILES, child)).changes, await self._recorder.unrecorded(child)]
                found += await self._below(child)
            if page.next is None:
                return found
            cursor = page.next

    async def _append(self, conversation_id: int, changes: tuple[FileChange, ...], *, is_told: bool = False) -> None:
        async def write(transaction: Transaction) -> None:
            draft = await transaction.document(FILES, conversation_id)
            draft.value = appended(changes)(draft.value)
            if is_told:
                message = UserMessage(content=(Text(text=_told([real_path(change.path) for change in changes])),))
                entry = Entry(id=transaction.new_id(), conversation_id=conversation_id, kind=NOTICE, at_ms=transaction.now_ms, message=message)
                transaction.insert_entry(entry)

        if changes:
            await self._session.commit(write)

    async def _new_group(self, conversation_id: int) -> tuple[str, int]:
        async def write(transaction: Transaction) -> tuple[str, int]:
            await transaction.document(FILES, conversation_id)
            return f"restore {transaction.new_id()}", transaction.now_ms

        return await self._session.commit(write)

    # ------------------------------------------------------------------------------------------------------ on a thread

    def _plan(self, wanted: dict[str, FileChange]) -> Plan:
        steps: list[Step] = []
        impossible: list[tuple[str, str]] = []
        for path, change in sorted((real_path(stored), change) for stored, change in wanted.items()):
            try:
                step = self._step(path, change)
            except EnvironmentFailure as error:
                impossible.append((path, error.message))
                continue
            if step is not None:
                steps.append(step)
        return Plan(steps=tuple(steps), impossible=tuple(impossible), is_whole=self._recorder.is_whole)

    def _step(self, path: str, change: FileChange) -> Step | None:
        """What to do with one file; None when it is already as it was."""
        if change.before == NOT_KEPT:
            raise EnvironmentFailure("What it held before is not kept: it was too large, or not seen in time.")
        if os.path.realpath(path) != path:
            raise EnvironmentFailure("A link stands in its place or in its way now.")
        now = files.read_whole(path) if files.exists(path) else None
        name = None if now is None else content_name(now)
        if name == change.before:
            return None
        data = None if change.before is None else self._recorder.contents.get(change.before)
        if change.before is not None and data is None:
            raise EnvironmentFailure("What it held before is not kept any more.")
        return Step(path=path, data=data, now=name, mode=change.mode, diff=_diff(now or b"", data or b""))

    def _carry_out(self, plan: Plan, group: str, at_ms: int) -> tuple[tuple[FileChange, ...], tuple[tuple[str, str], ...]]:
        done: list[FileChange] = []
        failed: list[tuple[str, str]] = []
        for step in plan.steps:
            try:
                mode = self._take_back(step, group.replace(" ", "-"))
            except EnvironmentFailure as error:
                failed.append((step.path, error.message))
                continue
            after = None if step.data is None else content_name(step.data)
            done.append(FileChange(path=stored_path(step.path), before=step.now, after=after, at_ms=at_ms, group=group, mode=mode))
        return tuple(done), tuple(failed)

    def _take_back(self, step: Step, token: str) -> int:
        """One file; the permission bits it had."""
        now = files.read_whole(step.path) if files.exists(step.path) else None
        if os.path.realpath(step.path) != step.path or (None if now is None else content_name(now)) != step.now:
            raise EnvironmentFailure("It was changed after the preview, and is left as it is.")
        if now is not None and self._recorder.contents.keep(now) is None:
            raise EnvironmentFailure("What it holds now could not be kept, so it is left as it is.")
        mode = step.mode if now is None else Path(step.path).stat().st_mode & 0o7777
        if step.data is None:
            files.remove(step.path)
        else:
            files.replace(step.path, step.data, expected=None if now is None else files.digest(now), token=token)
            if now is None:
                files.set_mode(step.path, step.mode)
        return mode


def _told(paths: list[str]) -> str:
    """What the model reads about files that a person has set back. PURE."""
    more = f" and {len(paths) - TOLD_PATHS} more" if len(paths) > TOLD_PATHS else ""
    names = clean_text(", ".join(paths[:TOLD_PATHS]))
    return f"[The user has set {names}{more} back to an earlier state, or forward again. Read a file again before you change it.]"


def _diff(before: bytes, after: bytes) -> Diff:
    if text_file.kind_of_binary(before) or text_file.kind_of_binary(after):
        return NO_DIFF
    return unified(text_file.decode(before).text, text_file.decode(after).text)
