"""What adapters implement for the harness: models, tools and the environment tools act in.

The harness knows these shapes only. Failures of models and tools are values here, because the transcript must show them;
exceptions are for bugs, and cancellation always passes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from pi_durable_tui.records.document import Definition
from pi_durable_tui.records.json import Json, JsonObject
from pi_durable_tui.records.messages import Content, Message, StopReason, Usage
from pi_durable_tui.records.modes import ThinkingLevel

# ---------------------------------------------------------------------------------------------------------------- models

FailureReason: TypeAlias = Literal[
    "rate_limit",
    "overloaded",
    "server",
    "connection",
    "timeout",
    "auth",
    "quota",
    "context_overflow",
    "thinking_refused",  # thoughts of earlier answers were not taken back (CASE-B9)
    "invalid_request",
    "no_model",
    "unknown",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as the model is told of it. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request, valid for every provider: each call has exactly one result, in order (rule CX-1)."""

    model: str  # "provider/name"
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    thinking: ThinkingLevel = "off"
    session_id: str = ""  # the conversation's provider-facing UUIDv7 (rule GE-9)
    deferred: Json = None  # the handle of a deferred answer: ask for that one instead of sending the request again (rule GE-7)
    options: JsonObject = field(default_factory=dict[str, Json])  # timeout_ms, max_output_tokens, headers …


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More reasoning; a signature closes the block it belongs to."""

    text: str
    signature: str | None = None
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """More of one call. `key` tells the calls of an answer apart, in the order of their first delta; `arguments` is a piece of JSON text."""

    key: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class UsageReport:
    """What the request has used so far; the last one counts."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer is complete. `length` means: cut at the output limit, no call of it may run."""

    stop_reason: StopReason  # stop, toolUse or length


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailed:
    """The request failed; what came before stays. Retryable ones are retried by the harness only, never by a gateway."""

    reason: FailureReason
    message: str  # the provider's words, no secret in them
    retryable: bool
    retry_after_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferred:
    """The provider will have the answer later: ask again with `handle` after `poll_after_ms` (rule GE-7)."""

    handle: JsonObject
    poll_after_ms: int


ModelEvent: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta | UsageReport | Finished | ModelFailed | Deferred


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What is known of a model. None: unknown."""

    context_window_tokens: int | None = None
    max_output_tokens: int | None = None
    thinking_levels: tuple[ThinkingLevel, ...] = ("off",)
    takes_images: bool | None = None


class ModelGateway(Protocol):
    """How models are reached."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Send the request once and yield what comes, ending with exactly one Finished, ModelFailed or Deferred.

        Closing the generator (or cancelling its consumer) ends the request at once. Never raises for anything a provider does.
        """
        ...

    async def info(self, model: str) -> ModelInfo:
        """What is known of `model`; never the network."""
        ...

    async def warm_up(self) -> None:
        """Load what the first request needs, off the event loop. May be called again; never raises."""
        ...

    async def close(self) -> None: ...


# ----------------------------------------------------------------------------------------------------------------- tools

Replay: TypeAlias = Literal["safe", "unsafe", "reconcile"]
Access: TypeAlias = Literal["read", "edit", "command"]
Level: TypeAlias = Literal["info", "warn", "error"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A remark of the harness on a result, apart from its content. `code` is stable (rule TO-5)."""

    level: Level
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool gives back.

    Attributes:
        details: For people (a diff, an exit status, where the full output is), never sent to the model.
        terminate: The run ends after this round, without another request (rule TO-6).
        handoff: The context starts anew with this text after this round (rule TO-6).
        add_tools: Names to add to the conversation's selection of tools; without effect where all tools are offered.
        usage: What the tool spent, counted under its name.
        documents: Steps from the value of a document of the conversation to its next one, made in the commit that stores the result.
    """

    content: tuple[Content, ...] = ()
    is_error: bool = False
    details: JsonObject | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    terminate: bool = False
    handoff: str | None = None
    add_tools: tuple[str, ...] = ()
    usage: Usage | None = None
    documents: tuple[tuple[Definition, Callable[[JsonObject], JsonObject]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """Work for a subagent: a conversation of its own with at most the rights of the one that asks (rules TO-7, SA-14).

    Attributes:
        name: What to call it on the screen and in its report.
        model: None: the asking conversation's.
        profile: The kind of agent that works, by the name of an installed `AgentProfile`; "": the asking conversation's agent.
        tools: Names; None: all of the asking conversation's, or of the profile. Tools that delegate are never among them.
        background: The call returns at once, and the answer comes later as a message.
    """

    name: str
    prompt: str
    instructions: str = ""
    profile: str = ""
    model: str | None = None
    tools: tuple[str, ...] | None = None
    background: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProfile:
    """A kind of subagent: what it is told, what it may use and how much (rule SA-14).

    Attributes:
        description: When it is the right one; for the model that asks.
        model: None: the asking conversation's. So is `thinking`.
        tools: Names; of those only what the asking conversation has. None: all of them.
        max_turns: As `max_tokens` (read and written) and `max_cost_usd`, for the run of each subagent, over all restarts; None: no own limit.
    """

    name: str
    description: str
    instructions: str = ""
    model: str | None = None
    thinking: ThinkingLevel | None = None
    tools: tuple[str, ...] | None = None
    max_turns: int | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Join:
    """Wait for a subagent that runs in the background; `task_id` as its start told it."""

    task_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentInfo:
    """A subagent of a conversation. `said` is the end of what it said last."""

    task_id: int
    conversation_id: int
    name: str
    is_running: bool
    background: bool
    said: str


class Subagents(Protocol):
    """The subagents of the conversation that calls."""

    async def list(self) -> tuple[SubagentInfo, ...]:
        """Those that run, and those that ended, by id."""
        ...

    async def message(self, task_id: int, text: str) -> bool:
        """Let a running one hear `text` after its current tool round; False when it does not run."""
        ...

    async def stop(self, task_id: int) -> bool:
        """Stop a running one, durably; False when it does not run."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundInfo:
    """A call that went on behind its result. `details`: what its own result says for people, once it has ended by itself."""

    task_id: int
    name: str
    title: str
    started_at_ms: int
    is_running: bool
    details: JsonObject | None = None


