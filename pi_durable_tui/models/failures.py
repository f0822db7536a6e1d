"""What an exception of the model library means: reason, whether trying again helps, and when (rule GE-6). Pure tables.

The library says one thing in many ways: an invented status 500 for a refused connection and for a missing key, a plain bad request for a
context overflow, a service error for whatever breaks after HTTP 200. So the status is one fact among several, and the words of the provider
decide where providers word things reliably. Nothing here imports the library: exceptions are looked at by name and attribute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, cast

from pi_durable_tui.harness.ports import FailureReason, ModelFailed
from pi_durable_tui.models.redaction import redact
from pi_durable_tui.models.words import packed, said, stripped
from pi_durable_tui.records.json import clean_text

MAX_MESSAGE_CHARS = 2_000
MAX_CHAIN = 8

RETRYABLE: frozenset[FailureReason] = frozenset({"rate_limit", "overloaded", "server", "connection", "timeout"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is known of a failure.

    Attributes:
        kinds: Class names of the exception, its bases and the exceptions it came from.
        status: The HTTP status; None when none was received.
        codes: Stable codes of the provider's error object, lower case.
        texts: What the exceptions say, outermost first.
        headers: Of the answer, names in lower case.
    """

    kinds: frozenset[str] = frozenset()
    status: int | None = None
    codes: frozenset[str] = frozenset()
    texts: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def words(self) -> str:
        """All texts in lower case, for the tables of words."""
        return "\n".join(self.texts).lower()


_NETWORK_KINDS = frozenset(
    {
        "ConnectError",
        "ReadError",
        "WriteError",
        "RemoteProtocolError",
        "ClientConnectorError",
        "ClientPayloadError",
        "ServerDisconnectedError",
        "ConnectionRefusedError",
    }
)
_CONNECTION_WORDS = re.compile(
    r"connection error|cannot connect|connect call failed|connection refused|connection reset|name or service not known|server disconnected"
)
_MISSING_KEY_WORDS = re.compile(
    r"missing credentials|missing [a-z ]*api[ _]key|api[ _]key (?:is )?(?:missing|required|not (?:set|found|provided))|no api[ _]key"
)
_UNKNOWN_MODEL_WORDS = re.compile(r"llm provider not provided|unknown provider|model_not_found|model .{0,80}(?:does not exist|not found)")
_OVERLOAD_WORDS = re.compile(r"overloaded|over capacity|at capacity|server is busy")
_QUOTA_WORDS = re.compile(
    r"insufficient[ _]quota|exceeded your current quota|credit balance|insufficient (?:balance|credits|funds)|billing[ _](?:hard[ _])?limit|"
    r"monthly (?:usage |spend(?:ing)? )?limit|payment required"
)
_SHORT_LIMIT_WORDS = re.compile(r"per[ _]?minute|per[ _]?second|retrydelay|retry in \d")
_OVERFLOW_WORDS = re.compile(
    r"prompt is too long|input is too long|too large for model with|maximum context length|max(?:imum)? context|context[ _]length[ _]exceeded|"
    r"context (?:window|length|size|limit)|total length of all messages is too long|maximum (?:prompt|input) length|"
    r"exceeds? the maximum number of (?:input )?tokens|input token count|input tokens exceed|reduce the length of the (?:messages|prompt|input)|"
    r"request too large|too many (?:input )?tokens in the (?:prompt|request)|prompt contains \d+ tokens"
)
"""Words of an overflow. A wrong limit on the output (`max_tokens must be <= 8192`) holds none of them, and must not."""

_THINKING_WORDS = re.compile(
    r"thinking`? blocks?[^\n]{0,120}(?:cannot be modified|must remain)|invalid [`'\"]?signature[`'\"]? in|expected [`'\"]?(?:redacted_)?thinking|"
    r"must start with a (?:redacted_)?thinking block|reasoning_content[^\n]{0,80}must be passed back|missing reasoning_content|thought[ _]signature|"
    r"of type [`'\"]?reasoning[`'\"]? was provided without|encrypted content [^\n]{0,80}could not be (?:verified|decrypted)"
)
"""Words of a provider that does not take back the thoughts it is sent, or misses them (CASE-B9)."""

_OVERFLOW_STATUSES = frozenset({None, 400, 413, 422, 429, 500})
_OVERFLOW_CODES = frozenset({"context_length_exceeded", "context_window_exceeded", "string_above_max_length", "request_too_large"})


