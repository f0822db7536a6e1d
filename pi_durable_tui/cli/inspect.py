"""`pidurable inspect`: what lives in a session and why it waits (rule OB-5). Writes nothing, also beside a running program."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

import msgspec

from pi_durable_tui.cli.chats import choose, open_for_reading
from pi_durable_tui.cli.report import note
from pi_durable_tui.cli.setup import set_up
from pi_durable_tui.harness.observation.inspection import Inspection, TaskInfo
from pi_durable_tui.harness.opening import Recovery
from pi_durable_tui.records.codec import to_json
from pi_durable_tui.records.messages import Text
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.records.task import Sleeping
from pi_durable_tui.tui.safe_text import safe_json, safe_line, safe_text

_TEXT_CELLS = 60


def inspect_chat(chat_id: str | None, *, cwd: str | None, as_json: bool) -> int:
    """Print the live tasks and open submissions: of the chat of that id, or of the whole session that --continue takes."""
    asyncio.run(_inspect(chat_id, cwd=cwd, as_json=as_json))
    return 0


async def _inspect(chat_id: str | None, *, cwd: str | None, as_json: bool) -> None:
    setup = set_up(cwd, os.environ)
    found = await choose(setup, chat_id, note=note)
    harness = await open_for_reading(setup, found.session)
    try:
        everything = await harness.inspect()
    finally:
        await harness.close()
    only = found.chat.conversation_id if chat_id is not None else None
    inspection = Inspection(
        tasks=tuple(info for info in everything.tasks if only in (None, info.task.conversation_id)),
        submissions=tuple(item for item in everything.submissions if only in (None, item.conversation_id)),
    )
    print(as_json_text(inspection, harness.recovery) if as_json else safe_text(as_text(inspection, harness.recovery)))


def as_text(inspection: Inspection, recovery: Recovery, *, zone: tzinfo | None = None) -> str:
    """For people; times of day are those of `zone`, None: of this machine. PURE."""
    lines = [f"{len(inspection.tasks)} live task{_s(inspection.tasks)}, {len(inspection.submissions)} open submission{_s(inspection.submissions)}"]
    doubted = {task.id for task in recovery.in_doubt}
    lines += [
        f"  task {info.task.id}  {info.task.kind}  {_where(info, zone)}" + ("  in doubt if its program is dead" if info.task.id in doubted else "")
        for info in inspection.tasks
    ]
    lines += [f"  submission {item.id}  {item.mode}  {item.status}  {_words(item)}" for item in inspection.submissions]
    if recovery.was_killed:
        lines.append("The program that wrote this was killed, or is still running; pidurable --continue goes on from here.")
    return "\n".join(lines)


def as_json_text(inspection: Inspection, recovery: Recovery) -> str:
    """For programs: one JSON object. PURE."""
    value = {
        "tasks": [{**_object(info), "reason": info.reason} for info in inspection.tasks],
        "submissions": [to_json(item) for item in inspection.submissions],
        "interrupted": [task.id for task in recovery.interrupted],
        "inDoubt": [task.id for task in recovery.in_doubt],
    }
    return safe_json(msgspec.json.encode(value))


def _object(info: TaskInfo) -> dict[str, object]:
    return msgspec.convert(to_json(info.task), dict[str, object])


def _where(info: TaskInfo, zone: tzinfo | None) -> str:
    task = info.task
    phase = f"/{task.checkpoint.get('phase')}" if task.checkpoint else ""
    restarts = f"  restarts {task.restarts}" if task.restarts else ""
    return f"{task.status}{phase}{restarts}  {_reason(info, zone)}"


def _reason(info: TaskInfo, zone: tzinfo | None) -> str:
    match info.task.state:
        case Sleeping(until=int() as until_ms):
            with contextlib.suppress(OverflowError, ValueError):  # a time that no calendar has
                return f"sleeping until {datetime.fromtimestamp(until_ms / 1000, tz=UTC).astimezone(zone).strftime('%Y-%m-%d %H:%M:%S')}"
        case _:
            pass
    return info.reason


def _words(submission: Submission) -> str:
    return safe_line(" ".join(part.text for part in submission.content if isinstance(part, Text)), max_cells=_TEXT_CELLS)


def _s(items: Sequence[object]) -> str:
    return "" if len(items) == 1 else "s"
