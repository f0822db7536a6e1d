"""Records what happened on a rig, and plays the recording on another one: both must come to the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import msgspec

from pi_durable_tui.clock import Clock
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.models.playback import PlaybackModel, parse
from pi_durable_tui.playback.folder import INPUT, MODEL, Progress
from pi_durable_tui.playback.player import PlainHands, play
from pi_durable_tui.playback.recording.source import read
from pi_durable_tui.playback.recording.story import Recorded, recorded
from pi_durable_tui.playback.steps import Step, parse_steps
from pi_durable_tui.records.codec import encode
from pi_durable_tui.records.messages import AssistantMessage, SystemMessage
from pi_durable_tui.records.submission import Submission
from tests.support.harness_rig import Rig
from tests.support.scripted_model import ScriptedModel


class _Recording(PlaybackModel):
    """A playback model where a rig expects a scripted one: scripts are not needed."""

    def then(self, *scripts: Sequence[object]) -> None:
        assert not scripts


class _Died(Exception):
    """Stands for SIGKILL."""


def same(text: str) -> str:
    return text


async def recording_of(rig: Rig, conversation_id: int, clean: Callable[[str], str] = same) -> Recorded:
    """The chat as texts."""
    return recorded(await read(rig.harness.session, conversation_id), clean, window_tokens=None, remarks=())


def steps_of(made: Recorded) -> tuple[Step, ...]:
    return parse_steps(made.texts[INPUT], INPUT)


async def played(made: Recorded, rig: Rig, progress: Path, *, approval: str = "all") -> Rig:
    """The recording played to its end on `rig`, over its deaths."""

    def model(clock: Clock) -> ScriptedModel:
        gateway: object = _Recording(name="recorded", requests=parse(made.texts[MODEL], MODEL), progress=Progress(progress), clock=clock)
        return gateway  # type: ignore[return-value]

    def die() -> NoReturn:
        raise _Died

    noted: list[Step] = []
    rig.model = model(rig.clock)
    conversation = await rig.start(agent=Agent(model="test/model", approval=approval, cwd=str(rig.path)))
    while True:
        playing = asyncio.ensure_future(
            play(
                steps_of(made),
                taken=len(noted),
                conversation=conversation,
                conversations=rig.harness,
                hands=PlainHands(conversation, rig.harness, lambda _made, _entry: None),
                clock=rig.clock,
                note=noted.append,
                die=die,
            )
        )
        await rig.until(playing.done, jump=True)
        try:
            await playing
        except _Died:
            await rig.kill()
            rig.model = model(rig.clock)
            await rig.open()
            conversation = await rig.harness.conversation(conversation.id)
            await rig.harness.resume()
        else:
            return rig


async def logical_dump(rig: Rig) -> list[str]:
    """Every record of the store without what differs between two runs: times, system prompts, and ids that the player gives."""
    storage = rig.harness.session.storage
    found: list[str] = []
    for conversation in (await storage.conversations(limit=1_000)).items:
        found.append(f"conversation {conversation.id} parent {conversation.parent.entry_id if conversation.parent else None} owner {conversation.owner}")
        for entry in await rig.entries(conversation.id):
            message = entry.message
            if isinstance(message, AssistantMessage):
                message = msgspec.structs.replace(message, usage=None)
            found.append(f"entry {entry.id} {entry.kind} {'' if message is None or isinstance(message, SystemMessage) else encode(message)}")
    found += [f"task {task.id} {task.kind} {task.status} {type(task.outcome).__name__}" for task in await rig.tasks()]
    return [*found, *[_line(each) for each in (await storage.submissions(limit=1_000)).items]]


def _line(submission: Submission) -> str:
    return f"submission {submission.id} {submission.mode} {submission.status} {encode(list(map(encode, submission.content)))}"
