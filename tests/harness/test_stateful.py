"""Random histories of a whole session, with crashes, closes and reopenings among them, on all backends at a time (proof.md, rig 5).

After each step the oracle looks at each store; after each reopening a second one must change nothing; in the end everything settles, and
all backends hold the same records, with ids and times.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from pi_durable_tui.errors import ConversationBusy, NotFound, RequestConflict
from pi_durable_tui.harness.conversation import Conversation, SubmitMode
from pi_durable_tui.harness.kinds import BACKGROUND, SUBAGENT
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.records.entry import NOTICE
from pi_durable_tui.records.submission import Queued, Submission, Unanswered
from pi_durable_tui.records.task import Pending, Running, Task
from tests.support.harness_oracle import Held, faults, held, rest_faults
from tests.support.harness_world import AnswerKind, Backend, FamilyKind, Killed, World
from tests.support.storage_records import dump
from tests.support.strict_provider import violations

T = TypeVar("T")

BACKENDS: tuple[Backend, ...] = get_args(Backend)
SIGNIFICANT: tuple[AnswerKind, ...] = ("slow", "look", "touch", "put", "two", "three", "unknown", "malformed", "fail", "fatal", "overflow", "later", "text")
NUMBERS = st.integers(0, 7)
MOMENTS = st.sampled_from(["before", "stored"])
ANSWERS = st.lists(st.sampled_from(SIGNIFICANT), min_size=1, max_size=4)
MINUTE_MS, DAY_MS = 60_000, 86_400_000


@dataclass(slots=True)
class Model:
    """What must hold, kept beside the stores: one for all of them, since they must agree.

    Attributes:
        requests: Submission id by (conversation id, request id), as acknowledged.
        withdrawn: Submissions of which somebody was told that they are taken back.
        conversations: Ids of which somebody was told.
    """

    requests: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])
    withdrawn: set[int] = field(default_factory=set[int])
    conversations: set[int] = field(default_factory=set[int])


def as_opened(task: Task) -> Task:
    """What opening makes of a task (TK-10)."""
    if not isinstance(task.state, Running):
        return task
    return msgspec.structs.replace(task, state=Pending(checkpoint=task.state.checkpoint), restarts=(task.restarts or 0) + 1)


PINNED_WALKS = (
    2082,  # a summary was planned while a result came: what was cut depended on how many steps a store takes to read
    2368851681,  # a question was answered while it was being stopped
    7000000,  # a question was still shown as open after a kill, though its answer was stored
)
NEW_WALKS = 6
"""So many walks of every run have seeds of their own; the others are the same each time, so that a failing one is a fact."""
SOMETIMES: set[str] = set()
"""What has happened in some history of this run; told at its end."""


class Histories(RuleBasedStateMachine):
    """Every rule acts on each world; they must answer alike."""

    backends: tuple[Backend, ...] = BACKENDS
    kinds: tuple[AnswerKind, ...] = SIGNIFICANT

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.worlds: list[World] = []
        for backend in self.backends:
            path = Path(self.folder.name) / backend
            path.mkdir()
            self.worlds.append(World(path, backend))
        self.model = Model()
        self.is_fresh = True  # just opened

    # --------------------------------------------------------------------------------------------------------------- acting

    def each(self, act: Callable[[World], T]) -> T:
        """Do the same in each world; the answers, errors included, must be the same."""
        answers = [self._outcome(act, world) for world in self.worlds]
        assert all(repr(answer) == repr(answers[0]) for answer in answers), answers
        if isinstance(answers[0], BaseException):
            if isinstance(answers[0], Killed):
                SOMETIMES.add("killed by a commit")
            raise answers[0]
        return answers[0]

    def _outcome(self, act: Callable[[World], T], world: World) -> T | BaseException:
        try:
            return act(world)
        except (Killed, ConversationBusy, NotFound, RequestConflict) as error:
            return error

    def act(self, work: Callable[[World], Coroutine[Any, Any, T]]) -> T | None:
        """Do something in each process; None: they died at it."""
        try:
            return self.each(lambda world: world.do(work(world)))
        except Killed:
            return None

    def look(self, world: World) -> Held:
        """What a store holds now, whether somebody has it open or not."""

        async def read() -> Held:
            storage = world._storage.inner if world._storage is not None else await world.store()
            try:
                return await held(storage)
            finally:
                if world._storage is None:
                    await storage.close()

        return asyncio.run(read()) if world._loop is None else world._loop.run_until_complete(read())

    def dumped(self, world: World) -> dict[str, Any]:
        """All that a closed store holds."""

        async def read() -> dict[str, Any]:
            storage = await world.store()
            try:
                return await dump(storage)
            finally:
                await storage.close()

        return asyncio.run(read())

    def chat(self, number: int) -> int:
        """The id of some conversation."""
        known = sorted(self.model.conversations)
        return known[number % len(known)]

    async def conversation(self, world: World, conversation_id: int) -> Conversation:
        return await world.harness.conversation(conversation_id)

    @property
    def is_open(self) -> bool:
        return self.worlds[0].is_open

    # ----------------------------------------------------------------------------------------------------------------- lives

    @initialize()
    def begin(self) -> None:
        self.each(lambda world: world.open())
        self.new_chat("all")
        self.new_chat("ask")

    @precondition(lambda self: not self.is_open)
    @rule(gap_ms=st.sampled_from([0, 1, 10 * MINUTE_MS, -DAY_MS]), resumes=st.booleans())
    def reopen(self, gap_ms: int, resumes: bool) -> None:
        for world in self.worlds:
            world.clock.jump_wall(gap_ms)
        found = self.look(self.worlds[0]).tasks
        sent = [len(world.requests) for world in self.worlds]
        self.is_fresh = True
        self.each(lambda world: world.open())
        self.each(lambda world: world.settle())
        assert [len(world.requests) for world in self.worlds] == sent  # opening runs nothing
        assert self.look(self.worlds[0]).tasks == {task_id: as_opened(task) for task_id, task in found.items()}
        if not resumes:
            before = [self.look(world) for world in self.worlds]
            self.each(lambda world: world.close())
            self.each(lambda world: world.open())
            assert [self.look(world) for world in self.worlds] == before  # a second opening changes nothing
        self.act(lambda world: world.harness.resume())

    @precondition(lambda self: not self.is_open)
    @rule(moment=MOMENTS)
    def crash_while_opening(self, moment: Any) -> None:
        try:
            self.each(lambda world: world.open(crash=(1, moment)))
        except Killed:
            SOMETIMES.add("killed while opening")
            self.reopen(0, resumes=True)

    @precondition(lambda self: self.is_open)
    @rule()
    def kill(self) -> None:
        self.each(lambda world: world.kill())

    @precondition(lambda self: self.is_open)
    @rule()
    def close(self) -> None:
        try:
            self.each(lambda world: world.close())
        except Killed:  # at the commit that hands back what ran
            SOMETIMES.add("killed while closing")
            return
        assert [task for task in self.look(self.worlds[0]).tasks.values() if isinstance(task.state, Running)] == []

    @precondition(lambda self: self.is_open)
    @rule(commit=st.integers(1, 9), moment=MOMENTS)
    def crash_soon(self, commit: int, moment: Any) -> None:
        for world in self.worlds:
            world.crash_at(commit, moment)

    # ----------------------------------------------------------------------------------------------------------------- people

    @precondition(lambda self: self.is_open and len(self.model.conversations) < 4)
    @rule(approval=st.sampled_from(["all", "ask", "edits", "plan"]))
    def new_chat(self, approval: Any) -> None:
        async def make(world: World) -> int:
            return (await world.harness.create_conversation(Agent(model="test/model", approval=approval))).id

        made = self.act(make)
        self.model.conversations |= {made} if made is not None else set()

    @precondition(lambda self: self.is_open)
    @rule(chat=NUMBERS, mode=st.sampled_from(["followUp", "steer", "reject", "write"]), request=st.none() | NUMBERS, answers=ANSWERS)
    def submit(self, chat: int, mode: SubmitMode, request: int | None, answers: list[AnswerKind]) -> None:
        conversation_id = self.chat(chat)
        request_id = f"r{request}" if request is not None else None
        for world in self.worlds:
            world.answers += answers

        async def hand_in(world: World) -> int:
            chat = await self.conversation(world, conversation_id)
            return (await chat.submit(f"please, {mode} {request_id}", mode=mode, request_id=request_id)).id

        try:
            made = self.act(hand_in)
        except ConversationBusy:
            assert mode == "reject"
            return
        except RequestConflict:
            assert (conversation_id, request_id) in {(one.conversation_id, one.request_id) for one in self.look(self.worlds[0]).submissions}
            return
        if made is not None:
            known = self.model.requests.setdefault((conversation_id, request_id), made) if request_id is not None else made
            assert made == known
            for world in self.worlds:
                world.known.acknowledged.add(made)

    @precondition(lambda self: self.is_open)
    @rule(chat=NUMBERS, answers=ANSWERS)
    def ask(self, chat: int, answers: list[AnswerKind]) -> None:
        self.submit(chat, "followUp", None, answers)

    @precondition(lambda self: self.is_open)
    @rule(chat=NUMBERS, answers=ANSWERS, crash=st.none() | st.tuples(st.integers(1, 5), MOMENTS))
    def ask_and_see_it_through(self, chat: int, answers: list[AnswerKind], crash: Any) -> None:
        """Ask, and let everything end that is at work, perhaps with a crash on the way."""
        self.submit(chat, "followUp", None, answers)
        for number in range(3):
            if crash is not None and number == 1 and self.is_open:
                self.crash_soon(*crash)
            if self.is_open:
                self.work_ends()

    @precondition(lambda self: self.is_open and self.worlds[0].known.acknowledged)
    @rule(number=NUMBERS)
    def withdraw(self, number: int) -> None:
        found = [one for one in self.look(self.worlds[0]).submissions if isinstance(one.state, Queued)] or self.look(self.worlds[0]).submissions
        chosen = found[number % len(found)]

        async def take_back(world: World) -> str:
            return await (await self.conversation(world, chosen.conversation_id)).withdraw(chosen.id)

        verdict = self.act(take_back)
        if verdict == "withdrawn":
            SOMETIMES.add("withdrawn")
            self.model.withdrawn.add(chosen.id)

    @precondition(lambda self: self.is_open)
    @rule(chat=NUMBERS, background=st.booleans())
    def abort(self, chat: int, background: bool) -> None:
        conversation_id = self.chat(chat)

        async def stop(world: World) -> list[int]:
            return [one.id for one in await (await self.conversation(world, conversation_id)).abort(background=background)]

        self.model.withdrawn |= set(self.act(stop) or ())

    @precondition(lambda self: self.is_open and len(self.model.conversations) < 4)
    @rule(chat=NUMBERS, number=st.none() | NUMBERS)
    def fork(self, chat: int, number: int | None) -> None:
        conversation_id = self.chat(chat)
        seen = self.look(self.worlds[0]).seen[conversation_id]
        entry_id = seen[number % len(seen)].entry.id if number is not None and seen else None

        async def split(world: World) -> int:
            return (await world.harness.fork(conversation_id, entry_id)).id

        try:
            made = self.act(split)
        except NotFound:
            assert not seen
            return
        self.model.conversations |= {made} if made is not None else set()

    @precondition(lambda self: self.is_open)
    @rule(chat=NUMBERS, text=st.sampled_from(["", "from here on"]))
    def reset(self, chat: int, text: str) -> None:
        conversation_id = self.chat(chat)

        async def start_anew(world: World) -> int:
            return await (await self.conversation(world, conversation_id)).reset(text)

        try:
            self.act(start_anew)
        except ConversationBusy:
            assert self.look(self.worlds[0]).live[conversation_id].run is not None

    @precondition(lambda self: self.is_open)
    @rule(chat=NUMBERS)
    def compact(self, chat: int) -> None:
        conversation_id = self.chat(chat)

        async def summarize(world: World) -> int:
            return await (await self.conversation(world, conversation_id)).compact()

        self.act(summarize)

    @precondition(lambda self: self.is_open and self.questions())
    @rule(number=NUMBERS, decision=st.sampled_from(["allow", "deny"]))
    def answer(self, number: int, decision: Any) -> None:
        found = self.questions()
        conversation_id, question_id = found[number % len(found)]

        async def decide(world: World) -> None:
            await (await self.conversation(world, conversation_id)).answer(question_id, decision, by="tester")

        async def is_being_stopped(world: World) -> bool:
            task = await world.harness.session.storage.task(question_id)
            return task is not None and task.abort_at_ms is not None

        try:
            self.act(decide)
        except NotFound:  # the mark is stored before the screen can say so (PR-22)
            assert self.act(is_being_stopped)
            return
        SOMETIMES.add(f"question: {decision}")

    def questions(self) -> list[tuple[int, int]]:
        live = self.look(self.worlds[0]).live
        return [(chat, slot.question) for chat, shown in live.items() for slot in shown.tools if slot.question is not None and slot.status == "asking"]

    # ------------------------------------------------------------------------------------------------------------- the world

    @precondition(lambda self: self.is_open)
    @rule()
    def work_ends(self) -> None:
        self.survive(lambda world: world.release())

    @precondition(lambda self: self.is_open)
    @rule()
    def reload(self) -> None:
        for world in self.worlds:
            world.install()
        self.survive(lambda world: world.settle())

    @precondition(lambda self: self.is_open)
    @rule(duration_ms=st.sampled_from([100, 1_000, 5_000, 60_000]))
    def time_passes(self, duration_ms: int) -> None:
        self.survive(lambda world: world.advance(duration_ms))

    @precondition(lambda self: self.is_open)
    @rule(duration_ms=st.sampled_from([-DAY_MS, -1_000, 1_000, DAY_MS]))
    def somebody_sets_the_clock(self, duration_ms: int) -> None:
        for world in self.worlds:
            world.clock.jump_wall(duration_ms)

    def survive(self, act: Callable[[World], None]) -> None:
        try:
            self.each(act)
        except Killed:
            SOMETIMES.add("killed at work")

    # ---------------------------------------------------------------------------------------------------------------- oracle

    @invariant()
    def every_store_is_as_it_must_be(self) -> None:
        for world in self.worlds if self.is_fresh else self.worlds[:1]:  # they are equal in the end; in between one of them must do
            now = self.look(world)
            assert self.faults(world, now) == []
            assert {one.id for one in now.conversations} >= self.model.conversations
            states = {one.id: one.state for one in now.submissions}
            assert all(isinstance(states[one], Unanswered) for one in self.model.withdrawn)
            assert [violations(request.messages) for request in world.requests if violations(request.messages)] == []
            assert world.faults == []
        self.is_fresh = False

    def faults(self, world: World, now: Held) -> list[str]:
        """What is wrong; a call whose work goes on elsewhere is told as done before that is."""
        told = {f"call {call_id} is told as done and was not" for call_id in world.handed_on}
        return [fault for fault in faults(now, world.known) if fault not in told]

    def teardown(self) -> None:
        try:
            if self.worlds and self.model.conversations:
                self.come_to_rest()
        finally:
            for world in self.worlds:
                if world._loop is not None:
                    world.kill()
            self.folder.cleanup()

    def come_to_rest(self) -> None:
        """Faults stop, everything is allowed to end, and everything does (PR-10); then all backends hold the same."""
        for world in self.worlds:
            world.answers.clear()
        if not self.is_open:
            self.each(lambda world: world.open())
        for world in self.worlds:
            world.crash_at(10**6, "before")
        self.each(lambda world: world.do(world.harness.resume()))
        for _ in range(60):
            self.each(lambda world: world.release())
            for conversation_id, question_id in self.questions():
                self.each(lambda world, at=conversation_id, question=question_id: world.do(self.allow(world, at, question)))
            if not rest_faults(self.look(self.worlds[0])):
                break
            is_waiting = self.worlds[0].clock.next_wake_ms() is not None
            self.each(lambda world: world.advance(DAY_MS))  # somebody may have set the clock back by days
            if not is_waiting:
                self.each(lambda world: world.do(self.push(world)))
        for world in self.worlds:
            assert rest_faults(self.look(world)) == []
            assert self.faults(world, self.look(world)) == []
        self.each(lambda world: world.close())
        dumps = [self.dumped(world) for world in self.worlds]
        for world, each in zip(self.worlds, dumps, strict=True):
            different = {part: (each[part], dumps[0][part]) for part in each if each[part] != dumps[0][part]}
            assert different == {}, world.backend
        assert all(world.known == self.worlds[0].known and world.versions == self.worlds[0].versions for world in self.worlds)
        self.code_was_kept()

    async def allow(self, world: World, conversation_id: int, question_id: int) -> None:
        await (await self.conversation(world, conversation_id)).answer(question_id, "allow", by="tester")

    async def push(self, world: World) -> None:
        """What a failed run has left in an inbox goes on with the next input (SU-5)."""
        for conversation_id, inbox in self.look_inside(await held(world._storage.inner)):
            if inbox:
                await (await self.conversation(world, conversation_id)).submit("go on")

    def look_inside(self, now: Held) -> list[tuple[int, int]]:
        return [(chat, len(inbox.items)) for chat, inbox in now.inbox.items()]

    def code_was_kept(self) -> None:
        """What ended did so with the code it began with (EX-1)."""
        began: dict[str, int] = {}
        for call_id, what, version in self.worlds[0].versions:
            assert what == "start" or began[call_id] == version
            began[call_id] = version


class Families(Histories):
    """With subagents, calls in the background, and rounds that run in turn; one task among many is stopped, subagents are spoken to."""

    kinds = (*SIGNIFICANT, *get_args(FamilyKind), *get_args(FamilyKind))

    def stop_one(self, number: int) -> None:
        live = [task for task in self.look(self.worlds[0]).tasks.values() if task.is_live]
        if not live:
            return
        chosen = live[number % len(live)]

        async def stop(world: World) -> bool:
            return await (await self.conversation(world, chosen.conversation_id)).abort_task(chosen.id)

        self.act(stop)

    def speak_to_a_subagent(self, number: int) -> None:
        now = self.look(self.worlds[0])
        working = [each.id for each in now.conversations if each.owner is not None and now.live[each.id].run is not None]
        if not working:
            return

        async def steer(world: World) -> int:
            return (await (await self.conversation(world, working[number % len(working)])).submit("and this", mode="steer")).id

        made = self.act(steer)
        if made is not None:
            SOMETIMES.add("a subagent was spoken to")
            for world in self.worlds:
                world.known.acknowledged.add(made)

    def come_to_rest(self) -> None:
        super().come_to_rest()
        for world in self.worlds:
            now = self.look(world)
            notices = Counter((entry.data or {}).get("taskId") for each in now.conversations for entry in now.own(each.id) if entry.kind == NOTICE)
            notices += Counter(int(one.request_id.rsplit(":", 1)[1]) for one in now.submissions if _is_taken_back(one) and one.request_id is not None)
            ended = [task for task in now.tasks.values() if task.kind == BACKGROUND or (task.kind == SUBAGENT and task.background)]
            assert {task.id: notices[task.id] for task in ended} == {task.id: 1 for task in ended}
            SOMETIMES.update(f"ended: {task.kind}" for task in now.tasks.values())


def _is_taken_back(one: Submission) -> bool:
    """Somebody took a notice back before it was read."""
    return one.kind == NOTICE and isinstance(one.state, Unanswered) and one.state.entry_id is None


WALK: dict[str, int] = {
    # What a walk does next, by weight: work and deaths in the middle of it, much more often than Hypothesis comes by them.
    "ask": 6,
    "ask_and_see_it_through": 6,
    "submit": 3,
    "work_ends": 4,
    "time_passes": 4,
    "answer": 3,
    "kill": 3,
    "crash_soon": 2,
    "crash_while_opening": 2,
    "reopen": 8,
    "close": 1,
    "abort": 1,
    "compact": 1,
    "fork": 1,
    "new_chat": 1,
    "reload": 1,
    "reset": 1,
    "somebody_sets_the_clock": 1,
    "withdraw": 1,
    "stop_one": 1,
    "speak_to_a_subagent": 2,
}


def walk(seed: int, steps: int, history: Callable[[], Histories] = Histories) -> int:
    """One seeded history, judged after each step and at its end; how many effects it had."""
    chance = random.Random(seed)
    machine = history()
    try:
        machine.begin()
        for _ in range(steps):
            step(machine, chance)
            machine.every_store_is_as_it_must_be()
    finally:
        machine.teardown()
    return len(machine.worlds[0].known.effects)


def step(machine: Histories, chance: random.Random) -> None:
    """The next act of a walk: one of those that are possible now."""

    def number() -> int:
        return chance.randrange(8)

    def answers() -> list[AnswerKind]:
        return [chance.choice(machine.kinds) for _ in range(chance.randint(1, 4))]

    def moment() -> str:
        return chance.choice(["before", "stored"])

    acts: dict[str, Callable[[], object]] = {
        "ask": lambda: machine.ask(number(), answers()),
        "ask_and_see_it_through": lambda: machine.ask_and_see_it_through(
            number(), answers(), (chance.randint(1, 5), moment()) if chance.random() < 0.5 else None
        ),
        "submit": lambda: machine.submit(number(), chance.choice(["followUp", "steer", "reject", "write"]), chance.choice([None, number()]), answers()),
        "work_ends": machine.work_ends,
        "time_passes": lambda: machine.time_passes(chance.choice([100, 1_000, 5_000, 60_000])),
        "kill": machine.kill,
        "crash_soon": lambda: machine.crash_soon(chance.randint(1, 9), moment()),
        "close": machine.close,
        "abort": lambda: machine.abort(number(), chance.random() < 0.5),
        "compact": lambda: machine.compact(number()),
        "reload": machine.reload,
        "reset": lambda: machine.reset(number(), chance.choice(["", "from here on"])),
        "somebody_sets_the_clock": lambda: machine.somebody_sets_the_clock(chance.choice([-DAY_MS, -1_000, 1_000, DAY_MS])),
    }
    if not machine.is_open:
        acts = {
            "reopen": lambda: machine.reopen(chance.choice([0, 1, 10 * MINUTE_MS, -DAY_MS]), chance.random() < 0.5),
            "crash_while_opening": lambda: machine.crash_while_opening(moment()),
        }
    elif machine.questions():
        acts["answer"] = lambda: machine.answer(number(), chance.choice(["allow", "deny"]))
    if machine.is_open and machine.worlds[0].known.acknowledged:
        acts["withdraw"] = lambda: machine.withdraw(number())
    if machine.is_open and len(machine.model.conversations) < 4:
        acts["fork"] = lambda: machine.fork(number(), chance.choice([None, number()]))
        acts["new_chat"] = lambda: machine.new_chat(chance.choice(["all", "ask", "edits", "plan"]))
    if machine.is_open and isinstance(machine, Families):
        acts |= {"stop_one": lambda: machine.stop_one(number()), "speak_to_a_subagent": lambda: machine.speak_to_a_subagent(number())}
    names = sorted(acts)
    (chosen,) = chance.choices(names, [WALK[name] for name in names])
    acts[chosen]()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.rule("PR-1", "PR-5", "PR-6", "PR-10", "PR-11", "PR-18", "SU-5", "TK-10", "TK-15", "CX-1", "EX-1", "FB-38", "FB-43")
def test_seeded_walks_hold_all_promises_and_equal_seeds_are_equal_on_all_backends(seed: int, record_property: Any) -> None:
    same = range(1, max(1, settings.default.max_examples // 25 - NEW_WALKS))
    walks = (*PINNED_WALKS, *same, *range(seed, seed + NEW_WALKS))
    effects = 0
    for number in walks:
        try:
            effects += walk(number, 60)
        except BaseException as error:
            error.add_note(f"walk({number}, 60)")
            raise
    record_property("told", f"{len(walks)} seeded walks with {effects} effects of tools, {NEW_WALKS} of them from seed {seed}")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.rule("PR-5", "PR-6", "PR-10", "PR-11", "TK-10", "TK-14", "TK-15", "TK-16", "TO-7", "TO-10", "GE-5", "GE-7", "FB-27")
def test_seeded_walks_with_subagents_and_calls_in_the_background_hold_all_promises(seed: int, record_property: Any) -> None:
    same = range(1, max(3, settings.default.max_examples // 50))
    walks = (*same, *range(seed, seed + NEW_WALKS // 2))
    effects = 0
    for number in walks:
        try:
            effects += walk(number, 40, Families)
        except BaseException as error:
            error.add_note(f"walk({number}, 40, Families)")
            raise
    record_property("told", f"{len(walks)} seeded walks of families with {effects} effects of tools, {NEW_WALKS // 2} of them from seed {seed}")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.rule("PR-1", "PR-5", "PR-6", "PR-10", "PR-18", "SU-6", "TK-10", "TK-13", "TK-15", "CX-1", "EX-1", "FB-33", "FB-38", "FB-43")
def test_random_histories_hold_all_promises_and_are_the_same_on_all_backends(record_property: Any) -> None:
    histories = max(12, settings.default.max_examples // 10)
    run_state_machine_as_test(Histories, settings=settings(max_examples=histories, stateful_step_count=25, deadline=None))
    record_property("told", f"{histories} random histories, among them: {', '.join(sorted(SOMETIMES))}")
