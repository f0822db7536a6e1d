"""The standing permissions of an open session: made, listed and revoked (rule TU-19)."""

from __future__ import annotations

import msgspec

from pi_durable_tui.errors import NotFound
from pi_durable_tui.harness.approval import PERMISSIONS, Granted, Rule, grants_of
from pi_durable_tui.harness.runs import as_object
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.transaction import Transaction


class Permissions:
    """What `/permissions` shows and changes. Every change is a commit of its own."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def list(self) -> tuple[Granted, ...]:
        """The rules that hold, oldest first."""
        return grants_of(await self._session.snapshot(PERMISSIONS)).granted

    async def grant(self, rule: Rule, *, by: str) -> Granted:
        """Make a rule; the one that already says the same is given back instead."""

        async def write(transaction: Transaction) -> Granted:
            return await add_grant(transaction, rule, by=by)

        return await self._session.commit(write)

    async def revoke(self, grant_id: int) -> None:
        """Take a rule away; what is running goes on.

        Raises:
            NotFound: There is none of that id. Nothing was written.
        """

        async def write(transaction: Transaction) -> None:
            draft = await transaction.document(PERMISSIONS)
            grants = grants_of(draft.value)
            left = tuple(each for each in grants.granted if each.id != grant_id)
            if len(left) == len(grants.granted):
                raise NotFound(f"permission {grant_id}", where=self._session.storage.name)
            draft.value = as_object(msgspec.structs.replace(grants, granted=left))

        await self._session.commit(write)


async def add_grant(transaction: Transaction, rule: Rule, *, by: str) -> Granted:
    """Make a rule in the commit of `transaction`, unless there is one that says the same."""
    draft = await transaction.document(PERMISSIONS)
    grants = grants_of(draft.value)
    for each in grants.granted:
        if each.rule == rule:
            return each
    granted = Granted(id=transaction.new_id(), rule=rule, by=by, at_ms=transaction.now_ms)
    draft.value = as_object(msgspec.structs.replace(grants, granted=(*grants.granted, granted)))
    return granted
