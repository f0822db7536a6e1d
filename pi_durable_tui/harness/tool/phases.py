"""The phases of `pi.tool`: call -> (approve) -> execute | collect (rules TO-1 to TO-5, TO-8, TO-9).

`call` does everything up to the intent and, once the intent is stored, carries it out. The phase `execute` itself is entered only
when a process died or closed after the intent: then the question is whether to run again at all.
"""

from __future__ import annotations

from pi_durable_tui.harness.approval import PERMISSIONS, ApprovalRequest, Verdict, grants_of, rule_text
from pi_durable_tui.harness.extensions.hooks import Blocked, HookedCall, must_pass
from pi_durable_tui.harness.extensions.task_definition import Advance, Move, TaskDefinition, Wait
from pi_durable_tui.harness.kinds import QUESTION, TOOL
from pi_durable_tui.harness.live import LIVE, Agent
from pi_durable_tui.harness.ports import Diagnostic, Reconciled, ToolResult
from pi_durable_tui.harness.runs import as_object
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.harness.tool import decide
from pi_durable_tui.harness.tool.background import put_in_background
from pi_durable_tui.harness.tool.carry import carry_out, leftovers, stored_output, tool_context
from pi_durable_tui.harness.tool.checkpoint import Answer, Approve, CallInput, Execute, QuestionInput
from pi_durable_tui.harness.tool.decide import Admitted, Refusal
from pi_durable_tui.harness.tool.delegate import collect, delegate
from pi_durable_tui.harness.tool.finish import close_tool, finish
from pi_durable_tui.harness.tool.output import slot_of
from pi_durable_tui.harness.tool.rights import acting
from pi_durable_tui.harness.transcript import agent_of
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.json import Json, JsonObject, strict
from pi_durable_tui.records.task import Completed, Sleeping, Task
from pi_durable_tui.session.transaction import Transaction


async def call(runtime: TaskRuntime) -> None:
    """Validate, run the hooks, validate again, and ask or go on to the intent. A kill in here repeats all of it (rule TO-3)."""
    asked = from_json(runtime.task.input, CallInput)
    agent = await acting(runtime)
    tools = runtime.services.registry.tools(agent)
    admitted = decide.admit(tools, asked, asked.arguments)
    arguments = asked.arguments
    if isinstance(admitted, Admitted):
        changed = await _hooked(runtime, asked)
        arguments = arguments if isinstance(changed, Refusal) else changed
        admitted = changed if isinstance(changed, Refusal) else decide.admit(tools, asked, changed)
    if isinstance(admitted, Refusal):
        await finish(runtime, admitted.result)
        return
    verdict = await _consult(runtime, agent, admitted, arguments)
    match verdict.decision:
        case "deny":
            await finish(runtime, Refusal("blocked", verdict.reason).result)
        case "ask":
            await _ask(runtime, asked, admitted, arguments, verdict)
        case "allow":
            await _intend_and_run(runtime, admitted, arguments, approved_by=None)


async def approve(runtime: TaskRuntime) -> None:
    """A person has answered: carry out exactly what was asked, or say that it was not allowed."""
    at = from_json(runtime.checkpoint, Approve)
    question = await runtime.services.session.storage.task(at.question)
    outcome = question.outcome if question is not None else None
    if not isinstance(outcome, Completed):
        await finish(runtime, decide.UNANSWERED.result)
        return
    answer = from_json(outcome.value, Answer)
    if answer.decision not in {"allow", "always"}:
        await finish(runtime, decide.denied(answer.by, answer.note).result)
        return
    asked = from_json(runtime.task.input, CallInput)
    agent = await acting(runtime)
    admitted = decide.admit(runtime.services.registry.tools(agent), asked, at.arguments)
    if isinstance(admitted, Refusal):
        await finish(runtime, admitted.result)
    else:
        await _intend_and_run(runtime, admitted, at.arguments, approved_by=answer.by)


