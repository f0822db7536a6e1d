"""What a failure means, from facts alone: the library is not imported."""

from __future__ import annotations

import pytest

from pi_durable_tui.harness.ports import ModelFailed
from pi_durable_tui.models.failures import MAX_MESSAGE_CHARS, Fault, failure, fault_of, reason_of, retry_after_ms
from pi_durable_tui.models.redaction import redact


def fault(text: str = "", status: int | None = None, *kinds: str, code: str = "", **headers: str) -> Fault:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Fault(kinds=frozenset(kinds), status=status, codes=frozenset({code} - {""}), texts=(text,) if text else (), headers=named)


@pytest.mark.parametrize(
    "of",
    [
        fault("prompt is too long: 209303 tokens > 200000 maximum", 400),
        fault("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 400),
        fault("The total length of all messages is too long.", 400),
        fault("anything", 400, code="context_length_exceeded"),
        fault("", 413),
        fault("prompt is too long", 500, "MidStreamFallbackError"),
        fault("This model's maximum context length is 8192 tokens, however you requested 9000 tokens", 400),
        fault("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", 400),
        fault("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 400),
        fault("the request exceeds the available context size. try increasing the context size", 400),
        fault("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 33000.", 429, "RateLimitError"),
        fault("Please reduce the length of the messages or completion.", 400),
        fault("x", 400, "ContextWindowExceededError", "BadRequestError"),
    ],
)
@pytest.mark.rule("GE-6", "CASE-B5")
def test_an_overflow_of_the_context_is_recognised(of: Fault) -> None:
    assert reason_of(of) == "context_overflow"


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (fault("messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.", 400), "thinking_refused"),
        (fault("messages.3.content.1: Invalid `signature` in `thinking` block", 400, "BadRequestError"), "thinking_refused"),
        (fault("Expected `thinking` or `redacted_thinking`, but found `tool_use`.", 400), "thinking_refused"),
        (fault("The reasoning_content in the thinking mode must be passed back to the API.", 400), "thinking_refused"),
        (fault("Item 'rs_1' of type 'reasoning' was provided without its required following item.", 400), "thinking_refused"),
        (fault("The encrypted content gAAA could not be verified.", 400, code="invalid_encrypted_content"), "thinking_refused"),
        (fault("Thought signature is not valid", 400), "thinking_refused"),
        (fault("adaptive thinking is not supported on this model", 400), "invalid_request"),
        (fault("Overloaded while thinking blocks cannot be modified", 529), "overloaded"),
    ],
)
@pytest.mark.rule("CASE-B9")
def test_a_refusal_of_earlier_thoughts_is_told_from_other_refusals(of: Fault, reason: str) -> None:
    assert reason_of(of) == reason


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (fault("max_tokens must be <= 8192", 400, "BadRequestError"), "invalid_request"),
        (fault("max_tokens is too large: 100000. This model supports at most 16384 completion tokens", 400), "invalid_request"),
        (fault("Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000.", 429), "rate_limit"),
        (fault("messages.1: text content blocks must contain non-whitespace text", 400), "invalid_request"),
    ],
)
@pytest.mark.rule("CASE-B5")
def test_other_limits_are_no_overflow_of_the_context(of: Fault, reason: str) -> None:
    assert reason_of(of) == reason


@pytest.mark.parametrize(
    ("of", "reason", "retryable"),
    [
        (fault("Overloaded", 529, "APIError"), "overloaded", True),
        (fault("x", 500, "MidStreamFallbackError", code="overloaded_error"), "overloaded", True),
        (fault("slow down", 429), "rate_limit", True),
        (fault("You exceeded your current quota", 429, code="insufficient_quota"), "quota", False),
        (fault("Your credit balance is too low to access the API.", 400), "quota", False),
        (fault('You exceeded your current quota ... PerMinutePerProject ... "retryDelay": "20s"', 429), "rate_limit", True),
        (fault("boom", 500, "InternalServerError"), "server", True),
        (fault("bad gateway", 502), "server", True),
        (fault("Missing credentials. Please pass an `api_key`", 500, "InternalServerError"), "auth", False),
        (fault("Missing Gemini API key. Set the GEMINI_API_KEY", 500, "APIConnectionError", "ValueError"), "auth", False),
        (fault("bad key", 401), "auth", False),
        (fault("not for you", 403), "auth", False),
        (fault("no such model", 404), "no_model", False),
        (fault("LLM Provider NOT provided. You passed model=x", 400), "no_model", False),
        (fault("Request timed out.", 408, "Timeout", "APITimeoutError", "APIConnectionError"), "timeout", True),
        (fault("Connection error.", 500, "InternalServerError", "OpenAIError"), "connection", True),
        (fault("Cannot connect to host x:443", 500, "InternalServerError"), "connection", True),
        (fault("half", 500, "MidStreamFallbackError"), "connection", True),
        (fault("no such tool", 400, "MidStreamFallbackError", code="400"), "invalid_request", False),
        (fault("KeyError: 'x'\nTraceback (most recent call last)\n ...", 500, "APIConnectionError", "KeyError"), "unknown", False),
        (fault("odd", None, "TypeError"), "unknown", False),
        (fault("bad field", 422), "invalid_request", False),
        (fault("", None, "UnsupportedParamsError", "BadRequestError"), "invalid_request", False),
    ],
)
@pytest.mark.rule("GE-6", "CASE-B3", "CASE-H2")
def test_the_reason_decides_whether_trying_again_helps(of: Fault, reason: str, retryable: bool) -> None:
    failed = failure(of, now_ms=0)

    assert (failed.reason, failed.retryable) == (reason, retryable)


