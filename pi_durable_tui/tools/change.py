"""What write and edit share: a tool that plans a change, makes it, and asks the file afterwards what became of it (rule TO-8).

The content before and the content after are named by digests, stored before anything is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec

from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.harness.ports import Effects, Reconciled, Tool, ToolContext, ToolResult
from pi_durable_tui.records.json import Json, JsonObject, clean_text
from pi_durable_tui.tools import files
from pi_durable_tui.tools.environment import LocalEnvironment, environment_of, in_thread
from pi_durable_tui.tools.result import failed, succeeded
from pi_durable_tui.tools.text import text_file
from pi_durable_tui.tools.text.diff import unified
from pi_durable_tui.tools.text.truncate import line_count, size_text

_HEX = "hex:"  # no absolute path starts like this


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What `prepare` gives to be stored: the absolute path and the digests of its content; `before` is None when there is no file."""

    path: str
    before: str | None
    after: str

    def to_json(self) -> JsonObject:
        """The stored form."""
        try:
            self.path.encode()
        except UnicodeEncodeError:  # a folder whose name is no UTF-8: JSON cannot hold it as it is
            return {"path": _HEX + os.fsencode(self.path).hex(), "before": self.before, "after": self.after}
        return {"path": self.path, "before": self.before, "after": self.after}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change that can be made: what is there, what shall be there. `remark` is told with the result."""

    path: str
    before: bytes | None
    after: bytes
    remark: str = ""

    @property
    def intent(self) -> Intent:
        """What is stored before the change is made."""
        return Intent(path=self.path, before=None if self.before is None else files.digest(self.before), after=files.digest(self.after))


class Aimed(Protocol):
    """Arguments that name a file."""

    @property
    def path(self) -> str: ...


A = TypeVar("A", bound=Aimed)


def changing_tool(
    name: str,
    description: str,
    arguments: type[A],
    *,
    title: Callable[[A], str],
    plan: Callable[[A, LocalEnvironment, Intent | None], Change | ToolResult],
    verb: str,
) -> Tool:
    """A tool that changes one file.

    Args:
        plan: (arguments, environment, stored intent) -> the change, or a refusal. An intent was checked when it was made; after a restart
            nothing is known of the file, but its digests still hold.
        verb: What is said to have been done.
    """

    async def planned(wanted: A, context: ToolContext) -> Change | ToolResult:
        return await in_thread(lambda: plan(wanted, environment_of(context), None))

    async def prepare(wanted: A, context: ToolContext) -> Json | ToolResult:
        found = await planned(wanted, context)
        return found if isinstance(found, ToolResult) else found.intent.to_json()

    async def preview(wanted: A, context: ToolContext) -> JsonObject:
        found = await planned(wanted, context)
        return {} if isinstance(found, ToolResult) else await in_thread(lambda: details(found))

    def carry_out(wanted: A, context: ToolContext) -> ToolResult:
        environment, intent = environment_of(context), read_intent(context.prepared)
        found = plan(wanted, environment, intent)
        if isinstance(found, ToolResult):
            return found
        return (intent and changed_since(found, intent)) or make(found, context, environment, verb)

    return Tool(
        name=name,
        description=description,
        arguments=arguments,
        execute=lambda wanted, context: in_thread(lambda: carry_out(wanted, context)),
        title=title,
        access="edit",
        replay="reconcile",
        prepare=prepare,
        reconcile=lambda _wanted, context: in_thread(lambda: reconcile(context, environment_of(context))),
        preview=preview,
        effects=lambda wanted, context: in_thread(lambda: effects(wanted.path, environment_of(context))),
    )


def effects(path: str, environment: LocalEnvironment) -> Effects:
    """Which file a change of `path` would really touch, links resolved (rule SA-12). A path that cannot be used touches none."""
    root, directory = os.path.realpath(environment.cwd), os.path.realpath(environment.directory())
    try:
        paths: tuple[str, ...] = (os.path.realpath(environment.resolve(path)),)
    except (EnvironmentFailure, ValueError):
        paths = ()
    return Effects(root=root, directory=directory, paths=paths)


def read_intent(prepared: Json) -> Intent | None:
    """The stored intent of a call; None for a call that stored none."""
    if prepared is None:
        return None
    intent = msgspec.convert(prepared, Intent)
    if not intent.path.startswith(_HEX):
        return intent
    return Intent(path=os.fsdecode(bytes.fromhex(intent.path.removeprefix(_HEX))), before=intent.before, after=intent.after)


def details(change: Change) -> JsonObject:
    """What people are shown of a change: path, diff, counts."""
    before = "" if change.before is None else text_file.decode(change.before).text
    return {"path": clean_text(change.path), "created": change.before is None, **unified(before, text_file.decode(change.after).text).to_json()}


def make(change: Change, context: ToolContext, environment: LocalEnvironment, verb: str) -> ToolResult:
    """Make a change and say so; when it cannot be made, say why and what holds.

    After it the model knows the new content, if it knew the old one: an edit of a file that somebody else has changed since it was
    read does not make it known (CASE-C6).
    """
    intent = change.intent
    known = intent.before is None or environment.seen(change.path) == intent.before
    try:
        files.replace(change.path, change.after, expected=intent.before, token=context.call_id)
    except EnvironmentFailure as error:
        return failed(error.message)
    if known or verb == "Wrote":
        environment.saw(change.path, intent.after)
    else:
        environment.forget(change.path)
    facts = details(change)
    what = "Created" if change.before is None else verb
    text = f"{what} {change.path} (+{facts['added']} -{facts['removed']} lines, {size_text(len(change.after))} now).{change.remark}"
    return succeeded(text, details=facts)


def reconcile(context: ToolContext, environment: LocalEnvironment) -> Reconciled:
    """What became of an interrupted change: the file has the new content, still the old one, or neither (rule TO-8)."""
    intent = read_intent(context.prepared)
    if intent is None:
        return Reconciled(verdict="in_doubt")
    files.discard_temporary(intent.path, context.call_id)
    try:
        data = files.read_whole(intent.path) if files.exists(intent.path) else None
    except EnvironmentFailure:
        return Reconciled(verdict="in_doubt")
    now = None if data is None else files.digest(data)
    if data is not None and now == intent.after:
        environment.saw(intent.path, intent.after)
        text = f"{intent.path} was written before the interruption ({line_count(text_file.decode(data).text)} lines, {size_text(len(data))})."
        return Reconciled(verdict="done", result=succeeded(text, details={"path": clean_text(intent.path)}))
    return Reconciled(verdict="not_started" if now == intent.before else "in_doubt")


def changed_since(change: Change, intent: Intent) -> ToolResult | None:
    """A refusal when the world is no longer as it was when the intent was stored, else None."""
    if change.intent == intent:
        return None
    return failed(f"{intent.path} was changed by someone else before this call could begin. Nothing was written. Read it again.")