class BackgroundCalls(Protocol):
    """The calls of the conversation that go on behind their results (rule TO-10)."""

    async def list(self) -> tuple[BackgroundInfo, ...]:
        """Those that run, and those that ended, by id."""
        ...

    async def stop(self, task_id: int) -> bool:
        """Stop a running one, durably; False when it does not run."""
        ...

    async def wait(self, task_id: int, *, limit_ms: float) -> bool:
        """Wait until one has ended (True), at most `limit_ms`; True as well when there is none of that id."""
        ...


class Environment(Protocol):
    """The files and processes that the tools of one conversation act on. `tools/environment.py` is the real one."""

    @property
    def cwd(self) -> str:
        """The absolute working directory of the conversation."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a running tool is given.

    Attributes:
        environment: Files and processes.
        output: Adds running output; the harness stores it before it is shown (rule TO-4). Cheap, never waits.
        prepared: What `prepare` returned and the intent stored; None for tools without it.
        started: Stores facts about what was started (pid, start time, boot id) beside the intent; returns once they are stored.
        call_id: Unique per call, stable over a re-run; safe in file names.
        subagents: The subagents of the conversation.
        background: Its calls that go on behind their results.
        in_background: The number of the task when this call goes on behind its result; None: its result is waited for.
        document: Gives the committed value of a document of the conversation; the caller's own copy.
    """

    environment: Environment
    output: Callable[[str], None]
    prepared: Json
    started: Callable[[JsonObject], Awaitable[None]]
    call_id: str
    subagents: Subagents
    background: BackgroundCalls
    document: Callable[[Definition], Awaitable[JsonObject]]
    in_background: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """What the world says of an interrupted call: done (with its result), not_started (run it), in_doubt (rule TO-8)."""

    verdict: Literal["done", "not_started", "in_doubt"]
    result: ToolResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What a call would touch, as far as its tool can tell; an approver decides by it (rules SA-12, SA-13).

    Attributes:
        root: The working directory of the conversation, links resolved.
        directory: Where the call would act, links resolved.
        command: The shell command it would run; None: none.
        paths: The files it would change, absolute, links resolved.
        reads: The files, and the folders with all that is below them, whose content it would show to the model; absolute, links resolved.
    """

    root: str
    directory: str
    command: str | None = None
    paths: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool the agent may call.

    Attributes:
        arguments: A type, for most a msgspec Struct; its JSON schema is what the model is told, and it validates the arguments.
        parameters: The JSON schema of an object that the model is told instead; None: that of `arguments`.
        check: (arguments) -> what does not fit beyond their type, in one sentence; None: they fit. Pure.
        execute: (arguments, context) -> result. Cancellation means abort: it must leave no process behind. None: it delegates.
        delegate: (arguments) -> work for a subagent, which the harness starts and waits for. None: it executes.
        title: (arguments) -> one line that says what the call does, for the screen and for approval.
        access: What approval modes look at: read, edit or command.
        replay: Whether an interrupted call may run again by itself (rules TO-2, TO-8).
        prepare: For `reconcile`: reads the world before the intent; the value is stored with it and given back in `context.prepared`.
            A ToolResult instead of a value refuses the call before anything is done.
        reconcile: For `reconcile`: (arguments, context) -> what became of the interrupted call.
        preview: (arguments, context) -> details to show with a question, such as a diff. None: the title says all.
        effects: (arguments, context) -> what the call would touch, looked up before it is allowed. None: the tool cannot tell.
        on_abort: (arguments, context) after a running call was cancelled because somebody stopped it; not after a kill.
        background: (arguments) -> whether the call goes on behind its result: it returns at once, and a message tells of its end (rule TO-10).
        on_left: (what `context.started` stored, context) after a kill: ends what is left of the call in the world and returns what there is
            to say about that. Before the result of the cut-off call.
    """

    name: str
    description: str
    arguments: type[Any]
    title: Callable[[Any], str]
    parameters: JsonObject | None = None
    check: Callable[[Any], str | None] | None = None
    execute: Callable[[Any, ToolContext], Awaitable[ToolResult]] | None = None
    delegate: Callable[[Any], Delegation | Join] | None = None
    access: Access = "command"
    replay: Replay = "unsafe"
    sequential: bool = False
    prepare: Callable[[Any, ToolContext], Awaitable[Json | ToolResult]] | None = None
    reconcile: Callable[[Any, ToolContext], Awaitable[Reconciled]] | None = None
    preview: Callable[[Any, ToolContext], Awaitable[JsonObject]] | None = None
    effects: Callable[[Any, ToolContext], Awaitable[Effects]] | None = None
    on_abort: Callable[[Any, ToolContext], Awaitable[None]] | None = None
    background: Callable[[Any], bool] | None = None
    on_left: Callable[[JsonObject, ToolContext], Awaitable[tuple[Diagnostic, ...]]] | None = None