@pytest.mark.parametrize(
    ("of", "wait_ms"),
    [
        (fault("", 429, retry_after="2"), 2_000),
        (fault("", 429, retry_after="0.5"), 500),
        (fault("", 429, retry_after_ms="1500", retry_after="99"), 1_500),
        (fault("", 429, retry_after="Tue, 14 Nov 2023 22:13:30 GMT"), 10_000),
        (fault("", 429, retry_after="Tue, 14 Nov 2000 22:13:30 GMT"), 0),
        (fault("", 429, retry_after="soon"), None),
        (fault("", 429, retry_after="9" * 400), None),
        (fault("", 429, retry_after="1" + "0" * 30), None),
        (fault("", 429, retry_after_ms="9" * 400, retry_after="2"), 2_000),
        (fault('"retryDelay": "20s"', 429), 20_000),
        (fault("Please try again in 1.5s.", 429), 1_500),
        (fault("Please try again in 350ms.", 429), 350),
        (fault("Please try again in 1m20.5s.", 429), 80_500),
        (fault("Please retry after 20 seconds.", 429), 20_000),
        (fault("Retry in 1 minute and 5 sec", 429), 65_000),
        (fault("try again in 2 hours", 429), 7_200_000),
        (fault("try again in 3 models", 429), None),
        (fault("", 429), None),
    ],
)
@pytest.mark.rule("CASE-B3")
def test_how_long_to_wait_is_read_from_headers_and_words(of: Fault, wait_ms: int | None) -> None:
    assert retry_after_ms(of, now_ms=1_700_000_000_000) == wait_ms


def test_a_failure_that_is_not_retried_names_no_wait_except_a_quota() -> None:
    assert failure(fault("no", 401, retry_after="5"), now_ms=0).retry_after_ms is None
    assert failure(fault("no", 402, retry_after="5"), now_ms=0).retry_after_ms == 5_000


@pytest.mark.rule("SA-17")
def test_the_message_holds_no_secret_no_broken_text_and_has_an_end() -> None:
    failed = failure(fault("key hunter2-hunter2 \ud83d " + "x" * 5_000, 400), now_ms=0, secrets=("hunter2-hunter2",))

    assert failed.message.startswith("key [redacted] \ufffd xxx")
    assert len(failed.message) <= MAX_MESSAGE_CHARS


def test_a_failure_without_words_still_says_something() -> None:
    assert failure(fault("", 500), now_ms=0) == ModelFailed(reason="server", message="HTTP 500", retryable=True)
    assert failure(fault(), now_ms=0).message == "The request failed without a word."


class StatusError(Exception):
    """An exception as client libraries make them."""

    def __init__(self, message: str, status_code: int, body: object = None) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.body = body


def test_the_facts_of_a_chain_are_those_of_all_its_exceptions() -> None:
    outer = StatusError("litellm.InternalServerError: InternalServerError: OpenAIException - Connection error.", 500, {"error": {"code": "X", "type": 7}})
    outer.__cause__ = ConnectionRefusedError("Cannot connect to host 127.0.0.1:9 ssl:<ssl.SSLContext object at 0x7f> [Connect call failed]")
    of = fault_of(outer)

    assert of.texts == ("Connection error.", "Cannot connect to host 127.0.0.1:9 [Connect call failed]")
    assert of.status == 500
    assert of.codes == frozenset({"x", "7"})
    assert {"StatusError", "ConnectionRefusedError"} <= of.kinds
    assert failure(of, now_ms=0).message == "Cannot connect to host 127.0.0.1:9 [Connect call failed]"


@pytest.mark.parametrize(
    ("text", "message", "codes"),
    [
        ("litellm.RateLimitError: OpenAIException - slow", "slow", set()),
        ("OpenAIException - finish_reason: error, no content string given. Received Chunk={'text': ''}", "finish_reason: error", set()),
        ('AnthropicException - {"type":"error","error":{"type":"overloaded_error","message":"Busy"}}', "Busy", {"error", "overloaded_error"}),
        ('AnthropicException - b\'{"error":{"message":"Busy"}}\'', "Busy", set()),
        ('{"error": "busy"}', "busy", set()),
        ('{"detail": 1}', '{"detail": 1}', set()),
        ("{not json", "{not json", set()),
        ('["a"]', '["a"]', set()),
        ("", "HTTP 418", set()),
    ],
)
def test_the_words_of_the_provider_are_unpacked(text: str, message: str, codes: set[str]) -> None:
    of = fault_of(StatusError(text, 418))

    assert failure(of, now_ms=0).message == message
    assert of.codes == codes


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Incorrect API key provided: sk-proj-abcdefgh12345678.", "Incorrect API key provided: [redacted]."),
        ("Authorization: Bearer abcdefgh.ijkl", "Authorization: Bearer [redacted]"),
        ("key=AIzaSyA1234567890abcdefghijk", "key=[redacted]"),
        ("a desk-top and a task-list stay", "a desk-top and a task-list stay"),
        ("short is no secret: abc", "short is no secret: abc"),
        ("outer-secret-long and outer-secret", "[redacted] and [redacted]"),
    ],
)
@pytest.mark.rule("SA-17")
def test_keys_are_redacted_and_words_are_not(text: str, shown: str) -> None:
    assert redact(text, ("abc", "outer-secret", "outer-secret-long")) == shown