def fault_of(error: BaseException) -> Fault:
    """The facts of an exception and of those it came from."""
    chain = list(_chain(error))
    kinds = {kind.__name__ for one in chain for kind in type(one).__mro__}
    codes: set[str] = set()
    headers: dict[str, str] = {}
    for one in chain:
        codes |= set(_codes(one))
        headers = {**_headers(one), **headers}
    statuses = [status for one in chain if isinstance(status := getattr(one, "status_code", None), int)]
    numeric = [int(code) for code in codes if code.isdigit() and 400 <= int(code) <= 599]
    status = numeric[0] if numeric and "MidStreamFallbackError" in kinds else next(iter(statuses), None)
    texts = said(map(str, chain), (getattr(one, "body", None) for one in chain))
    return Fault(kinds=frozenset(kinds), status=status, codes=frozenset(codes), texts=texts, headers=headers)


def failure(fault: Fault, *, now_ms: int, secrets: tuple[str, ...] = ()) -> ModelFailed:
    """What the harness is told.

    Args:
        now_ms: The wall clock, for a `retry-after` that names a date.
        secrets: The loaded keys, taken out of the message.
    """
    reason = reason_of(fault)
    retryable = reason in RETRYABLE
    wait_ms = retry_after_ms(fault, now_ms=now_ms) if retryable or reason == "quota" else None
    return ModelFailed(reason=reason, message=redact(clean_text(_message(fault, reason)), secrets), retryable=retryable, retry_after_ms=wait_ms)


def reason_of(fault: Fault) -> FailureReason:
    """The reason: the first row that applies. Words that cannot be mistaken come before the status, the status before the class."""
    for reason, applies in _ROWS:
        if applies(fault):
            return reason
    return "unknown"


def _is_overflow(fault: Fault) -> bool:
    if "ContextWindowExceededError" in fault.kinds or fault.codes & _OVERFLOW_CODES or fault.status == 413:
        return True
    words = fault.words
    if fault.status == 429:
        return "request too large" in words
    return (fault.status in _OVERFLOW_STATUSES or "MidStreamFallbackError" in fault.kinds) and _OVERFLOW_WORDS.search(words) is not None


def _is_refused_thinking(fault: Fault) -> bool:
    return fault.status in {None, 400, 422} and ("invalid_encrypted_content" in fault.codes or _THINKING_WORDS.search(fault.words) is not None)


def _is_missing_key(fault: Fault) -> bool:
    return _MISSING_KEY_WORDS.search(fault.words) is not None


def _is_quota(fault: Fault) -> bool:
    if fault.status == 402 or fault.codes & {"insufficient_quota", "billing_hard_limit_reached", "payment_required"}:
        return True
    words = fault.words
    return _QUOTA_WORDS.search(words) is not None and _SHORT_LIMIT_WORDS.search(words) is None


def _is_rate_limit(fault: Fault) -> bool:
    return fault.status == 429 or bool(fault.codes & {"rate_limit_error", "rate_limit_exceeded"}) or "RateLimitError" in fault.kinds


def _is_auth(fault: Fault) -> bool:
    return fault.status in {401, 403} or bool(fault.codes & {"authentication_error", "permission_error"}) or "AuthenticationError" in fault.kinds


def _is_overloaded(fault: Fault) -> bool:
    return fault.status in {503, 529} or "overloaded_error" in fault.codes or _OVERLOAD_WORDS.search(fault.words) is not None


def _is_timeout(fault: Fault) -> bool:
    return fault.status in {408, 504} or bool(fault.kinds & {"Timeout", "APITimeoutError", "TimeoutError", "ReadTimeout", "ConnectTimeout"})


def _is_no_model(fault: Fault) -> bool:
    return fault.status == 404 or "model_not_found" in fault.codes or _UNKNOWN_MODEL_WORDS.search(fault.words) is not None


def _is_own_bug(fault: Fault) -> bool:
    """The library wraps errors of its own code as connection errors, with a traceback in the text."""
    return any("Traceback (most recent call last)" in text for text in fault.texts) and not fault.kinds & _NETWORK_KINDS


def _is_connection(fault: Fault) -> bool:
    if fault.kinds & _NETWORK_KINDS:
        return True
    if "MidStreamFallbackError" in fault.kinds and any(re.fullmatch(r"4\d\d", code) for code in fault.codes):
        return False  # the stream did not break off: the provider ended it with a refusal
    if fault.kinds & {"MidStreamFallbackError", "APIConnectionError"}:
        return True
    return fault.status in {None, 500} and _CONNECTION_WORDS.search(fault.words) is not None


