"""Selecting, copying, searching and jumping in the transcript."""

from __future__ import annotations

import pytest

from pi_durable_tui.records.entry import COMMAND, Entry, StoredEntry
from tests.support.tui_rig import Rig, running
from tests.support.tui_views import START_MS, answer, result, slot, user, view, with_live

URL = "https://example.org/" + "/".join(f"part{number}" for number in range(30))
STORY = (
    user(1, "first question"),
    answer(2, f"See {URL} END\n\n```python\nx = 1  # {'long ' * 30}\ny = 2\n```"),
    user(3, "second question"),
    answer(4, "words"),
)


def line_of(rig: Rig, text: str) -> int:
    return next(index for index, line in enumerate(rig.screen_lines()) if text in line)


async def drag(rig: Rig, start: tuple[int, int], end: tuple[int, int]) -> str:
    transcript = rig.chat.transcript
    await rig.pilot.mouse_down(transcript, offset=start)
    await rig.pilot.hover(transcript, offset=end)
    await rig.pilot.mouse_up(transcript, offset=end)
    await rig.settle()
    return rig.app.clipboard


@pytest.mark.rule("TU-4")
async def test_a_wrapped_address_is_copied_whole_by_dragging_over_it() -> None:
    async with running(view(*STORY), size=(80, 40)) as rig:
        first = line_of(rig, "https://")
        last = line_of(rig, "END")
        start = rig.screen_lines()[first].index("https")
        end = rig.screen_lines()[last].index(" END") - 1
        assert await drag(rig, (start, first), (end, last)) == URL
        assert f"copied {len(URL)} characters" in rig.text()


@pytest.mark.rule("TU-4")
async def test_code_is_copied_without_margin_bar_and_wrapping_also_upwards() -> None:
    async with running(view(*STORY), size=(80, 40)) as rig:
        first, last = line_of(rig, "x = 1"), line_of(rig, "y = 2")
        assert last > first + 1
        assert await drag(rig, (20, last), (0, first)) == f"x = 1  # {('long ' * 30).rstrip()}\ny = 2"


@pytest.mark.rule("TU-4")
async def test_a_double_click_copies_a_word_and_a_triple_click_a_line() -> None:
    async with running(view(*STORY), size=(80, 40)) as rig:
        y = line_of(rig, "first question")
        await rig.pilot.click(rig.chat.transcript, offset=(9, y), times=2)
        assert rig.app.clipboard == "question"
        await rig.pilot.click(rig.chat.transcript, offset=(3, line_of(rig, "END")), times=3)
        assert rig.app.clipboard == f"See {URL} END"


@pytest.mark.rule("TU-4", "TU-5")
async def test_a_click_selects_nothing_and_still_unfolds() -> None:
    async with running(view(result(3, "bash", "bash a", "out a"))) as rig:
        await rig.pilot.click(rig.chat.transcript, offset=(4, line_of(rig, "✓ bash")))
        await rig.settle()
        assert "out a" in rig.text()
        assert rig.app.clipboard == ""


@pytest.mark.rule("TU-4")
async def test_keys_select_and_copy_and_give_the_composer_back() -> None:
    async with running(view(*STORY), size=(80, 40)) as rig:
        await rig.press("alt+c", "right", "right", "space", "end", "enter")
        assert rig.app.clipboard == "words"
        await rig.press("x")
        assert rig.chat.prompt.text == "x"
        await rig.press("alt+c", "escape", "y")
        assert rig.chat.prompt.text == "xy"
        assert rig.asked == []


@pytest.mark.rule("TU-4")
async def test_a_selection_stays_on_its_text_while_the_transcript_grows() -> None:
    async with running(view(*STORY), size=(80, 40)) as rig:
        y = line_of(rig, "second question")
        await rig.pilot.mouse_down(rig.chat.transcript, offset=(2, y))
        await rig.pilot.hover(rig.chat.transcript, offset=(7, y))
        await rig.show(view(*STORY, *(answer(number, "more\n\nand more") for number in range(5, 30))))
        assert rig.chat.transcript.copy_selected() == "second"


@pytest.mark.rule("TU-4")
async def test_copy_takes_the_last_answer_as_it_was_written() -> None:
    text = "# Title\n\n- **bold** item\n"
    async with running(view(user(1, "q"), answer(2, text), user(3, "later"))) as rig:
        await rig.type("/copy")
        await rig.press("enter")
        assert rig.app.clipboard == text
        assert "Copied the last answer, 25 characters." in rig.text()
    async with running() as rig:
        await rig.type("/copy")
        await rig.press("enter")
        assert "There is no answer to copy yet." in rig.text()


