"""What a running task may reach: the session and the doors. Given to every handler, kept by nobody else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pi_durable_tui.clock import Clock
from pi_durable_tui.entropy import Entropy
from pi_durable_tui.harness.approval import Approver, by_mode
from pi_durable_tui.harness.extensions.registry import Registry
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import Environment, ModelGateway
from pi_durable_tui.harness.settings import Settings
from pi_durable_tui.session.session import Session

ReportKind: TypeAlias = Literal["task_faulted", "task_interrupted", "hook_failed", "task_blocked", "storage_refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Something a person or a log should hear about; nothing depends on it being heard."""

    kind: ReportKind
    reason: str
    message: str
    at_ms: int
    task_id: int | None = None
    conversation_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The session and the doors of one harness.

    Attributes:
        environment: (conversation id, its agent) -> its files and processes; the same ones for the same conversation and directory.
        approver: Decides whether a call may be carried out.
        report: Takes a Report; never raises.
    """

    session: Session
    clock: Clock
    entropy: Entropy
    models: ModelGateway
    registry: Registry
    settings: Settings
    environment: Callable[[int, Agent], Environment]
    report: Callable[[Report], None]
    approver: Approver = by_mode

    def hook_failed(self, name: str, message: str) -> None:
        """Tell whoever listens that a hook raised."""
        self.report(Report(kind="hook_failed", reason=name, message=message, at_ms=self.clock.now_ms()))
