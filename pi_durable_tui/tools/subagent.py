"""The tool `subagent`: hands work to an agent with a context of its own (rules AG-2, TO-7)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from pi_durable_tui.harness.ports import Delegation, Join, SubagentInfo, Tool, ToolContext, ToolResult
from pi_durable_tui.records.messages import Text

DESCRIPTION = """\
Hand a self-contained piece of work to a subagent. It has its own context, the same tools (without this one) and at most your rights; \
it sees nothing of this conversation, so put all it needs into the prompt. Its final answer is the result. With background true the \
call returns at once and the answer comes later as a message; you may go on working, send it more (subagents action message), wait \
for it (subagent_wait) or stop it."""

INSTRUCTIONS = "You are a subagent. Do the work you are given, without asking back, and end with a complete and concise report."


class Work(msgspec.Struct):
    """Arguments of `subagent`."""

    name: Annotated[str, msgspec.Meta(description="What to call it: two or three words.", max_length=60)]
    prompt: Annotated[str, msgspec.Meta(description="The whole task.", min_length=1)]
    agent: Annotated[str, msgspec.Meta(description="A kind of agent from the list you were given; without: one like you.")] = ""
    tools: Annotated[list[str] | None, msgspec.Meta(description="Only these tools; without: all of yours.")] = None
    background: Annotated[bool, msgspec.Meta(description="Return at once and report later.")] = False


class Number(msgspec.Struct):
    """Arguments of `subagent_wait`."""

    subagent: Annotated[int, msgspec.Meta(description="Its number, as its start told it.")]


class Care(msgspec.Struct):
    """Arguments of `subagents`."""

    action: Annotated[Literal["list", "message", "stop"], msgspec.Meta(description="What to do.")]
    subagent: Annotated[int | None, msgspec.Meta(description="Its number; for message and stop.")] = None
    text: Annotated[str, msgspec.Meta(description="What to tell it; for message.")] = ""


def subagent_tools() -> tuple[Tool, ...]:
    """The three tools about subagents, in the order in which models are told of them."""
    start = Tool(
        name="subagent",
        description=DESCRIPTION,
        arguments=Work,
        title=lambda work: f"{work.name}: {' '.join(work.prompt.split())}"[:200],
        delegate=lambda work: Delegation(
            name=work.name,
            prompt=work.prompt,
            instructions=INSTRUCTIONS,
            profile=work.agent,
            tools=tuple(work.tools) if work.tools is not None else None,
            background=work.background,
        ),
        access="read",
        replay="safe",
    )
    wait = Tool(
        name="subagent_wait",
        description="Wait for a subagent that runs in the background; the result is its answer.",
        arguments=Number,
        title=lambda number: f"wait for subagent {number.subagent}",
        delegate=lambda number: Join(number.subagent),
        access="read",
        replay="safe",
    )
    care = Tool(
        name="subagents",
        description="List your subagents, tell a running one something (it hears it after its current tools), or stop one.",
        arguments=Care,
        title=lambda care: " ".join(str(part) for part in (care.action, care.subagent) if part is not None),
        execute=_care,
        access="read",
        replay="safe",
    )
    return start, wait, care


async def _care(arguments: Care, context: ToolContext) -> ToolResult:
    if arguments.action == "list":
        found = await context.subagents.list()
        return _said("\n".join(_line(info) for info in found) or "There are no subagents.")
    if arguments.subagent is None:
        return _said(f"The action {arguments.action} needs the number of a subagent.", is_error=True)
    if arguments.action == "message":
        is_told = bool(arguments.text.strip()) and await context.subagents.message(arguments.subagent, arguments.text)
        return _said("It was told.") if is_told else _said(f"Subagent {arguments.subagent} does not run, or there was nothing to tell.", is_error=True)
    if await context.subagents.stop(arguments.subagent):
        return _said(f"Subagent {arguments.subagent} is being stopped.")
    return _said(f"Subagent {arguments.subagent} does not run.", is_error=True)


def _line(info: SubagentInfo) -> str:
    state = "runs" if info.is_running else "has ended"
    where = " in the background" if info.background else ""
    return f"{info.task_id} {info.name}: {state}{where}; last said: {' '.join(info.said.split())[-200:] or 'nothing yet'}"


def _said(text: str, *, is_error: bool = False) -> ToolResult:
    return ToolResult(content=(Text(text=text),), is_error=is_error)
