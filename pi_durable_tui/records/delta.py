"""Changes of a JSON value as small lists of steps: computed by `diff`, carried out by `apply` (rules DO-1 to DO-3). PURE.

A delta is a list of steps, each a JSON list; paths are lists of object keys and list indexes, `[]` is the value itself:

    ["s", path, value]                  set a key of an object, or replace an item of a list
    ["d", path]                         delete a key of an object
    ["r", value]                        replace the whole value
    ["a", path, text]                   append to a string
    ["t", path, n]                      take n characters off the front of a string
    ["l", path, index, delete, items]   in a list, put `items` in the place of `delete` items from `index` on

Steps are carried out in order, each on what the one before left. A list is changed from its end to its front, so that every index
is one of the list as it was. Equality is JSON's, not Python's: True, 1 and 1.0 are three values, and so are 0.0 and -0.0.

The search for small changes is a heuristic with a bounded window, never a quadratic one; only its result must be exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, cast

from pi_durable_tui.errors import BadRequest
from pi_durable_tui.records.document import Op
from pi_durable_tui.records.json import STORED_DEPTH, Json, JsonObject, clean_text, strict

Path: TypeAlias = tuple[str | int, ...]

_WINDOW = 8
"""How many items ahead a changed list item is looked for."""

_PROBES_CHARS = (1024, 64, 16)
"""Lengths of the pieces by which an overlap of two texts is looked for; a shorter overlap is not worth two steps."""

_PROBE_HITS = 16
"""How many places of a piece are tried, so that a repetitive text stays cheap."""

_SHARING_CHARS = 32
"""How much longer than the whole value steps may be, because they leave what did not change shared (rule DO-3)."""


def same(left: Json, right: object) -> bool:
    """True when both are the same JSON value: types count, the order of keys does not, a tuple counts as a list."""
    if left is right:
        return True
    if isinstance(left, dict):
        if not isinstance(right, dict) or len(left) != len(cast("JsonObject", right)):
            return False
        other = cast("JsonObject", right)
        return all(key in other and same(item, other[key]) for key, item in left.items())
    if isinstance(left, list):
        if not isinstance(right, list | tuple):
            return False
        items = cast("Sequence[object]", right)
        return len(left) == len(items) and all(map(same, left, items))
    if left is None or isinstance(left, bool) or isinstance(right, bool):
        return False
    if isinstance(left, float):
        return isinstance(right, float) and left == right and math.copysign(1, left) == math.copysign(1, right)
    return isinstance(right, str if isinstance(left, str) else int) and left == right


def diff(before: Json, after: object, path: str = "$") -> list[Op]:
    """The smallest sensible delta that leads from `before` to `after` (rule DO-1).

    Args:
        before: Strict JSON, as committed.
        after: What it shall become. May hold what is not JSON: only what the steps carry is looked at, made strict and copied.
        path: What to call the value in an error text.

    Returns:
        Steps that share no container with `after`; none when nothing changed.

    Raises:
        BadRequest: A changed part is not JSON; names where it stands.
    """
    return _diff(before, after, (), path)


def apply(ops: Iterable[Op], value: Json) -> Json:
    """The value after the steps (rule DO-2): unchanged subtrees are the same objects as before, `value` itself is not touched (DO-3).

    Containers that a step carries become part of the result by reference; neither may be changed afterwards.

    Raises:
        BadRequest: A step is malformed or does not fit the value; names the step. Nothing changed.
    """
    own = _Own()
    for number, op in enumerate(ops):
        try:
            value = _step(op, value, own)
        except _Unfit as reason:
            raise BadRequest(f"Step {number} of a delta does not fit: {reason}. Nothing was changed.") from None
    return value


# ------------------------------------------------------------------------------------------------------------------ diff


def _diff(before: Json, after: object, path: Path, root: str) -> list[Op]:
    if before is after:
        return []
    if isinstance(before, str) and isinstance(after, str):
        return _diff_text(before, after, path)
    if isinstance(before, dict) and isinstance(after, dict):
        steps = _diff_object(before, cast("dict[object, object]", after), path, root)
    elif isinstance(before, list) and isinstance(after, list | tuple):
        steps = _diff_list(before, cast("Sequence[object]", after), path, root)
    else:
        return [] if same(before, after) else [_replace(after, path, root)]
    if not steps or _are_within_one_part(steps, len(path)):
        return steps
    cost = _cost(steps, math.inf)
    whole = cast("object", after)
    return steps if cost <= _cost(("s", path, whole), cost) + _SHARING_CHARS else [_replace(whole, path, root)]


def _are_within_one_part(steps: list[Op], depth: int) -> bool:
    """True when all steps lead on into one part of the value at `depth`: they were weighed against that part, and the value costs no less."""
    inner = depth + 1
    first = cast("list[Json]", steps[0][1])
    if len(first) <= inner:
        return False
    return len(steps) == 1 or all(len(path) > inner and path[depth] == first[depth] for path in cast("list[list[Json]]", [step[1] for step in steps]))


def _replace(after: object, path: Path, root: str) -> Op:
    value = strict(after, root + _shown(path), depth=STORED_DEPTH - len(path))
    return ["s", list(path), value] if path else ["r", value]


def _diff_object(before: JsonObject, after: dict[object, object], path: Path, root: str) -> list[Op]:
    # A key that was there before is clean; only when there is a new one have the keys to be looked at.
    kept = cast("dict[str, object]", after) if after.keys() <= before.keys() else _clean_keys(before, after, path, root)
    steps: list[Op] = [["d", [*path, key]] for key in before if key not in kept]
    for key, item in kept.items():
        if key not in before:
            steps.append(_replace(item, (*path, key), root))
        elif before[key] is not item:
            steps += _diff(before[key], item, (*path, key), root)
    return steps


def _clean_keys(before: JsonObject, after: dict[object, object], path: Path, root: str) -> dict[str, object]:
    kept: dict[str, object] = {}
    for key, item in after.items():
        (name,) = (key,) if key in before else cast("JsonObject", strict({key: None}, root + _shown(path)))
        kept[cast("str", name)] = item
    return kept


def _diff_list(before: list[Json], after: Sequence[object], path: Path, root: str) -> list[Op]:
    shorter = min(len(before), len(after))
    start = tail = 0
    while start < shorter and same(before[start], after[start]):
        start += 1
    most = shorter - start - (len(before) == len(after))  # of as many items, those at `start` were just found to differ
    while tail < most and same(before[-1 - tail], after[-1 - tail]):
        tail += 1
    ends = (len(before) - tail, len(after) - tail)
    chunks: list[list[Op]] = []
    inner = STORED_DEPTH - len(path) - 1
    at, to = start, start
    for left, right in [*_pairs(before, after, start, ends), ends]:
        if left > at or right > to:
            items = [strict(after[index], f"{root}{_shown(path)}[{index}]", depth=inner) for index in range(to, right)]
            chunks.append([["l", list(path), at, left - at, items]])
        if (left, right) != ends:
            chunks.append(_diff(before[left], after[right], (*path, left), root))
        at, to = left + 1, right + 1
    return [op for chunk in reversed(chunks) for op in chunk]


def _pairs(before: list[Json], after: Sequence[object], start: int, ends: tuple[int, int]) -> list[tuple[int, int]]:
    """Which old item became which new one: both indexes grow; the rest was deleted or inserted."""
    pairs: list[tuple[int, int]] = []
    left = start
    for right in range(start, ends[1]):
        for candidate in range(left, min(left + _WINDOW, ends[0])):
            if _related(before[candidate], after[right]):
                pairs.append((candidate, right))
                left = candidate + 1
                break
    return pairs


def _related(before: Json, after: object) -> bool:
    """A cheap guess whether `after` is what became of `before`: a wrong one costs bytes, never a change."""
    if isinstance(before, dict) and isinstance(after, dict):
        other = cast("JsonObject", after)
        names = [key for key in before if key == "id" or key.endswith("Id")]
        if names:
            return all(key in other and same(before[key], other[key]) for key in names)
        plain = [key for key, item in before.items() if not isinstance(item, dict | list)]
        return sum(1 for key in plain if key in other and same(before[key], other[key])) * 2 >= len(plain)
    if isinstance(before, str) and isinstance(after, str):
        return after.startswith(before[:32]) if len(before) > 64 else before == after
    if isinstance(before, list) and isinstance(after, list | tuple):
        items = cast("Sequence[object]", after)
        return bool(before and items) and same(before[0], items[0])
    return same(before, after)


def _diff_text(before: str, after: str, path: Path) -> list[Op]:
    if before and after.startswith(before):
        # What was committed is clean, so the seam cannot split a surrogate pair: only the new part needs a look.
        more = clean_text(after[len(before) :])
        return [["a", list(path), more]] if more else []
    text = clean_text(after)
    if text == before:
        return []
    whole: list[Op] = [["s", list(path), text] if path else ["r", text]]
    kept = _overlap_chars(before, text)
    if not kept:
        return whole
    trimmed: list[Op] = [["t", list(path), len(before) - kept]]
    if kept < len(text):
        trimmed.append(["a", list(path), text[kept:]])
    return min(trimmed, whole, key=lambda steps: _cost(steps, math.inf))


def _overlap_chars(before: str, after: str) -> int:
    """How many characters at the end of `before` are the beginning of `after`, as far as a few probes find them."""
    if min(len(before), len(after)) < _PROBES_CHARS[-1]:
        return 0
    return next((kept for kept in _overlaps(before, after) if after.startswith(before[-kept:])), 0)


def _overlaps(before: str, after: str) -> Iterator[int]:
    """Guesses at the overlap: where the beginning of `after` stands in `before`, and where the end of `before` stands in `after`."""
    for chars in _PROBES_CHARS:
        at = -1
        for _ in range(_PROBE_HITS):
            at = before.find(after[:chars], at + 1)
            if at < 0:
                break
            yield len(before) - at
    for chars in _PROBES_CHARS[1:]:  # searching backwards for a long piece can be slow
        end = len(after)
        for _ in range(_PROBE_HITS):
            at = after.rfind(before[-chars:], 0, end)
            if at < 0:
                break
            yield at + min(chars, len(before))
            end = at + chars - 1


def _cost(value: object, limit: float) -> float:
    """About how many characters `value` takes as JSON text; counting stops once it is more than `limit`."""
    total = 0
    waiting: list[object] = [value]
    while waiting and total <= limit:
        item = waiting.pop()
        if isinstance(item, str):
            total += len(item) + 3
        elif isinstance(item, dict):
            members = cast("dict[object, object]", item)
            total += 2 + 4 * len(members)
            waiting.extend(members.values())
            total += sum(len(key) for key in members if isinstance(key, str))
        elif isinstance(item, list | tuple):
            items = cast("Sequence[object]", item)
            total += 2 + len(items)
            waiting.extend(items if total <= limit else ())
        else:
            total += 4
    return total


def _shown(path: Path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


# ----------------------------------------------------------------------------------------------------------------- apply


class _Unfit(Exception):
    """Why a step cannot be carried out; on its way to the text of a BadRequest, never seen outside."""


class _Own:
    """The containers made during one `apply`: these, and only these, may be changed in place."""

    def __init__(self) -> None:
        self._made: dict[int, Json] = {}  # by id; holding them keeps the ids from being used again

    def container(self, value: Json) -> JsonObject | list[Json]:
        """`value` itself when it was made here, otherwise a shallow copy that is from now on."""
        if not isinstance(value, dict | list):
            raise _Unfit(f"the path leads into a {type(value).__name__}")
        if id(value) in self._made:
            return value
        fresh = value.copy()
        self._made[id(fresh)] = fresh
        return fresh


def _step(op: Op, value: Json, own: _Own) -> Json:
    match op:
        case ["r", item]:
            return item
        case ["s", [_, *_] as path, item]:
            return _at(value, path, own, lambda _: item, may_add=True)
        case ["d", [*path, str(key)]]:
            return _at(value, path, own, lambda old: _without(own.container(old), key))
        case ["a", list() as path, str(text)]:
            return _at(value, path, own, lambda old: _text(old) + text)
        case ["t", list() as path, int(chars)] if type(chars) is int:
            return _at(value, path, own, lambda old: _trimmed(_text(old), chars))
        case ["l", list() as path, int(index), int(delete), list(items)] if type(index) is type(delete) is int:
            return _at(value, path, own, lambda old: _spliced(own.container(old), index, delete, items))
        case _:
            raise _Unfit("it has none of the known forms")


def _at(value: Json, path: list[Json], own: _Own, change: Callable[[Json], Json], *, may_add: bool = False) -> Json:
    """The value with what stands at `path` changed; only the containers on the way are copied."""
    if not path:
        return change(value)
    root = node = own.container(value)
    for key in path[:-1]:
        child = own.container(_get(node, key))
        _put(node, key, child)
        node = child
    last = path[-1]
    adds = may_add and isinstance(node, dict) and isinstance(last, str) and last not in node
    _put(node, last, change(None if adds else _get(node, last)))
    return root


def _get(node: JsonObject | list[Json], key: Json) -> Json:
    if isinstance(node, dict) and isinstance(key, str) and key in node:
        return node[key]
    if isinstance(node, list) and isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(node):
        return node[key]
    raise _Unfit(f"there is nothing at {key!r}")


def _put(node: JsonObject | list[Json], key: Json, item: Json) -> None:
    """Replace what `_get` found there, or add a key that `_at` allowed."""
    cast("dict[Json, Json]", node)[key] = item


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise _Unfit(f"there is a {type(value).__name__} where a string is needed")
    return value


def _trimmed(text: str, chars: int) -> str:
    if not 0 <= chars <= len(text):
        raise _Unfit(f"{chars} characters cannot be taken off {len(text)}")
    return text[chars:]


def _without(node: JsonObject | list[Json], key: str) -> Json:
    if not isinstance(node, dict) or key not in node:
        raise _Unfit(f"there is no key {key!r} to delete")
    del node[key]
    return node


def _spliced(node: JsonObject | list[Json], index: int, delete: int, items: list[Json]) -> Json:
    if not isinstance(node, list) or not (0 <= index <= index + delete <= len(node) and delete >= 0):
        raise _Unfit(f"a splice at {index} over {delete} items is outside the list")
    node[index : index + delete] = items
    return node
