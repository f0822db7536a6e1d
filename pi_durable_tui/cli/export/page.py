"""A chat as one HTML page: no script, no link out, nothing loaded; folding and searching are the browser's own. PURE.

The content security policy allows one style, named by its hash, and pictures that stand in the page itself. So even text that got
through the escaping could neither run nor load anything.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import assert_never

from pi_durable_tui.cli.export.blocks import Answer, Block, Call, Prompt, Remark, Work
from pi_durable_tui.cli.export.inline import answer_html, escaped
from pi_durable_tui.cli.export.style import STYLE

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_TIMELINE_CHARS = 72
OPEN_LINES = 12
"""A result of at most so many lines is not folded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What stands over the chat; foreign text, cleaned."""

    title: str
    directory: str
    facts: tuple[tuple[str, str], ...]


def policy(style: str) -> str:
    """The content security policy of a page with that style."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


def page(heading: Heading, blocks: Sequence[Block], *, zone: tzinfo | None) -> str:
    """The whole page. Times in `zone`; None: that of the machine."""
    body = "\n".join(_block(block, zone) for block in blocks) or '<p class="empty">Nothing was said in this chat.</p>'
    facts = "".join(f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>" for name, value in heading.facts)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escaped(policy(STYLE))}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>{escaped(heading.title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>{escaped(heading.title)}</h1>
<p class="directory">{escaped(heading.directory)}</p>
<dl>{facts}</dl>
</header>
<div class="columns">
<nav aria-label="Timeline"><h2>Timeline</h2>
<ol>{_timeline(blocks, zone)}</ol>
</nav>
<main>
{body}
</main>
</div>
<footer>Written by pidurable. This page loads nothing and runs nothing.</footer>
</body>
</html>
"""


def _timeline(blocks: Sequence[Block], zone: tzinfo | None) -> str:
    """Every prompt with what followed it."""
    items: list[str] = []
    for number, block in enumerate(blocks):
        if not isinstance(block, Prompt):
            continue
        after = next((n for n in range(number + 1, len(blocks)) if isinstance(blocks[n], Prompt)), len(blocks))
        calls = [each for each in blocks[number:after] if isinstance(each, Call)]
        failed = sum(call.is_error for call in calls)
        told = ", ".join(part for part in (_count(len(calls), "call"), f"{failed} failed" if failed else "") if part)
        words = " ".join(block.text.split())
        short = words if len(words) <= _TIMELINE_CHARS else words[: _TIMELINE_CHARS - 1] + "…"
        items.append(
            f'<li><a href="#e{block.entry_id}"><time>{_clock(block.at_ms, zone)}</time> {escaped(short)}</a>'
            + (f' <span class="calls">{told}</span>' if told else "")
            + "</li>"
        )
    return "".join(items)


def _block(block: Block, zone: tzinfo | None, asker: str = "You") -> str:
    """`asker`: whose prompts they are."""
    match block:
        case Prompt():
            return _article(block, "prompt", asker, f'<div class="words">{escaped(block.text)}</div>{_pictures(block.images)}', zone)
        case Answer():
            thinking = f'<details class="thinking"><summary>Thinking</summary><div class="words">{escaped(block.thinking)}</div></details>'
            problem = f'<p class="problem">{escaped(block.problem)}</p>' if block.problem else ""
            return _article(block, "answer", block.model, (thinking if block.thinking.strip() else "") + answer_html(block.text) + problem, zone)
        case Call():
            return _call(block, zone)
        case Work():
            return f'<article class="call">{_work(block, zone)}<p class="empty">its call has no result</p></article>'
        case Remark():
            body = f'<details><summary>{escaped(block.title)}</summary><div class="words">{escaped(block.text)}</div></details>'
            return _article(block, "remark", "", body if block.text else f"<p>{escaped(block.title)}</p>", zone)
        case _:
            assert_never(block)


def _article(block: Prompt | Answer | Remark, kind: str, who: str, body: str, zone: tzinfo | None) -> str:
    head = (
        f'<h3>{escaped(who)}</h3><a class="at" href="#e{block.entry_id}"><time datetime="{_moment(block.at_ms, UTC)}">{_moment(block.at_ms, zone)}</time></a>'
    )
    return f'<article class="{kind}" id="e{block.entry_id}"><div class="head">{head}</div>{body}</article>'


def _call(call: Call, zone: tzinfo | None) -> str:
    mark, word = ("✗", "failed") if call.is_error else ("✓", "done")
    took = f' <span class="took">{call.duration_ms / 1000:.1f} s</span>' if call.duration_ms is not None else ""
    output = call.output.rstrip("\n")
    is_open = call.is_error or bool(call.diff) or output.count("\n") < OPEN_LINES
    parts = [
        f'<details class="arguments"><summary>Arguments</summary><pre>{escaped(call.arguments)}</pre></details>' if call.arguments else "",
        f'<pre class="diff">{_diff(call.diff)}</pre>' if call.diff else "",
        f"<pre>{escaped(output)}</pre>" if output else '<p class="empty">no output</p>',
        _pictures(call.images),
        _work(call.work, zone) if call.work is not None else "",
    ]
    summary = f'<summary><span class="mark" title="{word}">{mark}</span> <span class="title">{escaped(call.title)}</span>{took}</summary>'
    body = f'<details class="body"{" open" if is_open else ""}>{summary}{"".join(parts)}</details>'
    kind = "call failed" if call.is_error else "call"
    return f'<article class="{kind}" id="e{call.entry_id}" data-at="{_moment(call.at_ms, zone)}">{body}</article>'


def _work(work: Work, zone: tzinfo | None) -> str:
    """All that a subagent did, folded away."""
    calls = sum(isinstance(block, Call) for block in work.blocks)
    told = f' <span class="calls">· {_count(calls, "call")}</span>' if calls else ""
    body = "\n".join(_block(block, zone, "Its task") for block in work.blocks)
    return f'<details class="subagent"><summary>What subagent <b>{escaped(work.name)}</b> did{told}</summary>{body}</details>'


def _diff(diff: str) -> str:
    kinds = {"+": "added", "-": "removed", "@": "place"}
    lines = [(kinds.get(line[:1], ""), escaped(line)) for line in diff.rstrip("\n").split("\n")]
    return "\n".join(f'<span class="{kind}">{line}</span>' if kind else line for kind, line in lines)


def _pictures(images: Sequence[tuple[str, str]]) -> str:
    """Pictures in the page itself; of other kinds only the name."""
    told: list[str] = []
    for kind, data in images:
        if kind in _PICTURES and _BASE64.fullmatch(data):
            told.append(f'<img alt="{kind}" src="data:{kind};base64,{data}">')
        else:
            told.append(f'<p class="empty">a picture ({escaped(kind)})</p>')
    return "".join(told)


def _moment(at_ms: int, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(at_ms / 1000, tz=UTC).astimezone(zone).strftime("%Y-%m-%d %H:%M:%S")


def _clock(at_ms: int, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(at_ms / 1000, tz=UTC).astimezone(zone).strftime("%H:%M")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}" if number else ""
