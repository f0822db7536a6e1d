"""Markdown block by block, and the stream that draws only what changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from pi_durable_tui.tui.draw.markdown import MarkdownPainter, split_blocks
from pi_durable_tui.tui.draw.paint import new_console
from pi_durable_tui.tui.draw.stream import MarkdownStream
from pi_durable_tui.tui.palette import DARK
from tests.tui.test_rows import BRACKETS

CONSOLE = new_console()
ANSWER = """# Heading

A paragraph with `code`, *stress* and
a second line.

- one
- two
  - nested

  still two
- three

3. third
4. fourth

```python
def f():

    return "x"
```
after

| a | b |
|---|--:|
| 1 | 2 |

> quoted
> more

---

Title
=====
last"""


def painter(width: int = 60) -> MarkdownPainter:
    return MarkdownPainter(width=width, palette=DARK, console=CONSOLE)


def plain(text: str, width: int = 60) -> list[str]:
    made = painter(width)
    return [line.plain for block in split_blocks(text) for line in made.block(block)]


@pytest.mark.rule("TU-2")
def test_an_answer_reads_as_its_markdown_means() -> None:
    assert [line.rstrip() for line in plain(ANSWER)] == [
        "Heading",
        "",
        "A paragraph with code, stress and",
        "a second line.",
        "",
        "• one",
        "• two",
        "  • nested",
        "",
        "  still two",
        "• three",
        "",
        "3. third",
        "4. fourth",
        "",
        "▏ def f():",
        "▏",
        '▏     return "x"',
        "after",
        "",
        "a   b",
        "─────",
        "1   2",
        "",
        "┃ quoted",
        "┃ more",
        "",
        "────────────────────────────────────────",
        "",
        "Title",
        "",
        "last",
    ]


@pytest.mark.rule("SA-2", "CASE-E1")
@pytest.mark.parametrize("text", BRACKETS)
def test_brackets_are_no_markup(text: str) -> None:
    assert "\n".join(plain(text)) == text


@pytest.mark.rule("SA-4")
def test_html_stays_text_and_a_link_says_where_it_leads() -> None:
    assert plain("<b>x</b> [docs](https://e.x/a) ![pic](http://e.x/p.png)", 80) == ["<b>x</b> docs (https://e.x/a) pic (http://e.x/p.png)"]


@pytest.mark.rule("TU-2")
@pytest.mark.parametrize("step", [1, 3, 17])
def test_a_stream_ends_with_the_lines_of_the_whole_and_never_redraws_what_it_called_final(step: int) -> None:
    stream = MarkdownStream(painter())
    shown: list[str] = []
    for end in range(step, len(ANSWER) + step, step):
        changed = stream.show(ANSWER[:end])
        assert [line.plain for line in stream.lines[:changed]] == shown[:changed]
        shown = [line.plain for line in stream.lines]
    assert shown == plain(ANSWER)


@pytest.mark.rule("TU-2")
@given(
    st.lists(
        st.sampled_from(
            ["word ", "- item\n", "\n\n", "\n", "```py\n", "x = 1\n", "```\n", "1. a\n", "  nested\n", "# h\n", "| a | b |\n", "|---|---|\n", "**b** "]
        )
    ),
    st.integers(min_value=1, max_value=9),
)
def test_any_growing_text_ends_as_when_drawn_at_once(pieces: list[str], step: int) -> None:
    text = "".join(pieces)
    stream = MarkdownStream(painter())
    for end in range(step, len(text) + step, step):
        stream.show(text[:end])
    assert [line.plain for line in stream.lines] == plain(text)


@pytest.mark.rule("TU-2")
@pytest.mark.parametrize(
    ("opening", "line"),
    [("```python\n", "value = compute(1, 2)\n"), ("", "- an item of a long list\n"), ("", "A short paragraph.\n\n")],
    ids=["fence", "list", "paragraphs"],
)
def test_a_growing_block_costs_the_same_at_its_three_hundredth_line_as_at_its_third(opening: str, line: str) -> None:
    """Counted in lines drawn anew per step, which is what the time is spent on."""
    stream = MarkdownStream(painter())
    text, redrawn = opening, []
    for _ in range(300):
        text += line
        changed = stream.show(text)
        redrawn.append(len(stream.lines) - changed)
    assert max(redrawn) <= 34
    assert len(stream.lines) >= 300


def test_a_text_that_does_not_continue_starts_anew() -> None:
    stream = MarkdownStream(painter())
    stream.show("first\n\nsecond\n\nthird")
    assert stream.show("other") == 0
    assert [line.plain for line in stream.lines] == ["other"]


@pytest.mark.rule("CASE-E6")
@pytest.mark.parametrize("width", [1, 2, 3, 7, 20])
@pytest.mark.parametrize(
    "text", ["日本語のテキスト", "👩\u200d💻 ⏺\ufe0f ㅤㅤ✅ e\u0301 🇩🇪", "x" * 500, "| 日本 | b |\n|---|---|\n| 1 | 2 |", "- - - 日本語", "> > 日本語"]
)
def test_narrow_widths_end_and_lose_no_character(width: int, text: str) -> None:
    lines = plain(text, width)
    assert max(cell_len(line) for line in lines) <= max(width, 12)
    if not text.startswith(("|", "-", ">")):
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")