@pytest.mark.rule("TU-4")
async def test_search_finds_newest_first_goes_both_ways_and_ends_with_escape() -> None:
    entries = [user(number, f"message {number} {'needle' if number % 10 == 0 else 'hay'}") for number in range(1, 101)]
    async with running(view(*entries)) as rig:
        await rig.press("ctrl+f", *"NEEDLE")
        assert "⌕ NEEDLE" in rig.text()
        assert "10 in what is loaded" in rig.text()
        assert line_of(rig, "message 100 needle")
        await rig.press("enter", "enter")
        assert line_of(rig, "message 80 needle")
        await rig.press("down")
        assert line_of(rig, "message 90 needle")
        await rig.press("escape")
        assert "⌕" not in rig.text()
        assert line_of(rig, "message 90 needle"), "the view stays"
        await rig.press("x")
        assert rig.chat.prompt.text == "x"
        assert rig.asked == []


@pytest.mark.rule("TU-4", "TU-6")
async def test_search_opens_what_is_folded_and_says_when_nothing_is_there() -> None:
    story = [result(3, "bash", "bash make", "deep inside [the] output"), *(user(number, "x") for number in range(4, 60))]
    async with running(view(*story)) as rig:
        await rig.press("ctrl+f", *"inside [the")
        assert "deep inside [the] output" in rig.text()
        await rig.press(*"zzz")
        assert "not found" in rig.text()


@pytest.mark.rule("TU-4", "TU-1")
async def test_search_goes_on_in_older_pages() -> None:
    entries = [user(number, f"message {number}") for number in range(1_000, 1_020)]
    async with running(view(*entries, has_older=True)) as rig:
        rig.conversation.older = tuple(user(number, "the needle" if number == 900 else f"old {number}") for number in range(800, 1_000))
        await rig.press("ctrl+f", *"needle")
        await rig.press("enter")
        assert line_of(rig, "the needle")


@pytest.mark.rule("TU-4")
async def test_jumping_goes_from_prompt_to_prompt() -> None:
    entries = [entry for number in range(1, 20, 2) for entry in (user(number, f"prompt {number}"), answer(number + 1, "line\n\n" * 12))]
    async with running(view(*entries)) as rig:
        await rig.press("ctrl+up")
        first = rig.screen_lines()[1]
        await rig.press("ctrl+up")
        assert "prompt 17" in rig.screen_lines()[1] or "prompt 15" in rig.screen_lines()[1]
        await rig.press("ctrl+down")
        assert rig.screen_lines()[1] == first
        await rig.press("ctrl+down", "ctrl+down")
        assert rig.chat.transcript.is_following


@pytest.mark.rule("TU-5", "SA-1")
async def test_the_colours_a_tool_printed_are_on_the_screen_and_no_byte_of_them() -> None:
    output = "plain \x1b[32mgreen\x1b[0m"
    async with running(view(tools=[slot(9, "bash", "bash make", output=output)])) as rig:
        y = line_of(rig, "plain green")
        strips = rig.app.screen._compositor.render_strips()
        colors = {segment.text.strip(): segment.style.color for segment in strips[y] if segment.style is not None}
        assert colors["green"] != colors["plain"]
        assert "\x1b" not in rig.text()


def command(entry_id: int, *, shown: bool, output: str = "a.txt\nb.txt") -> StoredEntry:
    data = {"taskId": 70, "name": "bash", "title": "ls", "output": output, "shown": shown, "diagnostics": [], "durationMs": 20, "startedAtMs": START_MS}
    return StoredEntry(seq=entry_id, entry=Entry(id=entry_id, conversation_id=1, kind=COMMAND, at_ms=START_MS, data=data))


@pytest.mark.rule("TU-10")
async def test_a_command_of_the_person_stands_open_and_tells_when_the_model_does_not_see_it() -> None:
    running_command = view(busy=False)
    live = with_live(running_command, commands=(slot(70, "bash", "ls", output="a.txt"),))
    async with running(view(live=live)) as rig:
        assert "◐ $  ls" in rig.text()
        assert "Running your command" in rig.text()
        await rig.press("escape")
        assert rig.asked == [("abort",)]
        await rig.show(view(command(5, shown=False)))
        assert "✓ $  ls" in rig.text()
        assert "│ b.txt" in rig.text()
        assert "the model does not see this" in rig.text()
        await rig.show(view(command(5, shown=False), command(6, shown=True)))
        assert rig.text().count("the model does not see this") == 1
