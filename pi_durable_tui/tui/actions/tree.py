"""Trees as lines: the conversations of a session and its live tasks (rules TU-16, OB-4). PURE; texts that come out are safe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from msgspec import Struct

from pi_durable_tui.tui.draw.paint import duration_text
from pi_durable_tui.tui.safe_text import safe_line

if TYPE_CHECKING:
    from pi_durable_tui.harness.chats import Branch
    from pi_durable_tui.harness.observation.inspection import TaskNode

N = TypeVar("N")
Tone: TypeAlias = Literal["text", "muted", "accent", "good", "warn", "bad"]
_TITLE_CELLS = 60
_PHASES = {"prepare": "getting ready", "request": "asking the model", "poll": "asking the model", "summarize": "being written", "execute": "running"}
"""What people are told of a step at work; of all others its name."""


class TaskRow(Struct, frozen=True, kw_only=True):
    """A live task as one line: what it is, and how it is doing."""

    node: TaskNode
    stem: str
    label: str
    state: str
    tone: Tone


def branch_stems(branches: Sequence[Branch]) -> tuple[tuple[str, Branch], ...]:
    """The conversations below what they came from, each with the lines drawn in front of it; trees with the newest work come last."""
    newest = {branch.chat.conversation_id: branch.chat.last_seq for branch in branches}
    for branch in sorted(branches, key=lambda each: -each.chat.conversation_id):  # what came of a conversation has a higher id
        if branch.parent in newest:
            newest[branch.parent] = max(newest[branch.parent], newest[branch.chat.conversation_id])
    return _tree(
        branches, key=lambda branch: branch.chat.conversation_id, parent=lambda branch: branch.parent, rank=lambda branch: newest[branch.chat.conversation_id]
    )


def root_of(branch: Branch, branches: Sequence[Branch]) -> int:
    """The chat that a conversation belongs to: itself, or the one above its callers."""
    known = {each.chat.conversation_id: each for each in branches}
    while branch.is_subagent and branch.parent in known:
        branch = known[branch.parent]
    return branch.chat.conversation_id


def task_rows(nodes: Sequence[TaskNode], now_ms: int) -> tuple[TaskRow, ...]:
    """Live tasks below what they work for, oldest first."""
    stems = _tree(nodes, key=lambda node: node.task_id, parent=lambda node: node.owner, rank=lambda node: node.task_id)
    names = {node.task_id: _name(node) for node in nodes}
    return tuple(TaskRow(node=node, stem=stem, label=_label(node), state=_state(node, names, now_ms), tone=_tone(node)) for stem, node in stems)


def _tree(items: Iterable[N], *, key: Callable[[N], int], parent: Callable[[N], int | None], rank: Callable[[N], int]) -> tuple[tuple[str, N], ...]:
    listed = sorted(items, key=rank)
    known = {key(item) for item in listed}
    below: dict[int | None, list[N]] = {}
    for item in listed:
        above = parent(item)
        below.setdefault(above if above in known else None, []).append(item)
    found: list[tuple[str, N]] = []
    waiting = [(item, "", "") for item in reversed(below.get(None, []))]
    while waiting:
        item, line, indent = waiting.pop()
        found.append((line, item))
        children = below.get(key(item), [])
        for child in reversed(children):
            is_last = child is children[-1]
            waiting.append((child, indent + ("└ " if is_last else "├ "), indent + ("  " if is_last else "│ ")))
    return tuple(found)


def _label(node: TaskNode) -> str:
    """What it is, and of a call what it does."""
    name, does = _name(node), safe_line(node.title, max_cells=_TITLE_CELLS)
    return does if does.startswith(name) else f"{name} {does}".strip()


def _name(node: TaskNode) -> str:
    name = safe_line(node.name, max_cells=40)
    match node.kind:
        case "pi.generation":
            return "answer"
        case "pi.tool":
            return name or "tool"
        case "pi.question":
            return f"question about {name}"
        case "pi.compaction":
            return f"summary ({name})"
        case "pi.subagent":
            return f"subagent {name}"
        case "pi.background":
            return safe_line(node.name, max_cells=34)
        case _:
            return safe_line(f"{node.kind} {node.name}".strip(), max_cells=60)


def _state(node: TaskNode, names: Mapping[int, str], now_ms: int) -> str:
    parts = [_words(node, names, now_ms)]
    if node.started_at_ms is not None:
        parts.append(duration_text(max(0, now_ms - node.started_at_ms) // 1000 * 1000).replace(".0s", "s"))
    if node.restarts:
        parts.append(f"{node.restarts} restart{'s' if node.restarts > 1 else ''}")
    if node.background:
        parts.append("in the background")
    return " · ".join(parts)


def _words(node: TaskNode, names: Mapping[int, str], now_ms: int) -> str:
    if node.is_aborted:
        return "is being stopped"
    match node.status:
        case "waiting":
            waited = [names[task_id] for task_id in node.waits_for if task_id in names]
            return f"waits for {', '.join(waited[:2])}{f' and {len(waited) - 2} more' if len(waited) > 2 else ''}" if waited else "ready"
        case "sleeping":
            return "asks you" if node.until_ms is None else f"wakes in {max(0, -(-(node.until_ms - now_ms) // 1000))}s"
        case "pending":
            return "ready"
        case "completing" | "terminal":
            return "ends"
        case "running":
            return _PHASES.get(node.phase or "", safe_line(node.phase or "running", max_cells=30))


def _tone(node: TaskNode) -> Tone:
    if node.is_aborted:
        return "warn"
    match node.status:
        case "running":
            return "good"
        case "sleeping":
            return "warn"
        case _:
            return "muted"
