"""What stands in a transcript in the place of entries that are gone. PURE.

Where something sound says what an entry was, it is written again: a person's message from its submission, a call from its result. A call without a
result gets one that says what is known of its end. Whatever else is gone leaves a mark where it stood. All stand under ids that were those of
lost records, so that everything keeps its place; only what never had one comes at the end.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pi_durable_tui.harness.kinds import TOOL
from pi_durable_tui.harness.live import LIVE, Live, ToolSlot
from pi_durable_tui.harness.ports import Diagnostic
from pi_durable_tui.harness.requests.context import LEFT_OUT
from pi_durable_tui.harness.salvage.rescue import Rescue
from pi_durable_tui.harness.tool import decide
from pi_durable_tui.harness.tool.checkpoint import CallInput
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.entry import ASSISTANT, COMMAND, LOST, TOOL_RESULT, Entry
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.messages import AssistantMessage, Message, Text, ToolCall, ToolResultMessage, UserMessage
from pi_durable_tui.records.submission import Done, Placed, Unanswered
from pi_durable_tui.records.task import Completed, Task

LOST_ANSWER = "[What was said here is lost: the session was damaged.]"
LOST_MARK = "What stood here is lost: the session was damaged"


def write_again(rescue: Rescue) -> None:
    """Messages of people whose entry is gone stand where they stood, with the words that their submission keeps."""
    for submission in list(rescue.contents.submissions.seen.values()):
        match submission.state:
            case Placed(entry_id=int(entry_id)) | Done(entry_id=int(entry_id)) | Unanswered(entry_id=int(entry_id)) if entry_id not in rescue.contents.kinds:
                entry = Entry(
                    id=entry_id,
                    conversation_id=submission.conversation_id,
                    kind=submission.kind,
                    at_ms=submission.at_ms,
                    message=UserMessage(content=submission.content),
                    data={"submissionId": submission.id},
                )
                rescue.put(entry, seq=_seq_at(rescue, submission.conversation_id, entry_id))
            case _:
                pass


def mend(rescue: Rescue, conversation_id: int) -> None:
    """Every result has a call before it, and every call one result; what else is gone is marked."""
    free = sorted(item.id for item in rescue.lost if item.kind == "entry" and item.conversation_id == conversation_id and item.id not in rescue.contents.kinds)
    _give_answers(rescue, conversation_id, free)
    _give_results(rescue, conversation_id, free)
    for entry_id in free:
        _stand_in(rescue, conversation_id, entry_id, LOST, data={"message": LOST_MARK})
    live = rescue.read(LIVE, conversation_id, Live) or Live()
    for slot in live.commands:
        _end_command(rescue, conversation_id, slot)


def say(rescue: Rescue, conversation_id: int, text: str) -> None:
    """The text stands at the end of the conversation, for people and for the model."""
    message = UserMessage(content=(Text(text=f"<harness>\n[warn] {text}\n</harness>"),))
    entry = Entry(id=rescue.new_id(), conversation_id=conversation_id, kind=LOST, at_ms=rescue.now_ms, message=message, data={"message": text})
    rescue.put(entry)


# -------------------------------------------------------------------------------------------------------------------- answers


def _give_answers(rescue: Rescue, conversation_id: int, free: list[int]) -> None:
    """Results whose call is gone get one that says what they were called with."""
    calls = {call.id for entry in rescue.inherited(conversation_id) for call in _calls(entry)}
    before_id, model = 0, "unknown"
    orphans: list[Entry] = []
    for entry in (*rescue.entries(conversation_id), None):
        is_orphan = entry is not None and isinstance(entry.message, ToolResultMessage) and entry.message.tool_call_id not in calls
        if entry is not None and is_orphan:
            orphans.append(entry)
            continue
        if orphans:
            _give_answer(rescue, conversation_id, orphans, free, before_id=before_id, model=model)
            orphans = []
        if entry is not None:
            before_id = entry.id
            calls |= {call.id for call in _calls(entry)}
            model = entry.message.model if isinstance(entry.message, AssistantMessage) else model


def _give_answer(rescue: Rescue, conversation_id: int, results: Sequence[Entry], free: list[int], *, before_id: int, model: str) -> None:
    gap = range(before_id + 1, results[0].id)
    entry_id = next((each for each in reversed(free) if each in gap), None) or next((each for each in gap if each not in rescue.contents.kinds), None)
    if entry_id is None:
        return  # never: the answer that is gone had an id of its own there
    if entry_id in free:
        free.remove(entry_id)
    calls = tuple(_call_of(entry) for entry in results)
    message = AssistantMessage(content=(Text(text=LOST_ANSWER), *calls), model=model, stop_reason="toolUse")
    _stand_in(rescue, conversation_id, entry_id, ASSISTANT, message=message)


def _call_of(entry: Entry) -> ToolCall:
    assert isinstance(entry.message, ToolResultMessage)  # the caller looked
    arguments = (entry.data or {}).get("arguments")
    return ToolCall(id=entry.message.tool_call_id, name=entry.message.tool_name, arguments=arguments if isinstance(arguments, dict) else {})


# -------------------------------------------------------------------------------------------------------------------- results


@dataclass(frozen=True, slots=True)
class _Open:
    """A call without a result, and the answer that made it."""

    answer: Entry
    call: ToolCall


def _give_results(rescue: Rescue, conversation_id: int, free: list[int]) -> None:
    live = rescue.read(LIVE, conversation_id, Live) or Live()
    slots = {slot.task_id: slot for slot in live.tools}
    tasks = {
        (asked.assistant, asked.call_id): task for task in rescue.tasks(conversation_id) if task.kind == TOOL and (asked := from_json(task.input, CallInput))
    }
    for each in _open_calls(rescue.entries(conversation_id)):
        task = tasks.get((each.answer.id, each.call.id))
        _give_result(rescue, each, task, slots.get(task.id) if task is not None else None, free)


def _open_calls(entries: Sequence[Entry]) -> list[_Open]:
    """The calls that have no result. Ids may come again: a result belongs to the newest answer before it."""
    waiting: dict[str, list[_Open]] = defaultdict(list)
    for entry in entries:
        for call in _calls(entry):
            waiting[call.id].append(_Open(entry, call))
        if isinstance(entry.message, ToolResultMessage) and waiting[entry.message.tool_call_id]:
            waiting[entry.message.tool_call_id].pop()
    return sorted(itertools.chain.from_iterable(waiting.values()), key=lambda each: each.answer.id)


def _give_result(rescue: Rescue, each: _Open, task: Task | None, slot: ToolSlot | None, free: list[int]) -> None:
    outcome = task.outcome if task is not None else None
    named = outcome.value if isinstance(outcome, Completed) and isinstance(outcome.value, int) else None
    entry_id = named if named in free else next((one for one in free if one > each.answer.id), None)
    if entry_id is not None:
        free.remove(entry_id)
    asked = CallInput(assistant=each.answer.id, call_id=each.call.id, name=each.call.name, arguments=each.call.arguments)
    result = decide.cut_short(slot.output if slot is not None else "", remark_on(each.call.name, task, is_lost=entry_id is not None))
    data: JsonObject = {
        **({"taskId": task.id} if task is not None else {}),
        "name": asked.name,
        "arguments": asked.arguments,
        "title": slot.title if slot is not None else asked.name,
        "diagnostics": decide.remarks(result.diagnostics),
    }
    _stand_in(rescue, each.answer.conversation_id, entry_id or rescue.new_id(), TOOL_RESULT, message=decide.message(asked, result), data=data)


def remark_on(name: str, task: Task | None, *, is_lost: bool) -> Diagnostic:
    """What is known of the end of a call whose result is not there.

    Args:
        task: The call's task; None: it is gone too.
        is_lost: There was a result, and it is gone.
    """
    phase = (task.checkpoint or {}).get("phase") if task is not None else None
    if isinstance(task.outcome if task is not None else None, Completed):
        return Diagnostic("error", "interrupted", f"Tool {name} had finished; its result is lost, because the session was damaged")
    if phase in {"call", "approve"} and not is_lost:
        return Diagnostic("error", "aborted", f"Tool {name} was not started: the session was damaged")
    return decide.interrupted(name)


def _end_command(rescue: Rescue, conversation_id: int, slot: ToolSlot) -> None:
    """A person's own command that was at work has said what it had said."""
    remark = decide.interrupted(slot.name)
    data: JsonObject = {
        "taskId": slot.task_id,
        "name": slot.name,
        "arguments": slot.arguments,
        "title": slot.title,
        "startedAtMs": slot.started_at_ms,
        "diagnostics": decide.remarks([remark]),
        "output": slot.output,
        "isError": True,
        "shown": False,
    }
    _stand_in(rescue, conversation_id, rescue.new_id(), COMMAND, data=data)


