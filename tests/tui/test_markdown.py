"""Markdown block by block, and the stream that draws only what changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from pi_durable_tui.tui.draw.markdown import MAX_OPEN_BLOCK_CHARS, MarkdownPainter, split_blocks
from pi_durable_tui.tui.draw.marks import copied
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


LONG = {"words": "a sentence of some words ", "a paragraph of many lines": "a line of it that is not short\n", "no blanks": "x1y2z3"}


@pytest.mark.rule("TU-2", "CASE-E2")
@pytest.mark.parametrize("piece", LONG.values(), ids=LONG.keys())
def test_one_paragraph_of_endless_length_is_not_wrapped_again_and_again(piece: str) -> None:
    """Counted in lines drawn anew per step: no more for the last of 100,000 characters than for the first ten thousand."""
    stream, text, redrawn = MarkdownStream(painter()), "", []
    whole = piece * (100_000 // len(piece))
    for end in range(2_000, len(whole), 2_000):
        text = whole[:end]
        changed = stream.show(text)
        redrawn.append(len(stream.lines) - changed)
    assert max(redrawn[5:]) <= max(redrawn[:5]) <= 2 * MAX_OPEN_BLOCK_CHARS // 40
    assert [line.plain for line in stream.lines] == plain(text)
    assert copied(stream.lines).replace("\n", " ") == text.replace("\n", " ").rstrip()


@pytest.mark.rule("TU-2")
def test_a_part_of_a_long_line_that_looks_like_something_else_stays_prose() -> None:
    line = "word " * 1_199 + "more - [no item] # nor a heading ``` nor a fence " * 300
    stream = MarkdownStream(painter())
    for end in range(5_900, len(line), 7):
        stream.show(line[:end])
    assert copied(stream.lines) == copied([drawn for block in split_blocks(line[:end]) for drawn in painter().block(block)])
    assert "\n" not in copied(stream.lines)


@pytest.mark.rule("TU-2")
def test_a_table_longer_than_a_paragraph_may_be_stays_a_table() -> None:
    rows = "".join(f"| name {number} | {'a long cell ' * 6} |\n" for number in range(150))
    lines = plain(f"| a | b |\n|---|---|\n{rows}", 100)
    assert [line for line in lines if "|" in line] == []
    assert len(lines) == 152


def test_a_stream_of_a_long_line_is_followed_by_what_follows_it() -> None:
    text = "word " * 3_000 + "end\n\n- item\n\nlast **word**"
    stream = MarkdownStream(painter())
    for end in range(10_000, len(text) + 1, 3):
        stream.show(text[:end])
    stream.show(text)
    assert [line.plain for line in stream.lines] == plain(text)
    assert plain(text)[-4:] == ["", "• item", "", "last word"]


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
