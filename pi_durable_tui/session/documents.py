"""Documents as committed, and what a draft of one becomes: nothing, a delta or a base (durable.md, section 4).

Decides which stored versions may be read (DO-5, DO-6) and base versus delta (DO-4). It reads the store, and never writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from pi_durable_tui.errors import BadRequest, Refused, StoreCorrupt, TransactionSettled
from pi_durable_tui.records import delta
from pi_durable_tui.records.commit import DocumentBase, DocumentChange, DocumentDelta, DocumentRetired, DocumentWrite
from pi_durable_tui.records.document import Address, Definition, History, Op, Revisions
from pi_durable_tui.records.json import STORED_DEPTH, Json, JsonObject, copy, strict
from pi_durable_tui.records.keys import Hide, mapped
from pi_durable_tui.storage.port import Storage

_CACHED_DOCUMENTS = 512
"""How many documents are kept in memory; others are read again when they are needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A document as of its newest commit; `deltas` counts those after its newest base. The value is never changed, only replaced."""

    document_id: int
    version: int
    history: History
    value: Json
    deltas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentStep:
    """What one document does in a commit: what is stored, what observers are told, and what is committed afterwards (None: retired)."""

    write: DocumentWrite
    change: DocumentChange
    committed: Committed | None


class DocumentCache:
    """The committed documents of one session, read from storage on first use.

    A read-only session keeps none: another process may be writing (rule OB-6).
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: dict[Address, Committed | None] = {}  # the longest unused first
        self._adoptions = 0

    async def load(self, address: Address) -> Committed | None:
        """The newest committed state of a document; None when there is none.

        Raises:
            StoreCorrupt: Its revisions do not fit together.
        """
        if address in self._known:
            return self._keep(address, self._known.pop(address))
        adoptions = self._adoptions
        found = await self._read(address)
        if self._adoptions != adoptions or self._storage.read_only:
            return found  # a commit came between: what was read may be older than what is kept
        return self._keep(address, found)

    def adopt(self, step: DocumentStep) -> None:
        """Take over what a commit has just stored."""
        self._adoptions += 1
        self._known.pop(step.change.address, None)
        self._keep(step.change.address, step.committed)

    def _keep(self, address: Address, committed: Committed | None) -> Committed | None:
        self._known[address] = committed
        if len(self._known) > _CACHED_DOCUMENTS:
            del self._known[next(iter(self._known))]
        return committed

    async def _read(self, address: Address) -> Committed | None:
        stored = await self._storage.document(address)
        revisions = None if stored is None else await self._storage.revisions(stored.id)
        if stored is None or revisions is None:
            return None
        value = value_of(revisions, store=self._storage.name, document_id=stored.id)
        return Committed(document_id=stored.id, version=revisions.version, history=stored.history, value=value, deltas=len(revisions.deltas))


def value_of(revisions: Revisions, *, store: str, document_id: int) -> Json:
    """The value that a base and its deltas make (rule ST-9).

    Raises:
        StoreCorrupt: A delta does not fit.
    """
    value = revisions.base
    for ops in revisions.deltas:
        try:
            value = delta.apply(ops, value)
        except BadRequest as error:
            raise StoreCorrupt(store, where=f"document {document_id}", what=error.message) from error
    return value


def address_of(definition: Definition, scope_id: int | None) -> Address:
    """The address of a definition's document.

    Raises:
        BadRequest: A session document has no scope id, every other one needs it.
    """
    if (definition.scope == "session") != (scope_id is None):
        raise BadRequest(f"The document {definition.kind} belongs to a {definition.scope}, so the scope id cannot be {scope_id}.")
    return definition.address(scope_id)


def title_of(address: Address) -> str:
    """The document's name in texts: "pi.live(7)", "pi.sets"."""
    return address.kind if address.scope_id is None else f"{address.kind}({address.scope_id})"


