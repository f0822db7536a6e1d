"""The question about a project's files, /trust and /reload, files that come along: SA-3, SA-5, AG-3."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pi_durable_tui.records.messages import ATTACHED, Image, Text
from pi_durable_tui.tui.commands import Offer, completions, read
from pi_durable_tui.tui.draw.trust import LINES, TrustPart, TrustQuestion, question_text
from pi_durable_tui.tui.palette import DARK
from pi_durable_tui.tui.rows import content_text, typed
from pi_durable_tui.tui.screens.trust import TrustScreen
from tests.support.patience import UNHURRIED_S
from tests.support.tui_conversation import FakeWorkspace
from tests.support.tui_rig import Rig, running
from tests.support.tui_views import view

QUESTION = TrustQuestion(
    directory="~/code/shop",
    parts=(
        TrustPart(kind="instructions", name="AGENTS.md", standing="changed", lines=("@@ -1 +1,2 @@", " Use tabs.", "+Never push.")),
        TrustPart(kind="extension", name=".pidurable/extensions/x/extension.py", standing="new", lines=("def extension():", "    return 1")),
    ),
)


@asynccontextmanager
async def asking(question: TrustQuestion | None = QUESTION, **options: Any) -> AsyncIterator[Rig]:
    workspace = FakeWorkspace(question=question, offers=(Offer(name="fix-bug", argument="ID", help="Fixes it"),))
    async with running(view(), workspace=workspace, **options) as rig:
        yield rig


@pytest.mark.rule("SA-5")
@pytest.mark.parametrize(("key", "decided"), [("y", True), ("n", False), ("enter", False)])
async def test_the_project_is_asked_about_before_anything_goes_on(key: str, *, decided: bool):
    async with asking(first_prompt="do it") as rig:
        assert isinstance(rig.app.screen, TrustScreen)
        assert "Never push." in rig.text()
        assert "CODE that runs with your rights" in rig.text()
        assert rig.conversation.asked == []  # not resumed, and the first prompt waits
        await rig.press(key)
        assert rig.asked == [("decide", ["AGENTS.md", ".pidurable/extensions/x/extension.py"], decided), ("submit", "do it", "followUp")]


@pytest.mark.rule("SA-5")
async def test_esc_decides_nothing_and_the_chat_opens():
    async with asking() as rig:
        await rig.press("escape")
        assert not isinstance(rig.app.screen, TrustScreen)
        assert rig.asked == []


@pytest.mark.rule("SA-5")
async def test_typing_ahead_does_not_decide():
    async with asking(typing_gap_s=UNHURRIED_S) as rig:
        await rig.press("y", "e", "s", "y")
        assert isinstance(rig.app.screen, TrustScreen)
        assert rig.asked == []


@pytest.mark.rule("SA-5")
async def test_nothing_is_asked_where_all_is_decided_and_trust_says_that_there_is_nothing():
    async with asking(None) as rig:
        assert not isinstance(rig.app.screen, TrustScreen)
        await rig.type("/trust")
        await rig.press("enter")
        assert "This project has no files that would be loaded." in rig.text()


@pytest.mark.rule("SA-5", "AG-3")
async def test_trust_shows_the_files_again_and_reload_reads_them_anew():
    async with asking() as rig:
        await rig.press("n")
        await rig.type("/trust")
        await rig.press("enter")
        await rig.press("y")
        await rig.type("/reload")
        await rig.press("enter")
        names = ["AGENTS.md", ".pidurable/extensions/x/extension.py"]
        assert rig.asked == [("decide", names, False), ("decide", names, True), ("reload",)]
        assert "were read anew" in rig.text()


@pytest.mark.rule("SA-1", "SA-3")
@pytest.mark.parametrize("width", [20, 100])
def test_what_a_file_says_stays_behind_its_bar_and_is_shown_whole(width: int):
    lines = ("\x1b[31mred\x1b]52;c;QQ==\x07", "x" * 250, "    indented", "")
    part = TrustPart(kind="instructions", name="A\x1b[2J.md", standing="new", lines=lines)
    text = question_text(TrustQuestion(directory="d", parts=(part,)), DARK, width=width).plain
    assert "\x1b" not in text
    content = text[text.rindex("A") :].splitlines()[1:]
    assert [line for line in content if not f"{line} ".startswith("│ ")] == []
    assert "".join(line[2:] for line in content).count("x") == 250
    assert "│     indented" in content


def test_very_long_files_are_cut_and_say_so():
    part = TrustPart(kind="prompt", name="p.md", standing="new", lines=("a",) * (LINES + 3))
    assert question_text(TrustQuestion(directory="d", parts=(part,)), DARK, width=80).plain.endswith("│ … 3 more lines are in the file")


@pytest.mark.rule("AG-3")
async def test_skills_and_templates_are_in_the_menu_and_are_sent_as_messages():
    async with asking(None) as rig:
        await rig.type("/fix")
        assert "/fix-bug ID" in rig.text()
        await rig.type("-bug 7")
        await rig.press("enter")
        assert rig.asked == [("submit", (Text(text="/fix-bug 7"),), "followUp")]


@pytest.mark.rule("AG-3")
def test_a_command_of_the_table_wins_over_a_template_of_its_name():
    extra = (Offer(name="model", argument="", help="theirs"), Offer(name="mo", argument="", help="theirs"))
    assert [(offer.name, offer.help == "theirs") for offer in completions("/mo", extra)] == [("model", False), ("mo", True)]
    found = read("/model x", extra)
    assert found is not None
    assert found.command is not None
    assert read("/mo x", extra) is None


async def test_a_file_comes_along_and_only_the_text_comes_back():
    async with asking(None) as rig:
        await rig.type("look at @a.py")
        await rig.press("enter")
        attached = Text(text=f"{ATTACHED}a.py:\n```\nx\n```")
        assert rig.asked == [("submit", (Text(text="look at @a.py"), attached), "followUp")]


def test_a_message_shows_the_names_of_its_files_and_gives_back_what_was_typed():
    image = Image(mime_type="image/png", data="AAAA")
    sent = (Text(text="see @a.py @b.png"), Text(text=f"{ATTACHED}a.py:\n```\nx\n```"), image, Text(text=f"{ATTACHED}b.png (image/png)."))
    assert content_text(sent) == "see @a.py @b.png\nAttached a.py\nAttached b.png (image/png)."
    assert content_text(typed(sent)) == "see @a.py @b.png"
    assert typed((Text(text=f"{ATTACHED}first part"), image)) == (Text(text=f"{ATTACHED}first part"), image)
