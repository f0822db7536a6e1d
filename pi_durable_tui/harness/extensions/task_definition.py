"""What a task kind is to the scheduler: its phases, and how it is ended from outside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import msgspec

from pi_durable_tui.errors import BadRequest
from pi_durable_tui.records.task import Checkpoint, Completing, Outcome, Task, Terminal, WaitPolicy

if TYPE_CHECKING:
    from pi_durable_tui.harness.tasks.runtime import TaskRuntime
    from pi_durable_tui.session.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Advance:
    """Go on with another checkpoint, at once."""

    checkpoint: Checkpoint


@dataclass(frozen=True, slots=True)
class Wait:
    """Go on from `checkpoint` when every task of `on` is terminal."""

    checkpoint: Checkpoint
    on: tuple[int, ...]
    policy: WaitPolicy = "allSettled"


@dataclass(frozen=True, slots=True)
class Sleep:
    """Go on from `checkpoint` at `until_ms` (milliseconds since 1970 UTC)."""

    checkpoint: Checkpoint
    until_ms: int


@dataclass(frozen=True, slots=True)
class End:
    """The task is finished; it becomes terminal once nothing below it lives (rule TK-14)."""

    outcome: Outcome


Move: TypeAlias = Advance | Wait | Sleep | End

Phase: TypeAlias = Callable[["TaskRuntime"], Awaitable[None]]
"""One step: does its work outside the line and commits a Move before it returns (rule TK-2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why the scheduler ends a task itself: aborted (rule TK-15), the restart limit (TK-12), or a fault of its handler (TK-3)."""

    why: Literal["aborted", "restart_limit", "fault"]
    message: str = ""


Closing: TypeAlias = Callable[["Transaction", Task, Ending], Awaitable[Outcome]]
"""Runs inside the commit that ends the task: writes what shall be said about it and returns the outcome. It reads before it writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDefinition:
    """A task kind.

    Attributes:
        phases: Step functions by the `phase` name of the checkpoint.
        migrate: (checkpoint, its version) -> checkpoint of `version`; None: older tasks stay blocked (rule TK-8).
        on_ending: Decides the outcome when the scheduler ends the task, whose checkpoint is of `version`; None: plain aborted or faulted.
        limit_report: The kind of report at the restart limit (rule TK-12).
    """

    kind: str
    phases: Mapping[str, Phase]
    version: int = 1
    migrate: Callable[[Checkpoint, int], Checkpoint] | None = None
    on_ending: Closing | None = None
    limit_report: Literal["task_faulted", "task_interrupted"] = "task_faulted"

    def fits(self, task: Task) -> bool:
        """True when this code can run that stored task (rule TK-8)."""
        return task.version == self.version or (task.version < self.version and self.migrate is not None)

    def up_to_date(self, task: Task) -> Task:
        """The task, of any state that has a checkpoint, with that as this version writes it; the same task when it is of this version.

        Raises:
            BadRequest: What `migrate` gave is no checkpoint.
            Exception: Whatever `migrate` raised.
        """
        if task.version >= self.version or self.migrate is None or isinstance(task.state, Completing | Terminal):
            return task
        checkpoint = self.migrate(task.state.checkpoint, task.version)
        if not isinstance(cast("object", checkpoint), dict):
            raise BadRequest(f"The migration of {self.kind} to version {self.version} gave a {type(checkpoint).__name__}, which is no checkpoint.")
        state = msgspec.structs.replace(task.state, checkpoint=checkpoint)
        return msgspec.structs.replace(task, version=self.version, state=state)