# ----------------------------------------------------------------------------------------------------------------------- both


def _calls(entry: Entry) -> tuple[ToolCall, ...]:
    message = entry.message
    return message.tool_calls if isinstance(message, AssistantMessage) and message.stop_reason not in LEFT_OUT else ()


def _stand_in(rescue: Rescue, conversation_id: int, entry_id: int, kind: str, *, message: Message | None = None, data: JsonObject | None = None) -> None:
    entry = Entry(id=entry_id, conversation_id=conversation_id, kind=kind, at_ms=_at_ms(rescue, conversation_id, entry_id), message=message, data=data)
    rescue.put(entry, seq=_seq_at(rescue, conversation_id, entry_id))


def _seq_at(rescue: Rescue, conversation_id: int, entry_id: int) -> int:
    """The commit that an entry of that id can have been part of: that of its neighbour before it, or after it."""
    seqs = rescue.contents.entries.seqs
    own = [entry.id for entry in (*rescue.inherited(conversation_id), *rescue.entries(conversation_id)) if entry.id != entry_id]
    before = max((each for each in own if each < entry_id), default=None)
    after = min((each for each in own if each > entry_id), default=None)
    if entry_id >= rescue.contents.next_id - 1 and after is None:
        return rescue.seq
    return seqs[before] if before is not None else seqs[after] if after is not None else rescue.seq


def _at_ms(rescue: Rescue, conversation_id: int, entry_id: int) -> int:
    earlier = [entry.at_ms for entry in rescue.entries(conversation_id) if entry.id < entry_id]
    later = [entry.at_ms for entry in rescue.entries(conversation_id) if entry.id > entry_id]
    return rescue.now_ms if not later else earlier[-1] if earlier else later[0]