async def execute(runtime: TaskRuntime) -> None:
    """The call was cut off after its intent: run it again only if that is safe, ask the world, or say that it may have run (TO-2, TO-8)."""
    at = from_json(runtime.checkpoint, Execute)
    asked = from_json(runtime.task.input, CallInput)
    agent = await acting(runtime)
    admitted = decide.admit(runtime.services.registry.tools(agent), asked, at.arguments)
    current = admitted.tool.replay if isinstance(admitted, Admitted) else None
    verdict = decide.rerun(at.replay, current)
    if isinstance(admitted, Refusal) or verdict == "interrupted":
        await _finish_cut_off(runtime, asked)
    elif verdict == "run":
        await _run(runtime, admitted, at)
    else:
        await _reconcile(runtime, asked, admitted, at)


async def _hooked(runtime: TaskRuntime, asked: CallInput) -> JsonObject | Refusal:
    """What the hooks make of a call: its arguments, or others, or a no. A hook's error blocks the call."""
    services, arguments = runtime.services, asked.arguments
    agent = await agent_of(services, runtime.task.conversation_id)
    for hook in (hooks.before_tool for hooks in services.registry.hooks(agent)):
        if hook is None:
            continue
        try:
            answer = await hook(_hooked_call(runtime, asked, arguments))
            if answer is not None and not isinstance(answer, Blocked):
                arguments = _object(strict(answer))
        except BaseException as error:  # foreign code: its failure blocks the call and is reported
            if must_pass(error):
                raise
            text = f"{type(error).__name__}: {error}"
            services.hook_failed("before_tool", text)
            return Refusal("blocked", f"The call was not run: a check before it failed ({text}).")
        if isinstance(answer, Blocked):
            return Refusal("blocked", answer.message)
    return arguments


def _object(value: Json) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError(f"it gave {type(value).__name__} where arguments are wanted")
    return value


def _hooked_call(runtime: TaskRuntime, asked: CallInput, arguments: JsonObject) -> HookedCall:
    return HookedCall(conversation_id=runtime.task.conversation_id, task_id=runtime.task_id, name=asked.name, arguments=arguments)


async def _consult(runtime: TaskRuntime, agent: Agent, admitted: Admitted, arguments: JsonObject) -> Verdict:
    """What the approver says to exactly these arguments, knowing what they would touch and what was permitted (rules SA-12, SA-13)."""
    tool = admitted.tool
    effects = None
    try:
        effects = await tool.effects(admitted.arguments, await tool_context(runtime)) if tool.effects is not None else None
    except BaseException as error:  # foreign code: a tool that cannot tell what it would touch is asked about
        if must_pass(error):
            raise
        runtime.services.hook_failed("effects", f"{type(error).__name__}: {error}")
    grants = grants_of(await runtime.services.session.snapshot(PERMISSIONS))
    request = ApprovalRequest(
        agent=agent,
        tool=tool.name,
        access=tool.access,
        arguments=arguments,
        effects=effects,
        rules=tuple(granted.rule for granted in grants.granted),
    )
    return runtime.services.approver(request)


async def _ask(runtime: TaskRuntime, asked: CallInput, admitted: Admitted, arguments: JsonObject, verdict: Verdict) -> None:
    """Store the question, then wait for a person; a kill at the question gives the same question again (rules TO-3, TU-19)."""
    tool = admitted.tool
    context = await tool_context(runtime)
    details = await tool.preview(admitted.arguments, context) if tool.preview is not None else None
    told: JsonObject = {"reason": verdict.reason} if verdict.reason else {}
    told |= {"rule": rule_text(verdict.rule)} if verdict.rule is not None else {}
    details = {**(details or {}), **told} if told else details
    rule = as_object(verdict.rule) if verdict.rule is not None else None
    title = tool.title(admitted.arguments)

    async def write(transaction: Transaction, task: Task) -> Move:
        live = await transaction.document(LIVE, task.conversation_id)
        question = QuestionInput(tool_task=task.id, name=asked.name, title=title, arguments=arguments, details=details, rule=rule)
        person = runtime.child(transaction, QUESTION, as_object(question), Sleeping(checkpoint={"phase": "ask"}, until=None))
        slot = slot_of(live.value, task.id)
        if slot is not None:
            slot |= {"status": "asking", "title": title, "arguments": arguments, "question": person.id}
            slot |= {"questionDetails": details} if details is not None else {}
        return Wait(as_object(Approve(arguments=arguments, question=person.id)), (person.id,))

    await runtime.commit(write)


