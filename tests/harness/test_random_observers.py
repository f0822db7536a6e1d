"""Random histories of chats that are watched, slowly and fast: every request is valid, and what frames and events tell is what is stored.

Beside what `test_stateful` does, summaries take their time here and go wrong, extensions edit what was said and speak in the middle of a round,
contexts seem full, and observers fall behind, come late and catch up. Rules CX-1, CO-3, CO-4, OB-1 to OB-3.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import tempfile
from collections.abc import AsyncGenerator, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pi_durable_tui.errors import ConversationBusy, NotFound
from pi_durable_tui.harness.compaction.select import INSTRUCTIONS
from pi_durable_tui.harness.conversation import Conversation, SubmitMode
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.observation.events import events_of
from pi_durable_tui.harness.observation.frames import Frame, read_view
from pi_durable_tui.harness.ports import Finished, ModelEvent, ModelFailed, ModelRequest, TextDelta, UsageReport
from pi_durable_tui.harness.settings import Compaction, Settings
from pi_durable_tui.harness.view import ConversationView, apply
from pi_durable_tui.records.codec import to_json
from pi_durable_tui.records.entry import COMMAND, NOTICE, USER, Edit, Entry
from pi_durable_tui.records.messages import AssistantMessage, ToolResultMessage, Usage
from pi_durable_tui.session.transaction import Transaction
from tests.support.event_listener import Told, shown
from tests.support.harness_builders import answered, call, gave, said, told
from tests.support.harness_oracle import Held, faults, held
from tests.support.harness_world import USED, AnswerKind, World
from tests.support.scripted_model import texts
from tests.support.strict_provider import violations

SEEDS = (*range(16), 28, 30)
"""10, 28 and 30 notice a submission that an observer was not told, a result whose call was summarized, and a request without a question."""
STEPS = 50
ANSWERS: tuple[AnswerKind, ...] = ("slow", "look", "touch", "two", "three", "unknown", "malformed", "fail", "overflow", "text", "text", "later")
ACTS = {
    "submit": 12,
    "release": 10,
    "time": 6,
    "compact": 8,
    "edit": 3,
    "speak": 7,
    "answer": 5,
    "abort": 2,
    "fork": 3,
    "reset": 1,
    "withdraw": 2,
    "fall_behind": 5,
    "come_late": 1,
    "type": 3,
    "reopen": 2,
}
"""What may happen, and how often."""


@dataclass(slots=True)
class Watched(World):
    """A world whose summaries come when they like, or not at all, and which knows what its provider would have refused."""

    chance: random.Random = field(default_factory=random.Random)
    refused: list[str] = field(default_factory=list[str])

    async def answer(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.refused += violations(request.messages)
        if texts(request)[0][1].startswith(INSTRUCTIONS):
            self.requests.append(request)
            async for event in self._summary(self.chance.choice(["soon", "late", "late", "fail", "fatal", "overflow", "empty", "cut"])):
                yield event
            return
        async for event in World.answer(self, request):  # some contexts seem to be nearly full, or more
            yield UsageReport(Usage(input_tokens=self.chance.choice([100, 60_000, 90_000]), output_tokens=10)) if event is USED else event

    async def _summary(self, kind: str) -> AsyncGenerator[ModelEvent, None]:
        if kind == "late":
            self._held.append(event := asyncio.Event())
            await event.wait()
        if kind != "empty":
            yield TextDelta("gist " * self.chance.choice([1, 300]))
        if kind in {"fail", "fatal", "overflow"}:
            yield ModelFailed(reason="context_overflow" if kind == "overflow" else "server", message=kind, retryable=kind == "fail")
        else:
            yield Finished("length" if kind == "cut" else "stop")


class Observer:
    """Follows one chat by frames and by events. While it is `behind` it takes none."""

    def __init__(self, chat: Conversation, first_id: int) -> None:
        self.chat = chat.id
        self.behind = False
        self.caught_up = 0
        self._first_id = first_id  # of what is handed in after it came
        self._frames: asyncio.Queue[Frame] = asyncio.Queue()
        self._goes_on = asyncio.Event()
        self._view: ConversationView | None = None
        self._heard: Told | None = None
        self._job = asyncio.ensure_future(self._take(chat))
        self.go_on()

    def go_on(self) -> None:
        self.behind = False
        self._goes_on.set()

    def fall_behind(self) -> None:
        self.behind = True
        self._goes_on.clear()

    async def _take(self, chat: Conversation) -> None:
        async for frame in chat.watch():
            await self._frames.put(frame)
            await self._goes_on.wait()

    def look(self, now: Held, stored: ConversationView) -> None:
        """Take in what has come, and compare it with what is stored."""
        while not self._frames.empty():
            self._hear(self._frames.get_nowait())
        assert self._view is not None
        assert self._heard is not None
        for name in ("conversation", "agent", "live", "inbox", "provider", "usage", "draft", "tasks"):
            assert getattr(self._view, name) == getattr(stored, name), name
        assert self._view.entries[-len(stored.entries) :] == stored.entries
        settled = {one.id: to_json(one.state) for one in now.submissions if one.conversation_id == self.chat and one.id >= self._first_id}
        assert {one: self._heard.submissions.get(one) for one in settled} == settled

    def _hear(self, frame: Frame) -> None:
        if self._view is not None:
            assert frame.commit is None or apply(self._view, frame.commit) == frame.view
            self.caught_up += frame.commit is None
        for event in events_of(self._view, frame.view):
            if self._heard is None:
                self._heard = shown(frame.view)
            else:
                self._heard.hear(event)
        self._view = frame.view
        heard, seen = self._heard, shown(frame.view)
        assert heard is not None
        assert seen.submissions.items() <= heard.submissions.items()
        assert heard.entries[-len(seen.entries) :] == seen.entries
        for name in ("run", "message", "tools", "questions", "inbox", "usage", "compactions", "agent", "beside"):
            assert getattr(heard, name) == getattr(seen, name), name


class History:
    """One random history."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = random.Random(seed)
        pick = self.chance.choice
        compaction = Compaction(reserve_tokens=25_000, keep_tokens=pick([20, 200, 20_000]), background_tokens=pick([0, 15_001]))
        modes: list[Any] = ["all", "one-at-a-time"]
        settings = Settings(compaction=compaction, steering_mode=pick(modes), follow_up_mode=pick(modes))
        self.world = Watched(folder, "memory", settings=settings, chance=self.chance)
        self.chats: list[int] = []
        self.observers: list[Observer] = []
        self.caught_up = 0

    def run(self) -> None:
        self.world.open()
        self.chats.append(self._do(self._new_chat()))
        self._watch(self.chats[0])
        for _ in range(STEPS):
            act = self.chance.choices([*ACTS], [*ACTS.values()])[0]
            with contextlib.suppress(ConversationBusy, NotFound):
                getattr(self, f"_{act}")(self.chance.choice(self.chats))
            self._check()
        self.caught_up += sum(observer.caught_up for observer in self.observers)
        self.world.kill()

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.world.do(work)

    def _held(self) -> Held:
        async def look() -> Held:
            return await held(self.world.harness.session.storage)

        return self._do(look())

    def _check(self) -> None:
        now = self._held()
        assert faults(now, self.world.known) == []
        assert self.world.refused == []
        for observer in self.observers:
            if not observer.behind:
                observer.look(now, self._do(read_view(self.world.harness.session, observer.chat)))
        for conversation in now.conversations:
            _pairs_are_whole([stored.entry for stored in now.seen[conversation.id]])

    # ----------------------------------------------------------------------------------------------------------------- acts

    async def _new_chat(self) -> int:
        return (await self.world.harness.create_conversation(Agent(model="test/model", approval=self.chance.choice(["all", "ask"])))).id

    def _watch(self, chat: int) -> None:
        async def begin() -> None:
            counters = await self.world.harness.session.storage.metadata()
            self.observers.append(Observer(await self.world.harness.conversation(chat), counters.next_id))

        self._do(begin())

    def _come_late(self, chat: int) -> None:
        self._watch(chat)

    def _submit(self, chat: int) -> None:
        self.world.answers += [self.chance.choice(ANSWERS) for _ in range(self.chance.randrange(1, 4))]
        mode: SubmitMode = self.chance.choice(["followUp", "followUp", "steer", "write"])
        text = f"please, {mode}" + " word" * self.chance.choice([1, 50, 400, 8_000])

        async def hand_in() -> int:
            return (await (await self.world.harness.conversation(chat)).submit(text, mode=mode)).id

        self.world.known.acknowledged.add(self._do(hand_in()))

    def _release(self, _chat: int) -> None:
        self.world.release()

    def _time(self, _chat: int) -> None:
        self.world.advance(self.chance.choice([100, 1_000, 5_000, 60_000]))

    def _compact(self, chat: int) -> None:
        async def compact() -> None:
            await (await self.world.harness.conversation(chat)).compact()

        self._do(compact())

    def _abort(self, chat: int) -> None:
        async def abort() -> None:
            await (await self.world.harness.conversation(chat)).abort(background=self.chance.random() < 0.5)

        self._do(abort())

    def _fork(self, chat: int) -> None:
        seen = self._held().seen[chat]
        if len(self.chats) < 5 and seen:

            async def fork() -> int:
                return (await self.world.harness.fork(chat, self.chance.choice([None, self.chance.choice(seen).entry.id]))).id

            self.chats.append(self._do(fork()))
            self._watch(self.chats[-1])

    def _reset(self, chat: int) -> None:
        async def reset() -> None:
            await (await self.world.harness.conversation(chat)).reset(self.chance.choice(["", "anew"]))

        self._do(reset())

    def _edit(self, chat: int) -> None:
        seen = self._held().seen[chat]
        if seen:
            message = self.chance.choice([None, said("edited"), said(" "), answered("edited"), told("edited"), gave("c1", "edited"), answered(call("e1"))])
            self._insert(chat, "test.edit", None, (Edit(entry_id=self.chance.choice(seen).entry.id, action="replace", message=message),))

    def _speak(self, chat: int) -> None:
        self._insert(chat, self.chance.choice([USER, USER, NOTICE, COMMAND, "test.note"]), said("an extension says"), ())

    def _insert(self, chat: int, kind: str, message: Any, edits: tuple[Edit, ...]) -> None:
        async def write(transaction: Transaction) -> None:
            entry_id = transaction.new_id()
            transaction.insert_entry(Entry(id=entry_id, conversation_id=chat, kind=kind, at_ms=transaction.now_ms, message=message, edits=edits))

        self._do(self.world.harness.session.commit(write))  # type: ignore[arg-type]

    def _answer(self, _chat: int) -> None:
        open_ones = [(chat, slot.question) for chat, live in self._held().live.items() for slot in live.tools if slot.status == "asking"]
        if open_ones:
            chat, question = self.chance.choice(open_ones)

            async def answer() -> None:
                await (await self.world.harness.conversation(chat)).answer(question or 0, self.chance.choice(["allow", "deny"]), by="tester")

            self._do(answer())

    def _withdraw(self, _chat: int) -> None:
        queued = [one for one in self._held().submissions if one.status == "queued"]
        if queued:
            chosen = self.chance.choice(queued)

            async def withdraw() -> None:
                await (await self.world.harness.conversation(chosen.conversation_id)).withdraw(chosen.id)

            self._do(withdraw())

    def _fall_behind(self, _chat: int) -> None:
        observer = self.chance.choice(self.observers)
        if observer.behind:
            observer.go_on()
            self.world.settle()
        else:
            observer.fall_behind()

    def _type(self, chat: int) -> None:
        """So many commits that whoever is behind loses some."""

        async def save() -> None:
            for cursor in range(130):
                await (await self.world.harness.conversation(chat)).save_draft("typed", cursor)

        self._do(save())

    def _reopen(self, _chat: int) -> None:
        self.caught_up += sum(observer.caught_up for observer in self.observers)
        self.observers.clear()
        (self.world.kill if self.chance.random() < 0.5 else self.world.close)()
        self.world.open()
        for chat in self.chats:
            self._watch(chat)
        self._do(self.world.harness.resume())


def _pairs_are_whole(seen: list[Entry]) -> None:
    """No summary keeps a result whose call it took away, unless one of the two was edited (rule CO-3)."""
    start = max((entry.head for entry in seen if entry.head is not None and entry.head != entry.id), default=0)
    edited = {edit.entry_id for entry in seen for edit in entry.edits}
    answers: dict[str, int] = {}
    for entry in seen:
        if isinstance(entry.message, AssistantMessage):
            answers |= {each.id: entry.id for each in entry.message.tool_calls}
        elif isinstance(entry.message, ToolResultMessage) and entry.id >= start and not {entry.id, answers[entry.message.tool_call_id]} & edited:
            assert answers[entry.message.tool_call_id] >= start, f"the result {entry.id} is kept and its call is summarized"


@pytest.mark.rule("CX-1", "CO-3", "CO-4", "OB-1", "OB-2", "OB-3", "FB-39")
def test_whatever_happens_requests_are_valid_and_every_observer_is_told_what_is_stored():
    caught_up = 0
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            history = History(seed, Path(folder))
            try:
                history.run()
            except BaseException as error:
                error.add_note(f"seed {seed}")
                raise
            caught_up += history.caught_up
    assert caught_up, "nobody was ever too slow"
