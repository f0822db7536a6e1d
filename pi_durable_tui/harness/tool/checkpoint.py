"""The input and the checkpoints of `pi.tool`."""

from __future__ import annotations

from pi_durable_tui.harness.ports import Replay
from pi_durable_tui.records.json import Json, JsonObject
from pi_durable_tui.records.messages import Record


class CallInput(Record, frozen=True):
    """The call as the model made it. `is_cut`: its answer was cut at the output limit."""

    assistant: int  # entry id of the answer that made the call
    call_id: str
    name: str
    arguments: JsonObject
    malformed: str | None = None
    is_cut: bool = False


class Call(Record, frozen=True, tag_field="phase", tag="call"):
    """Nothing was done yet: validate, run hooks, ask where needed, store the intent."""


class Approve(Record, frozen=True, tag_field="phase", tag="approve"):
    """A person is asked by task `question` whether these arguments may be carried out (rule TO-3)."""

    arguments: JsonObject
    question: int


class Execute(Record, frozen=True, tag_field="phase", tag="execute"):
    """The intent: from here on the tool may have run (rule TO-1)."""

    arguments: JsonObject
    replay: Replay
    title: str
    prepared: Json = None
    approved_by: str | None = None  # who said yes; None: nobody had to


class Collect(Record, frozen=True, tag_field="phase", tag="collect"):
    """A subagent does the work: take over what it answers (rule TO-7)."""

    arguments: JsonObject
    title: str
    subagent: int  # task id
    approved_by: str | None = None


class BackgroundInput(Record, frozen=True):
    """A call that goes on behind its result: the tool, its arguments as they were allowed, and one line that says what it does."""

    name: str
    arguments: JsonObject
    title: str


class QuestionInput(Record, frozen=True):
    """What a person is asked: the tool, one line that says what it would do, and details such as a diff.

    `rule`: what the answer "always" would make (a Rule); None when that answer is not offered.
    """

    tool_task: int
    name: str
    title: str
    arguments: JsonObject
    details: JsonObject | None = None
    rule: JsonObject | None = None


class Answer(Record, frozen=True):
    """A person's answer, with who and when."""

    decision: str  # allow, always or deny
    by: str
    at_ms: int
    note: str = ""
