"""Print mode (`-p`): one prompt in, one answer on stdout, everything else on stderr (CASE-H3).

It works on the same durable store as the app: a run that is killed is finished by `pidurable -c -p`. Nobody is there to be asked, so
every question is answered with "deny", and stderr says how to allow more. SIGTERM, SIGHUP and SIGINT close the session cleanly
(rule CL-7). Nothing goes to stdout before the answer is committed; with JSON, one event per committed change.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import TextIO

import msgspec

from pi_durable_tui.cli.chat import Opened, new_agent, open_wished, problem_of
from pi_durable_tui.cli.project.commands import commands_of, run
from pi_durable_tui.cli.project.prompting import prepared
from pi_durable_tui.cli.project.workspace import start_remarks
from pi_durable_tui.cli.report import note
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.cli.signals import until_signal
from pi_durable_tui.cli.streams import piped_text, prompt_of
from pi_durable_tui.cli.wish import Wish
from pi_durable_tui.clock import Clock
from pi_durable_tui.context.project_settings import ProjectSettings
from pi_durable_tui.errors import BadRequest, InternalError, ModelError, NotFound, PidurableError, Refused, SessionClosed
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.generation.limits import LIMIT
from pi_durable_tui.harness.kinds import BACKGROUND
from pi_durable_tui.harness.live import RetryWait
from pi_durable_tui.records.messages import AssistantMessage, Content, Problem, Text
from pi_durable_tui.records.submission import Done, Submission, Unanswered
from pi_durable_tui.tui.following import Following, Sight
from pi_durable_tui.tui.safe_text import safe_json, safe_text

_BY = "print mode"
_ALLOW_MORE = "To allow it: --approve edits or --approve all."


def print_answer(setup: Setup, wish: Wish) -> int:
    """Run to the end of the work and return the exit code; the answer is on stdout.

    Raises:
        BadRequest: There is no prompt and nothing to continue. Nothing was started.
        ConfigError: There is no model, or its key is missing. Nothing was sent.
        ModelError: The model gave no answer; what happened is stored.
    """
    if not (wish.resume or wish.trust):
        problem = asyncio.run(problem_of(setup, new_agent(setup, wish, ProjectSettings()).model))
        if problem is not None:
            raise problem
    has_other = wish.resume or bool(wish.prompt.strip())
    piped = piped_text(sys.stdin.fileno() if sys.stdin else None, is_needed=not has_other, note=note)
    if not prompt_of(piped, wish.prompt) and not wish.resume:
        raise BadRequest("Print mode needs a prompt, and none was given or piped in. Nothing was started.", hint='pidurable -p "PROMPT"')
    return asyncio.run(until_signal(_work(setup, wish, piped, sys.stdout)))


async def _work(setup: Setup, wish: Wish, piped: str, out: TextIO) -> None:
    opened = await open_wished(setup, wish)
    followers: list[asyncio.Future[None]] = []
    try:
        if opened.problem:
            raise opened.problem
        for remark in (*start_remarks(opened.workspace, opened.loaded), *opened.remarks):
            note(remark)
        prompt = await _prompt(setup, opened, piped, wish.prompt)
        if prompt is None:
            return
        followers.append(asyncio.ensure_future(_attend(opened, setup.clock)))
        if wish.as_json:
            followers.append(asyncio.ensure_future(_print_events(opened.conversation, out)))
        try:
            answer = await _while(followers, _answer(opened, prompt))
        finally:
            await _remark_on_price(opened, wish)
            for node in opened.harness.task_graph():
                if node.kind == BACKGROUND:
                    note(f"it went on in the background, and ends with this run: {safe_text(node.name)}")
    finally:
        await opened.close()
        await asyncio.gather(*followers)  # the close ended them, after they had got everything
    if not wish.as_json:
        await _write(out, safe_text(answer).rstrip("\n") + "\n")


async def _while(followers: list[asyncio.Future[None]], work: Coroutine[None, None, str]) -> str:
    """The result of `work`; given up when a follower fails first (nobody reads the events, or answers the questions)."""
    answering = asyncio.ensure_future(work)
    try:
        await asyncio.wait([answering, *followers], return_when=asyncio.FIRST_COMPLETED)
        for follower in followers:
            if follower.done():
                follower.result()
        return await answering
    finally:
        answering.cancel()


async def _prompt(setup: Setup, opened: Opened, piped: str, words: str) -> tuple[Content, ...] | None:
    """What to hand in; empty when there is nothing to say. None: a command of an extension was all, and has run.

    Raises:
        EnvironmentFailure: Such a command failed.
    """
    command = commands_of(opened.loaded.extensions, ()).typed(words)
    if command is not None:
        said: list[str] = []

        async def submit(text: str) -> None:  # handed in once the command has ended, so that all of it has one answer
            said.append(text)

        await run(*command, harness=opened.harness, conversation=opened.conversation, say=note, submit=submit)
        return tuple(Text(text=text) for text in (piped, *said) if text.strip()) if said else None
    if not prompt_of(piped, words):
        return ()
    if words.lstrip().startswith("/"):
        _remark_on_command(words)
    ready = await prepared(words, setup=setup, opened=opened, model=(await opened.conversation.agent()).model, before=piped)
    for remark in ready.remarks:
        note(remark)
    return ready.content


def _remark_on_command(words: str) -> None:
    """Say so when a command of the app is meant for it alone."""
    from pi_durable_tui.tui.commands import read  # noqa: PLC0415 - it takes parts of the app along

    typed = read(words)
    if typed is not None and typed.command is not None:
        note(f"/{typed.name} is a command of the app; in print mode it goes to the model, as any other words.")


async def _answer(opened: Opened, prompt: Sequence[Content]) -> str:
    """Finish what is left, then the prompt if there is one, and return the text of the final answer.

    Raises:
        PidurableError: There is none; says why.
    """
    conversation = opened.conversation
    left = [item for item in (await conversation.view()).submissions if item.is_open]
    if prompt:
        submission = await conversation.submit(prompt)
        return await _answer_to(opened, await conversation.settled(submission.id))
    await opened.harness.resume()
    await conversation.idle()
    storage = opened.harness.session.storage
    settled = [await storage.submission(item.id) for item in left]
    for item in reversed([item for item in settled if item is not None]):
        if item.is_open:
            note(f"a queued message waits for the next prompt: submission {item.id}.")
        else:
            return await _answer_to(opened, item)
    if not left:
        note("nothing was left to do; this is the newest answer.")
    return await _newest_answer(conversation)


async def _answer_to(opened: Opened, submission: Submission) -> str:
    match submission.state:
        case Done(answer_entry_id=int() as entry_id):
            stored = await opened.harness.session.storage.entry(entry_id)
            if stored is not None and isinstance(stored.entry.message, AssistantMessage):
                return stored.entry.message.text
            raise InternalError(f"submission {submission.id} names entry {entry_id} as its answer, which is none")
        case Unanswered(problem=problem):
            raise _error(problem)
        case _:
            raise InternalError(f"submission {submission.id} is {submission.status} after it was waited for")


async def _remark_on_price(opened: Opened, wish: Wish) -> None:
    """Say so when the limit on cost could not hold."""
    if wish.max_cost_usd is None or opened.harness.failed is not None:
        return
    unknown = [model for model, used in (await opened.conversation.view()).usage.models.items() if used.cost_usd is None]
    if unknown:
        note(f"the price of {unknown[0]} is not known, so --max-cost did not count it.")


async def _newest_answer(conversation: Conversation) -> str:
    for stored in reversed(await conversation.entries()):
        message = stored.entry.message
        if isinstance(message, AssistantMessage) and message.stop_reason in ("stop", "length"):
            return message.text
    raise Refused("There is no answer in this chat yet. Nothing was changed.", hint='Ask something: pidurable -c -p "PROMPT"')


def _error(problem: Problem) -> PidurableError:
    """Why there is no answer, as an error of the command line. PURE."""
    hint = "What happened is stored: pidurable log shows it, pidurable --continue goes on from there."
    said = f" {problem.message}" if problem.message else ""
    if problem.reason == LIMIT:
        return Refused(f"The run was ended before it had an answer.{said}", hint=f'{hint} With another limit: pidurable -c -p "go on"')
    return ModelError(f"The run ended without an answer ({problem.reason}).{said}", hint=hint)


async def _attend(opened: Opened, clock: Clock) -> None:
    """Until the session closes: answer every question of the chat and of its subagents with "deny" and say so once per tool; say what is waited for."""
    told: set[str] = set()
    waited: set[tuple[int, int]] = set()
    answered: set[int] = set()
    problems: list[PidurableError] = []

    async def deny(conversation_id: int, question: int) -> None:
        try:
            conversation = await opened.harness.conversation(conversation_id)
            await conversation.answer(question, "deny", by=_BY, note="Nobody is there to be asked in print mode.")
        except (NotFound, SessionClosed):
            pass  # it was stopped meanwhile, or everything was
        except PidurableError as problem:
            give_up(problem)

    def look(sight: Sight) -> None:
        for wait in sight.waits():
            if (wait.attempt, wait.until_ms) not in waited:
                waited.add((wait.attempt, wait.until_ms))
                note(_wait_words(wait, now_ms=clock.now_ms()))
        for conversation_id, slot in sight.questions():
            if slot.question is not None and slot.question not in answered:
                answered.add(slot.question)
                group.create_task(deny(conversation_id, slot.question))
                if slot.name not in told:
                    told.add(slot.name)
                    note(f"{slot.name} was not allowed: {slot.title} {_ALLOW_MORE}")

    def give_up(problem: PidurableError) -> None:
        problems.append(problem)
        following.cancel()

    async with asyncio.TaskGroup() as group:
        watch = Following(opened.conversation, opened.harness.conversation, on_sight=look, on_problem=give_up)
        following = group.create_task(watch.run())
    if problems:
        raise problems[0]


def _wait_words(wait: RetryWait, *, now_ms: int) -> str:
    """Why nothing comes for a while. PURE."""
    said = f" {wait.problem.message}" if wait.problem.message else ""
    return f"attempt {wait.attempt} failed ({wait.problem.reason}).{said} The next one begins in {max(0, wait.until_ms - now_ms + 999) // 1000} s."


async def _print_events(conversation: Conversation, out: TextIO) -> None:
    """One JSON event per line until the session closes."""
    events: AsyncIterator[object] = conversation.watch_events()
    async for event in events:
        await _write(out, safe_json(msgspec.json.encode(event)) + "\n")


async def _write(out: TextIO, text: str) -> None:
    """Write in a thread: a reader that is slow, or stopped, must not hold up commits."""

    def write() -> None:
        out.write(text)
        out.flush()

    await asyncio.to_thread(write)
