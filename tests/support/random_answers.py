"""Answers of a model for a random session: good ones, and every bad one that is known, as steps of `model_server.py`. PURE."""

from __future__ import annotations

import json

from tests.support.model_server import CUT, STALL, Step, call, fail, finish, reason, redacted, refuse, text

ANSWERS: dict[str, int] = {
    "text": 30,
    "thinking": 6,
    "read": 8,
    "parallel": 12,
    "near miss": 6,
    "edit": 6,
    "bash": 2,
    "bad json": 6,
    "not an object": 3,
    "wrong arguments": 4,
    "unknown tool": 5,
    "odd ids": 5,
    "same ids": 4,
    "cut call": 5,
    "cut text": 3,
    "empty": 3,
    "only thoughts": 2,
    "blank text": 3,
    "surrogates": 2,
    "overflow": 3,
    "thinking refused": 3,
    "overloaded": 4,
    "rate limit": 2,
    "quota": 1,
    "broken": 5,
    "broken call": 4,
    "error in the middle": 3,
    "stall": 3,
}
"""Kinds of answers, and how often they come beside each other."""


READ = '{"path": "a.py"}'
TODO = '{"items": [{"text": "x", "status": "pending"}]}'
NEAR = json.dumps({"path": "a.py", "edits": [{"old": "def a( ):\n  return 1", "new": "def a():\n    return 2"}]})
NO_OBJECTS = ("[]", '"ls"', "null", '{"a":1}{"b":2}')
NO_TOOLS = ("search_files", "bash ", "Bash", "ü")

WITHOUT_CALLS: dict[str, list[Step]] = {
    "cut text": [text("so far and no"), finish("length")],
    "empty": [finish("stop")],
    "only thoughts": [reason("nothing to say"), finish("stop")],
    "overflow": [refuse("overflow", "prompt is too long: 209303 tokens > 200000 maximum")],
    "thinking refused": [refuse("thinking", "messages.1: `thinking` blocks in the latest assistant message cannot be modified")],
    "overloaded": [refuse("overloaded", "Overloaded")],
    "rate limit": [refuse("rate_limit", "slow down", {"retry-after": "2"})],
    "quota": [refuse("quota", "You exceeded your current quota")],
    "broken": [text("half a sen"), CUT],
    "error in the middle": [text("hel"), fail("overloaded", "Overloaded")],
    "stall": [text("and then"), STALL],
}
CUT_OFF: dict[str, Step] = {"cut call": finish("length"), "broken call": CUT}
"""How answers end that do not end with their calls."""


def steps(kind: str, number: int, *, with_thoughts: bool) -> list[Step]:
    """An answer of a kind of `ANSWERS` to request `number`.

    Args:
        with_thoughts: Signed thoughts stand before it where it is a good one.
    """
    if kind in WITHOUT_CALLS:
        return WITHOUT_CALLS[kind]
    thoughts = [reason(f"thought {number} ", f"sig{number}==")] if with_thoughts else []
    if kind == "text":
        return [*thoughts, text(f"answer {number}"), finish("stop")]
    if kind == "thinking" and with_thoughts:
        thoughts.append(redacted(f"hidden{number}"))
    return [*thoughts, *_calling(number)[kind], CUT_OFF.get(kind, finish("tool_calls"))]


def _calling(number: int) -> dict[str, list[Step]]:
    first, second, third = (f"toolu_{number}_{place}" for place in range(3))
    return {
        "thinking": [text("so"), call(0, first, "ls", "{}")],
        "read": [call(0, first, "read", READ)],
        "parallel": [text("three"), call(0, first, "read", READ), call(1, second, "ls", "{}"), call(2, third, "todo", TODO)],
        "near miss": [call(0, first, "read", READ), call(1, second, "edit", NEAR)],
        "edit": [call(0, first, "write", json.dumps({"path": f"new{number}.py", "content": f"x = {number}\n"}))],
        "bash": [call(0, first, "bash", '{"command": "echo hi"}')],
        "bad json": [call(0, first, "bash", '{"command": "cd /x && git commit -m \\"f'), call(1, second, "read", READ)],
        "not an object": [call(0, first, "ls", NO_OBJECTS[number % len(NO_OBJECTS)])],
        "wrong arguments": [call(0, first, "read", '{"file": 5}'), call(1, second, "bash", '{"command": 5}')],
        "unknown tool": [call(0, first, NO_TOOLS[number % len(NO_TOOLS)], "{}")],
        "odd ids": [call(0, "functions.read:0", "read", READ), call(1, "i" * 90, "ls", "{}")],
        "same ids": [call(0, "call_same", "read", READ), call(1, "call_same", "ls", "{}")],
        "blank text": [text("  \n"), call(0, first, "ls", "{}")],
        "surrogates": [text("x\ud83d"), call(0, first, "read", '{"path": "\\ud83d.txt"}')],
        "cut call": [call(0, first, "write", '{"path": "big.py", "content": "def a():\\n')],
        "broken call": [text("I will"), call(0, first, "bash", '{"command": "rm -rf bui')],
    }
