"""What can be copied and found in drawn lines."""

from __future__ import annotations

import pytest

from pi_durable_tui.tui.draw.marks import copied, hits
from pi_durable_tui.tui.draw.paint import Painter
from pi_durable_tui.tui.palette import DARK
from pi_durable_tui.tui.rows import AnswerRow, Row, ToolRow, UserRow
from tests.support.tui_story import DIFF


def lines(row: Row, width: int = 40, *, unfolded: bool = False):
    return Painter(width=width, palette=DARK).lines(row, unfolded=unfolded)


URL = "https://example.org/" + "/".join(f"part{number}" for number in range(20)) + "?q=1"
CODE = 'def f(x):\n    return "' + "a long line " * 8 + '"\n\n\nprint(f(1))'


@pytest.mark.rule("TU-4")
@pytest.mark.parametrize("width", [20, 40, 80])
@pytest.mark.parametrize(
    ("row", "text"),
    [
        (AnswerRow(key="a", text=f"See {URL} for more"), f"See {URL} for more"),
        (AnswerRow(key="a", text=f"```python\n{CODE}\n```"), CODE),
        (AnswerRow(key="a", text="- one item that is long enough to wrap at every width that is tried here\n- two"), None),
        (AnswerRow(key="a", text="words that wrap at every width that is tried here, and then some more of them"), None),
        (UserRow(key="u", text=f"please read\n{URL}"), f"please read\n{URL}"),
        (ToolRow(key="t", name="bash", title="bash x", status="failed", started_at_ms=0, output=f"at {URL}"), None),
    ],
)
def test_wrapped_text_is_copied_as_it_was_written(width: int, row: Row, text: str | None) -> None:
    drawn = lines(row, width, unfolded=True)
    wanted = text if text is not None else (row.text.replace("- ", "• ") if isinstance(row, AnswerRow) else f"at {URL}")
    assert wanted in copied(drawn).replace("\n\n• ", "\n• ")


@pytest.mark.rule("TU-4")
def test_a_part_of_a_line_is_copied_by_its_cells() -> None:
    drawn = lines(AnswerRow(key="a", text="日本語 and more"))[1:]
    assert copied(drawn, start_cell=2, end_cell=8) == "日本語"
    assert copied(drawn, start_cell=4, end_cell=12) == "本語 and"
    assert copied(drawn, start_cell=0, end_cell=0) == ""
    assert copied(drawn, start_cell=90) == ""


@pytest.mark.rule("TU-4", "TU-5")
@pytest.mark.parametrize("width", [80, 200])
def test_a_diff_is_copied_as_code_without_numbers_signs_and_columns(width: int) -> None:
    drawn = lines(ToolRow(key="t", name="edit", title="edit a.py", status="done", started_at_ms=0, diff=DIFF, path="a.py"), width)
    shown = copied(drawn[2:]).split("\n")
    assert "    factor = 1.0 - discount" in [line[-27:] for line in shown]
    assert shown[0].startswith("def total(prices: list[float], *, discount: float")
    assert "│" not in "".join(shown)
    assert sum("class Cart:" in line for line in shown) == 1


@pytest.mark.rule("TU-5")
def test_a_diff_stands_side_by_side_where_there_is_room_for_two_columns() -> None:
    row = ToolRow(key="t", name="edit", title="edit a.py", status="done", started_at_ms=0, diff=DIFF, path="a.py")
    wide = [line.plain for line in lines(row, 200)]
    assert any("return sum(prices) * discount" in line and "factor = 1.0 - discount" in line for line in wide)
    assert max(line.cell_len for line in lines(row, 200)) <= 200
    narrow = [line.plain for line in lines(row, 100)]
    assert not any("* discount" in line and "factor" in line for line in narrow)


@pytest.mark.rule("TU-4")
def test_a_text_is_found_across_the_lines_it_is_wrapped_over_and_in_any_case() -> None:
    drawn = lines(AnswerRow(key="a", text=f"See {URL} Here"), 40)
    (hit,) = hits(drawn, URL.upper())
    assert [line for line, _, _ in hit.cells] == list(range(hit.cells[0][0], hit.cells[0][0] + len(hit.cells)))
    assert len(hit.cells) > 2
    assert [len(hits(drawn, text)) for text in ("here", "part1", "no such words", "", "example.org/part0/part1")] == [1, 11, 0, 0, 1]


def test_a_hit_tells_its_cells_behind_wide_characters() -> None:
    drawn = lines(AnswerRow(key="a", text="日本語 word"))
    assert [hit.cells for hit in hits(drawn, "word")] == [((1, 9, 13),)]
    assert [hit.cells for hit in hits(drawn, "語 w")] == [((1, 6, 10),)]