def readable(definition: Definition, version: int, value: Json, address: Address) -> JsonObject:
    """A stored value as this definition understands it: the caller's own copy, migrated when it is older.

    Raises:
        Refused: It is newer than the definition, or older and there is no `migrate` (rule DO-6); only this access fails.
        BadRequest: `migrate` made something that is not JSON.
    """
    mine = cast("JsonObject", copy(value))
    if version == definition.version:
        return mine
    if version > definition.version or definition.migrate is None:
        why = "newer than" if version > definition.version else "older, and cannot be migrated to,"
        raise Refused(
            f"The document {title_of(address)} was stored with version {version}, which is {why} the version {definition.version} of this program. "
            "It was not touched.",
            hint="Use the program that wrote it.",
        )
    return object_of(definition.migrate(mine, version), address)


def object_of(value: object, address: Address) -> JsonObject:
    """A strict copy of a whole document value.

    Raises:
        BadRequest: It is not JSON or no object; names where.
    """
    made = strict(value, title_of(address), depth=STORED_DEPTH)
    if not isinstance(made, dict):
        raise BadRequest(f"The value of {title_of(address)} is a {type(made).__name__}; a document is an object.")
    return made


class Draft:
    """A document inside a commit callback. `value` is the caller's own: change it in place or assign another object.

    Args:
        committed: What it was before; None: it does not exist yet.
        value: What it starts from: a copy, the migrated value, or the initial one.
        is_open: Asked at every use: False once the callback has ended or the document was retired (rule SE-4).
        hide: Takes out of every text what must not be stored (rule SA-17).
    """

    def __init__(
        self, definition: Definition, address: Address, committed: Committed | None, value: JsonObject, is_open: Callable[[], bool], *, hide: Hide | None = None
    ) -> None:
        self.definition = definition
        self.address = address
        self.committed = committed
        self._value = value
        self._is_open = is_open
        self._hide = hide

    @property
    def value(self) -> JsonObject:
        """The value as it stands in this transaction.

        Raises:
            TransactionSettled: The callback has ended.
        """
        self._check()
        return self._value

    @value.setter
    def value(self, value: JsonObject) -> None:
        self._check()
        self._value = value

    def _check(self) -> None:
        if not self._is_open():
            raise TransactionSettled(f"draft of {title_of(self.address)}")

    def step(self, new_id: Callable[[], int]) -> DocumentStep | None:
        """What the draft has become: the first write, a new version, a change, or None when nothing changed (rule DO-4).

        Raises:
            BadRequest: A changed part is not JSON; names where.
        """
        before = self.committed
        if before is None:
            value = object_of(self._shown(), self.address)
            return self._based(new_id(), None, value, [["r", value]])
        ops = delta.diff(before.value, self._shown(), title_of(self.address))
        value = delta.apply(ops, before.value)
        if not isinstance(value, dict):
            object_of(value, self.address)  # says what a document is
        if before.version != self.definition.version:
            return self._based(before.document_id, before.value, value, ops)
        if not ops:
            return None
        if self.definition.checkpoint_when(value, ops, before.deltas):
            return self._based(before.document_id, before.value, value, ops)
        return DocumentStep(
            write=DocumentDelta(document_id=before.document_id, ops=ops),
            change=DocumentChange(address=self.address, previous=before.value, value=value, ops=ops),
            committed=Committed(document_id=before.document_id, version=before.version, history=before.history, value=value, deltas=before.deltas + 1),
        )

    def _shown(self) -> JsonObject:
        if self._hide is None:
            return self._value
        try:
            return cast("JsonObject", mapped(self._value, self._hide))
        except RecursionError:
            raise BadRequest(f"The value of {title_of(self.address)} is nested too deeply to be stored.") from None

    def _based(self, document_id: int, previous: Json, value: Json, ops: list[Op]) -> DocumentStep:
        version, history = self.definition.version, self.definition.history
        return DocumentStep(
            write=DocumentBase(document_id=document_id, address=self.address, version=version, history=history, value=value),
            change=DocumentChange(address=self.address, previous=previous, value=value, ops=ops),
            committed=Committed(document_id=document_id, version=version, history=history, value=value, deltas=0),
        )


def retirement(address: Address, committed: Committed) -> DocumentStep:
    """The end of a document (rule DO-7)."""
    return DocumentStep(
        write=DocumentRetired(document_id=committed.document_id),
        change=DocumentChange(address=address, previous=committed.value, value=None, ops=[["r", None]]),
        committed=None,
    )
