"""What a view becomes on the screen, before anything is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pi_durable_tui.harness.live import Failure, Generation, Live, RetryWait, Run
from pi_durable_tui.records.entry import COMPACTION, SYSTEM, THOUGHTS_REFUSED, Entry, StoredEntry
from pi_durable_tui.records.messages import Problem, SystemMessage, Text, ToolCall, UserMessage
from pi_durable_tui.records.submission import Placed, Submission, Unanswered
from pi_durable_tui.tui.draw.paint import Painter
from pi_durable_tui.tui.palette import DARK
from pi_durable_tui.tui.projection import Projection
from pi_durable_tui.tui.rows import AnswerRow, MarkRow, QueuedRow, RetryRow, Row, SummaryRow, ThinkingRow, ToolRow, UserRow, queued_rows
from pi_durable_tui.tui.safe_text import SEQUENCE_MARK
from tests.support.tui_views import START_MS, answer, result, slot, thinking, user, view, with_live

BRACKETS = [
    "[/",
    "see [/etc/hosts] now",
    "[/dim]",
    "arr[i]",
    "$x [not bold]",
    "[data: /a?b=c-609b-]",
    "x = [a=b,\n]",
    "ZLEX [b +",
    "[@click=app.bell]hi[/]",
    "[link=http://e.x]a[/link]",
]
ATTACK = "A\x1b]52;c;UFdORUQ=\x07B\x9b2J"
HARMLESS = f"A{SEQUENCE_MARK}B{SEQUENCE_MARK}"
DIFF = "@@ -1,1 +1,1 @@\n-a\n+b"


def rows_of(projection: Projection, made: object) -> list[Row]:
    return list(projection.apply(made).rows)


@pytest.mark.rule("TU-1", "TU-5", "TU-6")
def test_a_story_becomes_one_row_for_each_thing_said_or_done() -> None:
    story = view(
        user(1, "fix it"),
        answer(2, thinking("hm"), "I look.", ToolCall(id="c3", name="bash", arguments={}), stop="toolUse"),
        result(3, "edit", "edit a.py", "ok", arguments={"path": "a.py"}, details={"diff": DIFF, "added": 1, "removed": 1}),
        result(4, "bash", "bash false", "boom", is_error=True, details={"exitCode": 1}),
        answer(5, "Done."),
    )
    assert rows_of(Projection(), story) == [
        UserRow(key="entry-1", text="fix it"),
        ThinkingRow(key="entry-2-0", text="hm"),
        AnswerRow(key="entry-2-1", text="I look."),
        ToolRow(
            key="tool-10003",
            name="edit",
            title="edit a.py",
            status="done",
            started_at_ms=START_MS,
            duration_ms=120,
            output="ok",
            diff=DIFF,
            added_lines=1,
            removed_lines=1,
            path="a.py",
        ),
        ToolRow(key="tool-10004", name="bash", title="bash false", status="failed", started_at_ms=START_MS, duration_ms=120, output="boom", exit_code=1),
        AnswerRow(key="entry-5-0", text="Done."),
    ]


@pytest.mark.rule("TU-5")
def test_a_running_call_and_its_result_are_the_same_row_by_key() -> None:
    running = rows_of(Projection(), view(tools=[slot(10_003, "bash", "bash make", output="half")]))
    done = rows_of(Projection(), view(result(3, "bash", "bash make", "whole")))
    assert [row.key for row in running] == [row.key for row in done]
    assert running == [ToolRow(key="tool-10003", name="bash", title="bash make", status="running", started_at_ms=START_MS, output="half")]


@pytest.mark.rule("TO-2", "TU-5")
def test_an_interrupted_call_shows_its_stored_output_and_what_is_known() -> None:
    words = "Tool bash was interrupted and may have partially run"
    cut = result(
        3,
        "bash",
        "bash make",
        "half",
        f"<harness>\n[error] {words}\n</harness>",
        is_error=True,
        diagnostics=[{"level": "error", "code": "interrupted", "message": words}],
    )
    (row,) = rows_of(Projection(), view(cut))
    assert isinstance(row, ToolRow)
    assert (row.status, row.output, row.remarks) == ("interrupted", "half", (words,))


@pytest.mark.parametrize(
    ("stop", "problem", "tone", "text"),
    [
        ("aborted", Problem(reason="interrupted"), "warn", "Interrupted here: the program ended while this was being written"),
        ("aborted", Problem(reason="aborted"), "warn", "Stopped"),
        ("error", Problem(reason="auth", message="No key"), "bad", "No key. What you wrote is stored: any message tries again, /model chooses another model."),
        ("length", None, "warn", "Cut off at the model's output limit"),
    ],
)
def test_an_answer_that_did_not_end_well_says_so_below_its_text(stop: str, problem: Problem | None, tone: str, text: str) -> None:
    rows = rows_of(Projection(), view(answer(2, "half an ans", stop=stop, problem=problem)))
    assert rows == [AnswerRow(key="entry-2-0", text="half an ans"), MarkRow(key="entry-2-end", tone=tone, text=text)]


def test_a_wait_before_the_next_attempt_is_a_row() -> None:
    waiting = view(streaming=[])
    generation = Generation(
        task_id=900,
        attempt=2,
        started_at_ms=START_MS,
        retry=RetryWait(attempt=1, until_ms=START_MS + 4_000, problem=Problem(reason="overloaded", message="Busy")),
    )
    live = with_live(waiting, generation=generation)
    assert rows_of(Projection(), view(streaming=[], live=live)) == [RetryRow(key="retry-1", attempt=1, until_ms=START_MS + 4_000, reason="Busy")]


def test_a_failed_run_is_told_once() -> None:
    failed = with_live(view(), run_failure=Failure(reason="no_model", task_id=1, attempt=1, at_ms=START_MS, message="No model is set"))
    assert rows_of(Projection(), view(user(1, "hi"), live=failed))[1:] == [
        MarkRow(key="failure", tone="bad", text="No model is set. What you wrote is stored: /model chooses a model, any message then tries again.")
    ]
    told = answer(2, stop="error", problem=Problem(reason="auth"))
    assert rows_of(Projection(), view(user(1, "hi"), told, live=failed))[1:] == [
        MarkRow(key="entry-2-end", tone="bad", text="auth. What you wrote is stored: any message tries again, /model chooses another model.")
    ]


@pytest.mark.rule("TU-1")
def test_unchanged_entries_keep_their_row_objects_and_only_the_rest_is_new() -> None:
    projection = Projection()
    first = projection.apply(view(user(1, "a"), streaming=["One"]))
    kept, open_row = first.rows[0], first.rows[1]
    second = projection.apply(view(user(1, "a"), streaming=["One two"]))
    assert second.changed_from == 1
    assert second.rows[0] is kept
    assert second.rows[1] == AnswerRow(key="live-0", text="One two", is_open=True)
    third = projection.apply(view(user(1, "a"), streaming=["One two"], committed_at_ms=START_MS + 50))
    assert third.changed_from == len(third.rows) == 2
    assert third.rows[1] is not open_row
    fourth = projection.apply(view(user(1, "a"), answer(2, "One two three."), user(3, "b")))
    assert fourth.changed_from == 1
    assert list(fourth.rows) == [kept, AnswerRow(key="entry-2-0", text="One two three."), UserRow(key="entry-3", text="b")]


@pytest.mark.rule("TU-1")
def test_closing_and_opening_draws_the_same_rows() -> None:
    stories = [
        view(user(1, "a"), streaming=[]),
        view(user(1, "a"), streaming=["x \x1b[2J"]),
        view(user(1, "a"), answer(2, "x \x1b[2J y"), user(3, "b"), streaming=[]),
    ]
    projection = Projection()
    for made in stories:
        assert list(projection.apply(made).rows) == rows_of(Projection(), made)


@pytest.mark.rule("TU-1")
def test_older_pages_come_in_front_and_go_again() -> None:
    projection = Projection()
    projection.apply(view(user(10, "ten", seq=1), has_older=True))
    change = projection.prepend((user(8, "eight", seq=1), user(9, "nine", seq=1)))
    assert (change.prepended, [row.key for row in change.rows], projection.first_id) == (2, ["entry-8", "entry-9", "entry-10"], 8)
    change = projection.drop_older()
    assert (change.prepended, [row.key for row in change.rows], projection.first_id) == (-2, ["entry-10"], 10)


@pytest.mark.rule("TU-9")
def test_the_seam_stands_where_the_run_was_resumed_and_stays_there() -> None:
    projection = Projection(seam="Killed; nothing lost")
    seam = MarkRow(key="seam", tone="info", text="Killed; nothing lost", is_seam=True)
    cut = answer(2, "Half", stop="aborted", problem=Problem(reason="interrupted"))
    before = rows_of(projection, view(user(1, "a"), seq=7, streaming=["Half"]))
    assert before[-2:] == [AnswerRow(key="live-0", text="Half", is_open=True), seam]
    cut_off = rows_of(projection, view(user(1, "a"), cut, seq=8, busy=True))
    assert cut_off[-1] == seam
    other = Generation(task_id=901, attempt=1, started_at_ms=START_MS + 9_000)
    again = view(user(1, "a"), cut, streaming=[])
    resumed = rows_of(projection, view(user(1, "a"), cut, live=with_live(again, generation=other)))
    assert resumed[-1] == seam
    late = user(20, "next")
    assert [row.key for row in rows_of(projection, view(user(1, "a"), cut, late))] == ["entry-1", "entry-2-0", "entry-2-end", "seam", "entry-20"]


@pytest.mark.rule("TU-12")
def test_queued_messages_show_their_state() -> None:
    delivered = Submission(id=4, conversation_id=1, mode="steer", content=(Text(text="stop that"),), digest="", at_ms=START_MS + 1, state=Placed(entry_id=5))
    first = Submission(id=3, conversation_id=1, mode="followUp", content=(Text(text="the prompt"),), digest="", at_ms=START_MS - 1, state=Placed(entry_id=4))
    made = view(streaming=[], queued=[("steer", "use tabs"), ("followUp", "then\npush"), ("write", "a note")], submissions=(first, delivered))
    assert queued_rows(made) == (
        QueuedRow(submission_id=4, text="stop that", mode="steer", state="delivered"),
        QueuedRow(submission_id=500, text="use tabs", mode="steer", state="queued"),
        QueuedRow(submission_id=501, text="then push", mode="followUp", state="queued"),
    )
    idle = view(queued=[("followUp", "then push")])
    assert queued_rows(idle) == (QueuedRow(submission_id=500, text="then push", mode="followUp", state="held"),), "the run failed"


@pytest.mark.rule("SA-1", "CASE-G1")
def test_every_foreign_text_of_a_row_is_safe() -> None:
    made = view(
        user(1, ATTACK),
        answer(2, thinking(ATTACK), ATTACK, stop="error", problem=Problem(reason="server", message=ATTACK)),
        result(
            3, ATTACK, ATTACK, ATTACK, arguments={"path": ATTACK}, details={"diff": ATTACK}, diagnostics=[{"level": "info", "code": "note", "message": ATTACK}]
        ),
        streaming=[thinking(ATTACK), ATTACK],
        tools=[slot(9, ATTACK, ATTACK, output=ATTACK, arguments={"path": ATTACK})],
        queued=[("steer", ATTACK)],
    )
    rows: list[object] = [*rows_of(Projection(seam=ATTACK), made), *queued_rows(made)]
    assert len(rows) == 10
    for row in rows:
        assert "\\x1b" not in repr(row)
        assert "\\x9b" not in repr(row)
        assert HARMLESS in repr(row)


@pytest.mark.rule("SA-1")
def test_a_sequence_split_over_two_views_of_a_stream_never_shows_its_tail() -> None:
    projection = Projection()
    shown = [rows_of(projection, view(streaming=[text]))[0] for text in ("safe\x1b]52;c;UFd", "safe\x1b]52;c;UFdORUQ=\x07 on")]
    assert [row.text for row in shown if isinstance(row, AnswerRow)] == ["safe", f"safe{SEQUENCE_MARK} on"]


@pytest.mark.rule("CASE-E1")
@pytest.mark.parametrize("text", BRACKETS)
def test_brackets_stay_as_they_are(text: str) -> None:
    made = view(user(1, text), answer(2, text), result(3, "bash", text, text))
    assert [getattr(row, "text", getattr(row, "output", "")) for row in rows_of(Projection(), made)] == [text, text, text]


@pytest.mark.rule("CASE-D5")
def test_running_output_shows_the_last_state_of_progress_bars_without_colour_codes() -> None:
    (row,) = rows_of(Projection(), view(tools=[slot(9, "bash", "bash x", output="P 10%\rP 100%\n\x1b[31mred\x1b[0m\n")]))
    assert isinstance(row, ToolRow)
    assert row.output == "P 100%\nred"


@pytest.mark.rule("TU-17", "CO-1")
def test_a_compaction_is_one_row_that_says_what_was_summarized() -> None:
    message = UserMessage(content=(Text(text="<summary>\nWhat **was** done.\n</summary>"),))
    data = {"tokensBefore": 31_200, "entriesSummarized": 42, "files": ["a.py"], "taskId": 9}
    entry = Entry(id=5, conversation_id=1, kind=COMPACTION, at_ms=START_MS, message=message, data=data, head=3)
    (row,) = rows_of(Projection(), view(StoredEntry(seq=5, entry=entry)))
    assert row == SummaryRow(key="entry-5", head="Summary of 42 entries · 31,200 tokens before · 1 file touched", text="What **was** done.")
    painter = Painter(width=80, palette=DARK, unfold_key="F4")
    assert [line.plain for line in painter.lines(row, unfolded=False)] == ["", f"─── {row.head} (F4) ─────────".ljust(80, "─")[:80]]
    assert painter.lines(row, unfolded=True)[-1].plain == "  What was done."


@pytest.mark.rule("TU-17")
def test_a_summary_that_was_not_made_says_why() -> None:
    failure = Failure(reason="auth", task_id=9, attempt=1, at_ms=START_MS, message="bad key")
    made = view(user(1, "go"))
    (_, row) = rows_of(Projection(), replace(made, live=with_live(made, compaction_failure=failure)))
    assert row == MarkRow(key="compaction-failure", tone="bad", text="The summary was not made: bad key")


@pytest.mark.rule("TU-8")
def test_an_input_that_was_stopped_before_anything_came_of_it_says_so() -> None:
    stopped = Unanswered(problem=Problem(reason="aborted"), entry_id=1)
    one = Submission(id=1, conversation_id=1, mode="followUp", content=(Text(text="go"),), digest="", at_ms=0, state=stopped)
    assert rows_of(Projection(), view(user(1, "go"), submissions=(one,)))[-1] == MarkRow(key="stopped", tone="warn", text="Stopped")
    assert rows_of(Projection(), view(user(1, "go"), answer(2, "half", stop="aborted"), submissions=(one,)))[-1].key == "entry-2-end"


@pytest.mark.rule("TU-8")
def test_a_run_that_was_stopped_between_its_tools_and_the_next_answer_says_so_and_only_there() -> None:
    stopped = Unanswered(problem=Problem(reason="aborted"), entry_id=1)
    one = Submission(id=1, conversation_id=1, mode="followUp", content=(Text(text="go"),), digest="", at_ms=0, state=stopped)
    calls = answer(2, "", stop="toolUse")
    made = view(user(1, "go"), calls, result(3, "bash", "bash make", "done"), submissions=(one,))
    assert rows_of(Projection(), made)[-1] == MarkRow(key="stopped", tone="warn", text="Stopped")
    assert rows_of(Projection(), replace(made, live=with_live(made, run=Run(task_id=9, started_at_ms=START_MS))))[-1].key == "tool-10003"
    instructions = Entry(id=4, conversation_id=1, kind=SYSTEM, at_ms=START_MS, message=SystemMessage(content=(Text(text="be good"),)))
    told = replace(made, entries=(*made.entries, StoredEntry(seq=4, entry=instructions)))
    assert rows_of(Projection(), told)[-1] == MarkRow(key="stopped", tone="warn", text="Stopped"), "nobody reads instructions"
    later = replace(made, entries=(*made.entries, user(4, "again")))
    assert rows_of(Projection(), later)[-1].key == "entry-4"


@pytest.mark.rule("CASE-B9")
def test_that_earlier_thinking_was_refused_and_left_out_is_told_where_it_happened():
    entry = Entry(id=3, conversation_id=1, kind=THOUGHTS_REFUSED, at_ms=START_MS, data={"message": f"blocks cannot be modified {ATTACK}"})
    rows = rows_of(Projection(), view(entries=(user(1, "x"), StoredEntry(seq=2, entry=entry))))
    assert rows[1:] == [
        MarkRow(key="entry-3", tone="warn", text=f"The provider refused earlier thinking: asked again without it (blocks cannot be modified {HARMLESS})")
    ]


@pytest.mark.rule("TU-5", "TU-19")
def test_a_call_that_was_not_allowed_tells_no_time_that_it_took() -> None:
    refused = {"level": "error", "code": "blocked", "message": "The call was not run: the user did not allow it."}
    (row,) = rows_of(Projection(), view(result(1, "bash", "bash make", is_error=True, took_ms=90_000, diagnostics=[refused])))
    lines = [line.plain.rstrip() for line in Painter(width=80, palette=DARK).lines(row, unfolded=False)]
    assert lines == ["", "✗ bash  make", "    The call was not run: the user did not allow it."]


UNANSWERED = "No answer came to this"


def told(rows: Sequence[Row]) -> list[str]:
    return [row.text for row in rows if isinstance(row, UserRow | MarkRow)]


@pytest.mark.rule("TU-1")
def test_an_input_that_got_no_answer_says_so_once_another_one_came() -> None:
    """Why is told while it is the newest one; afterwards it must not look as if it had never been asked."""
    failed = view(user(1, "first"), live=Live(run_failure=Failure(reason="model_error", task_id=1, attempt=1, at_ms=START_MS, message="no")))
    projection = Projection()
    assert told(projection.apply(failed).rows)[1].startswith("no. What you wrote is stored")
    later = view(user(1, "first"), user(2, "second"), answer(3, "yes"), user(4, "third"), streaming=["so"])
    grown = projection.apply(later)
    assert told(grown.rows) == ["first", UNANSWERED, "second", "third"], "those that were answered do not"
    assert list(grown.rows) == rows_of(Projection(), later), "opened again it is the same"


@pytest.mark.rule("TU-1")
def test_inputs_that_began_one_run_share_its_answer_and_what_came_of_a_stopped_one_is_an_answer() -> None:
    together = (user(1, "first", seq=1), user(2, "second", seq=1), answer(3, "both"))
    assert told(rows_of(Projection(), view(*together))) == ["first", "second"]
    stopped = (user(1, "first"), answer(2, "half", stop="aborted"), user(3, "second"))
    assert told(rows_of(Projection(), view(*stopped))) == ["first", "Stopped", "second"]


@pytest.mark.rule("TU-1")
@pytest.mark.parametrize("cut", [2, 3, 4, 5, 6])
def test_the_mark_of_an_unanswered_input_is_the_same_wherever_a_page_ends(cut: int) -> None:
    entries = (user(1, "a"), user(2, "b"), answer(3, "yes"), user(4, "c"), user(5, "d"), user(6, "e"), answer(7, "yes"))
    whole = rows_of(Projection(), view(*entries))
    assert told(whole) == ["a", UNANSWERED, "b", "c", UNANSWERED, "d", UNANSWERED, "e"]
    projection = Projection()
    few = list(projection.apply(view(*entries[cut:], has_older=True)).rows)
    assert list(projection.prepend(entries[cut - 1 : cut]).rows) == rows_of(Projection(), view(*entries[cut - 1 :]))
    assert list(projection.prepend(entries[: cut - 1]).rows) == whole
    assert list(projection.drop_older().rows) == few
    assert list(projection.prepend(entries[:cut]).rows) == whole


# ---------------------------------------------------------------------------------------------- what the view does not hold


def spoken(first: int, last: int) -> tuple[StoredEntry, ...]:
    return tuple(user(number, f"word {number}", seq=1) for number in range(first, last + 1))


@pytest.mark.rule("TU-1")
def test_rows_of_entries_that_the_view_has_let_go_are_dropped_when_nobody_reads_there_and_come_back_by_page() -> None:
    projection = Projection()
    projection.apply(view(*spoken(1, 6)))
    grown = projection.apply(view(*spoken(4, 8)))
    assert [row.key for row in grown.rows] == [f"entry-{number}" for number in range(1, 9)], "the reader may be there"
    assert projection.older_rows == 3
    dropped = projection.drop_older()
    assert ([row.key for row in dropped.rows], dropped.prepended, projection.first_id) == ([f"entry-{number}" for number in range(4, 9)], -3, 4)
    assert (projection.older_rows, projection.drop_older().prepended) == (0, 0)
    again = projection.prepend(spoken(1, 3))
    assert ([row.key for row in again.rows], again.prepended) == ([f"entry-{number}" for number in range(1, 9)], 3)
    assert projection.apply(view(*spoken(4, 9))).changed_from == 8


@pytest.mark.rule("TU-1")
def test_a_view_that_holds_nothing_of_what_is_known_begins_anew() -> None:
    projection = Projection()
    projection.apply(view(*spoken(1, 3)))
    anew = projection.apply(view(*spoken(7, 9)))
    assert ([row.key for row in anew.rows], anew.changed_from, projection.first_id) == (["entry-7", "entry-8", "entry-9"], 0, 7)
