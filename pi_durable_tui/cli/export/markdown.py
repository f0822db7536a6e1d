"""A chat as Markdown, for a wiki, a pull request or an editor. PURE.

An answer is Markdown already and stays as it is. What is not the model's prose stands in fences longer than any that is in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import assert_never

from pi_durable_tui.cli.export.blocks import Answer, Block, Call, Prompt, Remark, Work
from pi_durable_tui.cli.export.inline import escaped
from pi_durable_tui.cli.export.page import Heading

_FENCES = re.compile(r"`{3,}")


def markdown(heading: Heading, blocks: Sequence[Block]) -> str:
    """The whole document."""
    facts = [f"- {name}: {value}" for name, value in (("directory", heading.directory), *heading.facts)]
    return "\n".join([f"# {' '.join(heading.title.split())}", "", *facts, "", *(_block(block) for block in blocks)])


def _block(block: Block, asker: str = "You") -> str:
    """`asker`: whose prompts they are."""
    match block:
        case Prompt():
            images = "".join(f"\n[picture: {kind}]\n" for kind, _ in block.images)
            return f"## {asker}\n\n{_quoted(block.text)}\n{images}"
        case Answer():
            thinking = f"<details><summary>Thinking</summary>\n\n{_fenced(block.thinking)}\n</details>\n\n" if block.thinking.strip() else ""
            return f"## {block.model}\n\n{thinking}{block.text}\n" + (f"\n*{block.problem}*\n" if block.problem else "")
        case Call():
            body = [_fenced(block.diff, "diff") if block.diff else "", _fenced(block.output) if block.output.strip() else "*no output*\n"]
            body += [_block(block.work)] if block.work is not None else []
            return f"### {'✗' if block.is_error else '✓'} `{block.title.replace('`', chr(39))}`\n\n" + "\n".join(part for part in body if part)
        case Work():
            inner = "\n".join(_block(each, "Its task") for each in block.blocks)
            return f"<details><summary>What subagent {escaped(block.name)} did</summary>\n\n{inner}\n</details>\n"
        case Remark():
            return f"<details><summary>{block.title}</summary>\n\n{_fenced(block.text)}\n</details>\n"
        case _:
            assert_never(block)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _fenced(text: str, kind: str = "text") -> str:
    fence = "`" * max(3, 1 + max((len(found) for found in _FENCES.findall(text)), default=0))
    body = text.rstrip("\n")
    return f"{fence}{kind}\n{body}\n{fence}\n"