async def _intend_and_run(runtime: TaskRuntime, admitted: Admitted, arguments: JsonObject, *, approved_by: str | None) -> None:
    """Store the intent, and only then do it (rule TO-1). No intent without room for its outcome (rule TO-9)."""
    tool = admitted.tool
    if tool.delegate is not None:
        await delegate(runtime, tool.delegate(admitted.arguments), arguments, title=tool.title(admitted.arguments), approved_by=approved_by)
        return
    if not await runtime.services.session.storage.has_room():
        await finish(runtime, decide.NO_ROOM.result)
        return
    if tool.background is not None and tool.background(admitted.arguments):
        await put_in_background(runtime, tool, arguments, title=tool.title(admitted.arguments))
        return
    prepared: Json = None
    if tool.prepare is not None:
        prepared_or_refusal = await tool.prepare(admitted.arguments, await tool_context(runtime))
        if isinstance(prepared_or_refusal, ToolResult):
            await finish(runtime, prepared_or_refusal)
            return
        prepared = prepared_or_refusal
    title = tool.title(admitted.arguments)
    intent = Execute(arguments=arguments, replay=tool.replay, title=title, prepared=prepared, approved_by=approved_by)

    async def write(transaction: Transaction, task: Task) -> Move:
        live = await transaction.document(LIVE, task.conversation_id)
        slot = slot_of(live.value, task.id)
        if slot is not None:
            slot |= {"status": "running", "title": title, "arguments": arguments, "startedAtMs": transaction.now_ms}
            slot.pop("question", None)
            slot.pop("questionDetails", None)
        return Advance(as_object(intent))

    await runtime.commit(write)
    await _run(runtime, admitted, intent)


async def _run(runtime: TaskRuntime, admitted: Admitted, intent: Execute) -> None:
    """Do it, and store the outcome."""
    asked = from_json(runtime.task.input, CallInput)
    await finish(runtime, await carry_out(runtime, admitted, _hooked_call(runtime, asked, intent.arguments), prepared=intent.prepared))


async def _reconcile(runtime: TaskRuntime, asked: CallInput, admitted: Admitted, at: Execute) -> None:
    """Ask the world what became of the call: done, not started, or in doubt (rule TO-8)."""
    found = await _found(runtime, admitted, at)
    match found.verdict:
        case "done":
            result = found.result or ToolResult()
            remark = Diagnostic("info", "reconciled", f"The process was interrupted after tool {asked.name} had done its work.")
            await finish(runtime, ToolResult(content=result.content, details=result.details, diagnostics=(*result.diagnostics, remark)))
        case "not_started":
            await _run(runtime, admitted, at)
        case "in_doubt":
            await _finish_cut_off(runtime, asked)


async def _found(runtime: TaskRuntime, admitted: Admitted, at: Execute) -> Reconciled:
    """What the tool finds in the world; a tool that cannot look leaves its call in doubt."""
    if admitted.tool.reconcile is None:
        return Reconciled(verdict="in_doubt")
    try:
        return await admitted.tool.reconcile(admitted.arguments, await tool_context(runtime, prepared=at.prepared))
    except BaseException as error:  # foreign code: nobody knows how far the call came
        if must_pass(error):
            raise
        runtime.services.hook_failed("reconcile", f"{type(error).__name__}: {error}")
        return Reconciled(verdict="in_doubt")


async def _finish_cut_off(runtime: TaskRuntime, asked: CallInput) -> None:
    """Nobody knows how far it came: end what is left of it in the world, and say so."""
    remarks = (decide.interrupted(asked.name), *await leftovers(runtime, asked.name))
    await finish(runtime, decide.cut_short(await stored_output(runtime), *remarks), is_cut_off=True)


DEFINITIONS = (
    TaskDefinition(
        kind=TOOL, phases={"call": call, "approve": approve, "execute": execute, "collect": collect}, on_ending=close_tool, limit_report="task_interrupted"
    ),
    TaskDefinition(kind=QUESTION, phases={}),
)
"""The task kinds `pi.tool` and `pi.question`. A question has no phases: a person ends it."""
