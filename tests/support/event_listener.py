"""Somebody who hears agent events only, and what a view shows of the same: the two must agree (rule OB-3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.codec import to_json


@dataclass
class Told:
    """What somebody knows who hears events only."""

    run: tuple[int, int] | None = None
    message: Any = None
    tools: dict[str, tuple[str, int]] = field(default_factory=dict)
    questions: dict[str, int] = field(default_factory=dict)
    inbox: Any = field(default_factory=list)
    usage: Any = field(default_factory=dict)
    submissions: dict[int, Any] = field(default_factory=dict)
    entries: list[int] = field(default_factory=list)
    compactions: list[int] = field(default_factory=list)
    agent: Any = None
    beside: Any = field(default_factory=lambda: ([], []))

    def hear(self, event: Any) -> None:
        getattr(self, f"_{event['type']}")(event)

    def _agent(self, event: Any) -> None:
        self.agent = event["agent"]

    def _beside(self, event: Any) -> None:
        self.beside = (event["commands"], event["background"])

    def _inbox(self, event: Any) -> None:
        self.inbox = event["items"]

    def _entry(self, event: Any) -> None:
        self.entries.append(event["entryId"])

    def _message_end(self, event: Any) -> None:
        self.entries.append(event["entryId"])
        self.message = None

    def _tool_execution_end(self, event: Any) -> None:
        self.entries.append(event["entryId"])
        self.tools.pop(event["message"]["toolCallId"], None)
        self.questions.pop(event["message"]["toolCallId"], None)

    def _submission(self, event: Any) -> None:
        self.submissions[event["submissionId"]] = event["state"]

    def _usage(self, event: Any) -> None:
        self.usage = event["usage"]

    def _run_start(self, event: Any) -> None:
        assert self.run is None, "a run starts while another one goes on"
        self.run = (event["taskId"], 0)

    def _turn_start(self, event: Any) -> None:
        assert self.run is not None, "a turn starts without a run"
        self.run = (event["taskId"], event["turn"])

    def _run_end(self, event: Any) -> None:
        assert self.run is not None
        assert self.run[0] == event["taskId"]
        self.run = None

    def _message_start(self, _event: Any) -> None:
        assert self.message is None, "a message starts before the one before it has ended"
        self.message = {}

    def _message_update(self, event: Any) -> None:
        assert self.message is not None, "a message grows that has not started"
        self.message = event["message"]

    def _question(self, event: Any) -> None:
        self.questions[event["callId"]] = event["question"]

    def _question_end(self, event: Any) -> None:
        assert self.questions.pop(event["callId"]) == event["question"]

    def _tool_execution_start(self, event: Any) -> None:
        assert event["callId"] not in self.questions, "a call starts whose question is open"
        self.tools[event["callId"]] = ("", 0)

    def _tool_execution_update(self, event: Any) -> None:
        assert event["callId"] in self.tools, "a call says something that has not started"
        self.tools[event["callId"]] = (event["output"], event["outputDroppedChars"])

    def _compaction_start(self, event: Any) -> None:
        assert event["taskId"] not in self.compactions, "a compaction starts twice"
        self.compactions.append(event["taskId"])

    def _compaction_end(self, event: Any) -> None:
        self.compactions.remove(event["taskId"])

    def _retry(self, _event: Any) -> None:
        assert self.message is None, "an attempt has failed and its message goes on"


def shown(at: ConversationView) -> Told:
    """The same out of the view."""
    message = at.live.generation.message if at.live.generation is not None else None
    return Told(
        run=(at.live.run.task_id, at.live.run.turn) if at.live.run is not None else None,
        message=to_json(message) if message is not None else None,
        tools={each.call_id: (each.output, each.output_dropped_chars) for each in at.live.tools if each.status == "running"},
        questions={each.call_id: each.question for each in at.live.tools if each.status == "asking" and each.question is not None},
        inbox=[to_json(item) for item in at.inbox.items],
        usage=to_json(at.usage),
        submissions={each.id: to_json(each.state) for each in at.submissions},
        entries=[each.entry.id for each in at.entries],
        compactions=[each.task_id for each in at.live.compactions],
        agent=to_json(at.agent),
        beside=([to_json(each) for each in at.live.commands], [to_json(each) for each in at.live.background]),
    )
