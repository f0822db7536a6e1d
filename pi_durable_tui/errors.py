"""Every error a caller can meet, named by what the caller may still do.

A class exists only where a caller acts differently; each builds its text from facts, so that wording is written once.

    PidurableError                 message, hint, exit code
    ├─ UsageError                  asked wrongly; nothing happened                                   exit 2
    │  ├─ ConfigError              a setting: file, key, what is allowed
    │  ├─ BadRequest               an argument, value or cursor that does not fit
    │  ├─ NotFound                 what was looked for, and where
    │  ├─ ReadAfterWrite           a transaction read a table after its first table write
    │  └─ TransactionSettled       a transaction or draft was used after its callback ended
    ├─ Refused                     valid, but not now; nothing changed; may be tried again           exit 3
    │  ├─ ConversationBusy
    │  ├─ RequestConflict          the same request id with other content
    │  ├─ StoreLocked              which process holds it, since when
    │  ├─ ReadOnlySession
    │  ├─ SessionClosed
    │  ├─ SchemaTooNew             the store was written by a newer program; untouched
    │  └─ StorageRejected          the batch had no durable effect and was rolled back
    ├─ OutsideError                the world failed; durable state is sound                          exit 4
    │  ├─ ModelError               provider, reason
    │  └─ EnvironmentFailure       file or process, errno
    ├─ SessionFailed               the outcome of a write is unknown; close, reopen, look            exit 5
    ├─ StoreCorrupt                stored bytes contradict the format; kept untouched                exit 6
    └─ InternalError               our bug; please report                                            exit 70
"""

from __future__ import annotations

from typing import ClassVar


class PidurableError(Exception):
    """Base of all errors of this package; never raised itself.

    Attributes:
        message: What happened, to which thing, and what is true now. One paragraph, no markup.
        hint: The next step for the person, or "" where there is none.
    """

    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, hint: str = "") -> None:
        if type(self) is PidurableError:
            raise TypeError("raise one of the subclasses: each says what the caller may still do")
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(PidurableError):
    """Asked wrongly; nothing happened."""

    exit_code = 2


class ConfigError(UsageError):
    """A setting or option has a value that is not allowed; nothing was started."""


class BadRequest(UsageError):
    """An argument, value or cursor does not fit; nothing changed."""


class NotFound(UsageError):
    """A thing that was named does not exist; nothing changed."""

    def __init__(self, what: str, *, where: str, hint: str = "") -> None:
        super().__init__(f"There is no {what} in {where}. Nothing was changed.", hint=hint)


class ReadAfterWrite(UsageError):
    """A transaction read a table after its first table write (rule SE-3); the commit is given up, nothing was written."""

    def __init__(self, table: str) -> None:
        super().__init__(f"A transaction read {table} after it had written a record. Nothing was written.", hint="Read first, then write.")


class TransactionSettled(UsageError):
    """A transaction or draft was used after its callback ended (rule SE-4); nothing was written by that use."""

    def __init__(self, what: str) -> None:
        super().__init__(f"The {what} was used after its commit callback had ended. That use wrote nothing.")


class Refused(PidurableError):
    """Valid, but not now; nothing changed, and it may be tried again."""

    exit_code = 3


class ConversationBusy(Refused):
    """A submission with mode `reject` met a running conversation; nothing was written (rule SU-3)."""

    def __init__(self, conversation_id: int) -> None:
        super().__init__(f"Conversation {conversation_id} is busy. Nothing was written.", hint="Wait for the run to end, steer it, or queue a follow-up.")


class RequestConflict(Refused):
    """A request id was used again with other content; nothing was written (rule SU-2)."""

    def __init__(self, conversation_id: int, request_id: str) -> None:
        super().__init__(
            f"Request {request_id!r} was already submitted to conversation {conversation_id} with other content. Nothing was written.",
            hint="Use a new request id for new content.",
        )


class StoreLocked(Refused):
    """Another process owns the store; nothing was opened (rule ST-12)."""

    def __init__(self, path: str, *, holder: str) -> None:
        super().__init__(
            f"The session {path} is open in another process ({holder}). Nothing was changed.", hint="Close that process, or open the session read-only."
        )


class ReadOnlySession(Refused):
    """A write was asked of a session that was opened read-only; nothing was written (rule ST-11)."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} needs a writable session, and this one was opened read-only. Nothing was written.")


class SessionClosed(Refused):
    """The session was closed; nothing was written (rule SE-7)."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} came after the session was closed. Nothing was written.", hint="Open the session again.")


class SchemaTooNew(Refused):
    """The store was written by a newer program; it was not touched (rule ST-13)."""

    def __init__(self, path: str, *, found: int, known: int) -> None:
        super().__init__(
            f"The session {path} has schema version {found}; this program knows versions up to {known}. The file was not touched.",
            hint="Start the newer pidurable that wrote it.",
        )


class StorageRejected(Refused):
    """A batch was refused with no durable effect; the session goes on (rule ST-6).

    Attributes:
        reason: A stable code: "id_used", "request_used", "no_space", "not_found", "busy" (another program holds the write lock), "invalid".
    """

    def __init__(self, message: str, *, reason: str, hint: str = "") -> None:
        super().__init__(f"{message} Nothing was written.", hint=hint)
        self.reason = reason

    @property
    def may_pass(self) -> bool:
        """Whether the same batch may be taken later: there was no room for it, or another program was in the way."""
        return self.reason in {"no_space", "busy"}


class OutsideError(PidurableError):
    """The world outside failed; durable state is sound."""

    exit_code = 4


class ModelError(OutsideError):
    """A model could not be reached or refused; what had been received is stored."""


class EnvironmentFailure(OutsideError):
    """A file or process operation failed; durable state is sound."""


class SessionFailed(PidurableError):
    """The outcome of a write is unknown; the session publishes nothing more and must be reopened (rule ST-6)."""

    exit_code = 5

    def __init__(self, cause: str) -> None:
        super().__init__(
            f"A write to the session ended with an error whose effect is unknown ({cause}). The session stopped; what was shown is stored.",
            hint="Close it and open it again: reopening reads what is really there.",
        )


class StoreCorrupt(PidurableError):
    """Stored bytes contradict the format; the file was kept untouched (rule ST-15)."""

    exit_code = 6

    def __init__(self, path: str, *, where: str, what: str) -> None:
        super().__init__(
            f"The session {path} is damaged: {where}: {what}. The file was not touched.",
            hint="pidurable sessions salvage writes what can still be read into a new session, and says what is lost.",
        )


class InternalError(PidurableError):
    """A bug of this program; please report it."""

    def __init__(self, what: str) -> None:
        super().__init__(f"Internal error: {what}.", hint="Please report it. The session on disk is as of its last commit.")