def _is_invalid(fault: Fault) -> bool:
    return (fault.status is not None and 400 <= fault.status < 500) or bool(fault.kinds & {"BadRequestError", "UnsupportedParamsError"})


def _is_server(fault: Fault) -> bool:
    return fault.status is not None and fault.status >= 500


_ROWS: tuple[tuple[FailureReason, Callable[[Fault], bool]], ...] = (
    ("thinking_refused", _is_refused_thinking),
    ("context_overflow", _is_overflow),
    ("auth", _is_missing_key),
    ("quota", _is_quota),
    ("rate_limit", _is_rate_limit),
    ("auth", _is_auth),
    ("no_model", _is_no_model),
    ("timeout", _is_timeout),
    ("overloaded", _is_overloaded),
    ("unknown", _is_own_bug),
    ("connection", _is_connection),
    ("invalid_request", _is_invalid),
    ("server", _is_server),
)


_UNITS_MS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_WAIT_PART = r"(\d{1,6}(?:\.\d{1,9})?)\s?(ms|h|m|s)(?![a-z])(?:\s*(?:and|,)?\s*)"
_WAIT_PARTS = re.compile(_WAIT_PART)
_WAIT_WORDS = re.compile(rf"(?:retrydelay\W+|(?:retry|try again) (?:in|after) )((?:{_WAIT_PART})+)")
_LONG_UNITS = re.compile(r"(?<=\d)\s?(h|m|s)(?:ours?|in(?:ute)?s?|ec(?:ond)?s?)\b")


def retry_after_ms(fault: Fault, *, now_ms: int) -> int | None:
    """How long the provider asks to wait, from its headers or, where they say nothing, its words; None: it does not say."""
    milliseconds = fault.headers.get("retry-after-ms", "")
    if _is_number(milliseconds):
        return max(0, round(float(milliseconds)))
    value = fault.headers.get("retry-after", "").strip()
    if _is_number(value):
        return max(0, round(float(value) * 1000))
    if value:
        try:
            return max(0, round(parsedate_to_datetime(value).timestamp() * 1000) - now_ms)
        except ValueError:
            return None
    asked = _WAIT_WORDS.search(_LONG_UNITS.sub(r"\1", fault.words))
    return round(sum(float(number) * _UNITS_MS[unit] for number, unit in _WAIT_PARTS.findall(asked[1]))) if asked else None


def _is_number(text: str) -> bool:
    """Whether it is a number of a size that a wait can have; longer ones are no wait, and no integer that can be stored."""
    return re.fullmatch(r"\s*\d{1,12}(\.\d{1,12})?\s*", text) is not None


def _message(fault: Fault, reason: FailureReason) -> str:
    """The provider's words. Of a lost connection the innermost exception knows most: the outer ones say "Connection error."."""
    texts = [text for text in (_cut_traceback(text) for text in fault.texts) if text]
    if not texts:
        return f"HTTP {fault.status}" if fault.status is not None else "The request failed without a word."
    text = max(texts, key=len) if reason == "connection" and len(texts) > 1 and "MidStreamFallbackError" not in fault.kinds else texts[0]
    return text if len(text) <= MAX_MESSAGE_CHARS else text[: MAX_MESSAGE_CHARS - 1] + "…"


def _cut_traceback(text: str) -> str:
    return text.partition("Traceback (most recent call last)")[0].strip()


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, then those it came from; each once."""
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting and len(seen) < MAX_CHAIN:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting.extend(cause for cause in (getattr(one, "original_exception", None), one.__cause__, one.__context__) if isinstance(cause, BaseException))


def _codes(error: BaseException) -> Iterator[str]:
    """The stable codes of an error object, however deep it is packed."""
    objects: list[Any] = [
        {"code": getattr(error, "code", None), "type": getattr(error, "type", None)},
        getattr(error, "body", None),
        packed(stripped(str(error))),
    ]
    while objects:
        value = objects.pop()
        if isinstance(value, dict):
            mapping = cast("dict[str, Any]", value)
            objects.append(mapping.get("error"))
            yield from (str(code).lower() for key in ("code", "type") if isinstance(code := mapping.get(key), str | int))


def _headers(error: BaseException) -> dict[str, str]:
    found = getattr(getattr(error, "response", None), "headers", None)
    return {str(name).lower(): str(value) for name, value in found.items()} if found is not None else {}
