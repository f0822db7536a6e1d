"""Decides which files of a project count: those a person said yes to, by the hash of their content (rules SA-5, SA-6).

The decisions of a project are one file of ours, named by the hash of its real path, outside of every project. A project can neither hold
nor move a decision. What has changed since is as unknown as what is new; the text that was agreed to is kept, so that the change can be shown.
"""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from pi_durable_tui.context import files
from pi_durable_tui.context.project import Item
from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.records.json import clean_text

Trusting: TypeAlias = Literal["decided", "all", "none"]
"""Whose word counts in this run: the stored decisions; everything (the person said so for this run); nobody's."""

Standing: TypeAlias = Literal["trusted", "refused", "new", "changed"]

_VERSION = 1
_LIMIT_BYTES = 32 * 1024 * 1024
_DIFF_LINES = 400


class Decision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was said about one file, when, and what it held then."""

    digest: str
    is_trusted: bool
    at_ms: int
    text: str


class Decisions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that was said about a project, by the names of its files."""

    version: int = _VERSION
    directory: str = ""
    items: dict[str, Decision] = msgspec.field(default_factory=dict[str, Decision])


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A file of the project, how it stands, and what it held when it was last decided about ("" for never)."""

    item: Item
    standing: Standing
    before: str

    @property
    def is_open(self) -> bool:
        """Whether nobody has decided about what it holds now."""
        return self.standing in ("new", "changed")

    @property
    def lines(self) -> tuple[str, ...]:
        """What a person has to look at: the change, or the whole of a file that is new."""
        if not self.before:
            return tuple(self.item.text.splitlines())
        changes = list(difflib.unified_diff(self.before.splitlines(), self.item.text.splitlines(), lineterm="", n=2))[2:]
        return (*changes[:_DIFF_LINES], *((f"… {len(changes) - _DIFF_LINES} more lines",) if len(changes) > _DIFF_LINES else ()))


def judge(items: Iterable[Item], decisions: Mapping[str, Decision], trusting: Trusting) -> tuple[Judged, ...]:
    """How each of the project's files stands, in their order. PURE."""
    judged: list[Judged] = []
    for item in items:
        decision = decisions.get(item.shown)
        before = decision.text if decision is not None and decision.digest != item.digest else ""
        judged.append(Judged(item=item, standing=_standing(item, decision, trusting), before=before))
    return tuple(judged)


def _standing(item: Item, decision: Decision | None, trusting: Trusting) -> Standing:
    if trusting != "decided":
        return "trusted" if trusting == "all" else "refused"
    if decision is None:
        return "new"
    if decision.digest != item.digest:
        return "changed"
    return "trusted" if decision.is_trusted else "refused"


class TrustStore:
    """The decisions on disk.

    Args:
        folder: Of ours, in the data folder; made when the first decision is stored.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, root: Path) -> Path:
        """The file of the project with this real path."""
        return self._folder / f"{hashlib.sha256(os.fsencode(root)).hexdigest()}.json"

    def load(self, root: Path) -> dict[str, Decision]:
        """The decisions about a project, by the names of its files.

        Raises:
            EnvironmentFailure: There is a file that cannot be read as ours. Nothing of the project may be trusted.
        """
        path = self.path(root)
        try:
            found = files.read(path, limit_bytes=_LIMIT_BYTES, inside=Path(os.path.realpath(self._folder)))
            stored = None if found is None else msgspec.json.decode(found.data, type=Decisions)
        except (EnvironmentFailure, msgspec.DecodeError) as error:
            raise EnvironmentFailure(
                f"The stored decision about this project, {str(path)!r}, cannot be read: {error}. Nothing of the project is used.", hint="Remove that file."
            ) from error
        return dict(stored.items) if stored is not None and stored.version == _VERSION else {}

    def decide(self, root: Path, items: Iterable[Item], *, is_trusted: bool, now_ms: int) -> None:
        """Store what was said about these files; what was said about others stays.

        Raises:
            EnvironmentFailure: It could not be stored; the decision does not count.
        """
        try:
            before = self.load(root)
        except EnvironmentFailure:
            before = {}
        said = {item.shown: Decision(digest=item.digest, is_trusted=is_trusted, at_ms=now_ms, text=clean_text(item.text)) for item in items}
        stored = Decisions(directory=clean_text(str(root)), items={**before, **said})
        files.write_private(self.path(root), msgspec.json.encode(stored))
