"""What the person of a recorded session does: the steps, and their form in `input.jsonl`. PURE: no I/O, no clock.

A line is `{"NAME": value, "when": …}`. `parse_steps` and `text_of_steps` are each other's opposite.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Literal, TypeAlias, assert_never

import msgspec

from pi_durable_tui.errors import ConfigError
from pi_durable_tui.records.modes import ApprovalMode

FORMAT = "sessions/README.md describes the format."


class When(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A moment, told by what is stored: once all that is named holds.

    Attributes:
        answer_contains: The model was asked, and its running answer holds this text (in what it says, thinks or calls); "": it need not have begun.
        turn: The run is in this turn, counted from 1, or a later one.
        tool: A call of this tool is running.
        call: Only the call of this id counts, for `tool`, `output_contains` and `asks`.
        output_contains: Its output so far holds this text.
        after_ms: So long after that, as a person needs to see it; only where nothing can happen meanwhile.
        asks: A question about a call of this tool is open.
        in_subagent: All of that holds in the conversation of the subagent that is at work; an id: of the one that works for that call.
    """

    answer_contains: str | None = None
    turn: int = 0
    tool: str | None = None
    call: str | None = None
    output_contains: str = ""
    after_ms: int = 0
    asks: str | None = None
    in_subagent: bool | str = False


class Submit(msgspec.Struct, frozen=True, kw_only=True):
    """The person sends a prompt once the conversation is idle."""

    text: str


class Join(msgspec.Struct, frozen=True, kw_only=True):
    """The person sends something while a run is going on: to steer it, or to be answered after it."""

    text: str
    mode: Literal["steer", "followUp"]
    when: When


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """The process dies by SIGKILL at that moment."""

    when: When


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """The person presses Escape at that moment: it stops the subagent at work, or else the run; twice (`all_of_it`): the run with its subagents."""

    when: When
    all_of_it: bool = False


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The person answers the question that is open at that moment."""

    decision: Literal["allow", "always", "deny"]
    when: When


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """The person goes on in a fork from the newest answer (else the newest prompt) that holds that text."""

    at: str


class Approve(msgspec.Struct, frozen=True, kw_only=True):
    """The person changes what needs no question."""

    mode: ApprovalMode


class Compact(msgspec.Struct, frozen=True, kw_only=True):
    """The person lets the older part be summarized, with a look at `focus` ("": at nothing above all)."""

    focus: str


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The person runs a command beside the agent; `shown`: the model reads of it."""

    command: str
    shown: bool


Step: TypeAlias = Submit | Join | Kill | Stop | Answer | Fork | Approve | Compact | Run


class _Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    submit: str | None = None
    steer: str | None = None
    queue: str | None = None
    press: str | None = None
    kill: bool = False
    answer: Literal["allow", "always", "deny"] | None = None
    fork: str | None = None
    approve: ApprovalMode | None = None
    compact: str | None = None
    run: str | None = None
    run_unseen: str | None = None
    when: When | None = None


def parse_steps(text: str, where: str) -> tuple[Step, ...]:
    """What the person does, from the text of an `input.jsonl`.

    Raises:
        ConfigError: Names the line.
    """
    return tuple(_parsed(line, f"Line {number} of {where}") for number, line in enumerate(text.splitlines(), start=1) if line.strip())


def text_of_steps(steps: Iterable[Step]) -> str:
    """The text of an `input.jsonl` with these steps."""
    lines = [json.dumps(msgspec.to_builtins(_line_of(step)), ensure_ascii=False) for step in steps]
    return "".join(f"{line}\n" for line in lines)


def _parsed(text: str, where: str) -> Step:
    try:
        line = msgspec.convert(json.loads(text), _Line)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{where} is not JSON: {error}.", hint=FORMAT) from error
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where} does not fit: {error}.", hint=FORMAT) from error
    said = [name for name in _Line.__struct_fields__ if name != "when" and getattr(line, name) not in (None, False)]
    step = None if len(said) != 1 else _step_at_rest(line) if line.when is None else _step_at(line, line.when)
    if step is not None:
        return step
    raise ConfigError(f"{where} must be one of submit, fork, approve, compact, run, or with when: steer, queue, kill, press escape, answer.", hint=FORMAT)


def _step_at_rest(line: _Line) -> Step | None:
    """The step of a line without a moment: it waits for the conversation to be idle."""
    if line.submit is not None:
        return Submit(text=line.submit)
    if line.fork is not None:
        return Fork(at=line.fork)
    if line.approve is not None:
        return Approve(mode=line.approve)
    if line.compact is not None:
        return Compact(focus=line.compact)
    command = line.run if line.run is not None else line.run_unseen
    return None if command is None else Run(command=command, shown=line.run is not None)


def _step_at(line: _Line, when: When) -> Step | None:
    """The step of a line with a moment."""
    if line.kill:
        return Kill(when=when)
    if line.press in ("escape", "escape escape"):
        return Stop(when=when, all_of_it=line.press != "escape")
    if line.answer is not None:
        return Answer(decision=line.answer, when=when)
    text = line.steer if line.steer is not None else line.queue
    return None if text is None else Join(text=text, mode="steer" if line.steer is not None else "followUp", when=when)


def _line_of(step: Step) -> _Line:
    match step:
        case Submit(text=text):
            return _Line(submit=text)
        case Join(text=text, mode=mode, when=when):
            return _Line(steer=text, when=when) if mode == "steer" else _Line(queue=text, when=when)
        case Kill(when=when):
            return _Line(kill=True, when=when)
        case Stop(when=when, all_of_it=all_of_it):
            return _Line(press="escape escape" if all_of_it else "escape", when=when)
        case Answer(decision=decision, when=when):
            return _Line(answer=decision, when=when)
        case Fork(at=at):
            return _Line(fork=at)
        case Approve(mode=mode):
            return _Line(approve=mode)
        case Compact(focus=focus):
            return _Line(compact=focus)
        case Run(command=command, shown=shown):
            return _Line(run=command) if shown else _Line(run_unseen=command)
        case _ as never:
            assert_never(never)
