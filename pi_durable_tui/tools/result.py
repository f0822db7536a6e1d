"""PURE. How these tools phrase their results."""

from __future__ import annotations

from pi_durable_tui.harness.ports import Diagnostic, Level, ToolResult
from pi_durable_tui.records.json import JsonObject, clean_text
from pi_durable_tui.records.messages import Text

TITLE_CHARS = 200


def succeeded(text: str, *, details: JsonObject | None = None, diagnostics: tuple[Diagnostic, ...] = ()) -> ToolResult:
    """A result that did what was asked."""
    return ToolResult(content=(Text(text=clean_text(text)),), details=details, diagnostics=diagnostics)


def failed(text: str, *, details: JsonObject | None = None, diagnostics: tuple[Diagnostic, ...] = ()) -> ToolResult:
    """A result that says what went wrong, what holds now and what to do next."""
    return ToolResult(content=(Text(text=clean_text(text)),), is_error=True, details=details, diagnostics=diagnostics)


def cut_note(message: str, level: Level = "info") -> tuple[Diagnostic, ...]:
    """Says that a result holds a part only, and how to get the rest (rule TO-4)."""
    return (Diagnostic(level, "truncated", clean_text(message)),)


def note(message: str) -> tuple[Diagnostic, ...]:
    """Says something about the circumstances that the model should know and that is not part of the answer."""
    return (Diagnostic("info", "note", clean_text(message)),)


def title(name: str, what: str) -> str:
    """One line for the screen and for approval: the tool's name and what it acts on."""
    line = " ".join(clean_text(what).split())
    return f"{name} {line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + '…'}"
