"""A chat as one file: complete, private, without keys, and harmless whatever is in it (SA-1, SA-16, SA-17)."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import stat
from datetime import UTC
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pi_durable_tui.cli.chats import Found
from pi_durable_tui.cli.export.blocks import Answer, Block, Call, Prompt, Remark, Work, blocks_of
from pi_durable_tui.cli.export.command import file_name, written
from pi_durable_tui.cli.export.inline import answer_html
from pi_durable_tui.cli.export.markdown import markdown
from pi_durable_tui.cli.export.page import Heading, page, policy
from pi_durable_tui.cli.export.style import STYLE
from pi_durable_tui.cli.export.talk import Talk, read_talk
from pi_durable_tui.harness.chats import Chat
from pi_durable_tui.records.entry import COMPACTION, SYSTEM, USER, Entry
from pi_durable_tui.records.messages import AssistantMessage, Image, Problem, SystemMessage, Text, Thinking, ToolCall, ToolResultMessage, UserMessage
from pi_durable_tui.tools.subagent import subagent_tools
from tests.support.cli_runs import Desk
from tests.support.harness_rig import Rig
from tests.support.scripted_model import call as call_for
from tests.support.scripted_model import say
from tests.support.tui_views import view

PICTURE = base64.b64encode(b"\x89PNG not really").decode()
HEADING = Heading(title="T", directory="/d", facts=(("model", "m"),))


def entry(number: int, message: object, *, kind: str = USER, data: object = None) -> Entry:
    return Entry(id=number, conversation_id=1, kind=kind, at_ms=number * 60_000, message=message, data=data)


TALK = [
    entry(1, UserMessage(content=(Text(text="do it"), Image(mime_type="image/png", data=PICTURE)))),
    entry(2, SystemMessage(content=(Text(text="be good"),)), kind=SYSTEM),
    entry(3, AssistantMessage(content=(ToolCall(id="c1", name="edit", arguments={"path": "a", "n": 1}),), model="m", stop_reason="toolUse")),
    entry(
        4,
        ToolResultMessage(tool_call_id="c1", tool_name="edit", content=(Text(text="changed\n"),)),
        data={"title": "edit a", "durationMs": 1500, "details": {"diff": "@@ -1 +1 @@\n-old\n+new"}},
    ),
    entry(
        5,
        AssistantMessage(content=(Thinking(text="hm"), Text(text="half")), model="m", stop_reason="aborted", problem=Problem(reason="interrupted")),
    ),
    entry(6, UserMessage(content=(Text(text="so far"),)), kind=COMPACTION),
]
BLOCKS: list[Block] = [
    Prompt(entry_id=1, at_ms=60_000, text="do it", images=(("image/png", PICTURE),)),
    Remark(entry_id=2, at_ms=120_000, title="Instructions", text="be good"),
    Call(entry_id=4, at_ms=240_000, title="edit a", arguments="path: a\nn: 1", output="changed\n", diff="@@ -1 +1 @@\n-old\n+new", duration_ms=1500),
    Answer(entry_id=5, at_ms=300_000, model="m", text="half", thinking="hm", problem="interrupted: this answer was cut off here"),
    Remark(entry_id=6, at_ms=360_000, title="Summary of what came before", text="so far"),
]


def test_a_transcript_becomes_blocks_in_which_a_call_stands_with_its_result() -> None:
    assert blocks_of(Talk(entries=tuple(TALK)), str) == BLOCKS


def test_the_page_holds_everything_and_a_timeline_of_the_prompts() -> None:
    text = page(HEADING, BLOCKS, zone=UTC)
    assert '<li><a href="#e1"><time>00:01</time> do it</a> <span class="calls">1 call</span></li>' in text
    assert '<span class="removed">-old</span>\n<span class="added">+new</span>' in text
    assert '<span class="took">1.5 s</span>' in text
    assert f'<img alt="image/png" src="data:image/png;base64,{PICTURE}">' in text
    assert '<p class="problem">interrupted: this answer was cut off here</p>' in text
    assert '<details class="thinking"><summary>Thinking</summary><div class="words">hm</div></details>' in text
    assert [name for name in ("be good", "so far", "changed") if name not in text] == []


def test_long_results_are_folded_and_failures_are_open() -> None:
    def is_open(call: Call) -> bool:
        return '<details class="body" open>' in page(HEADING, [call], zone=UTC)

    long = "line\n" * 50
    made = Call(entry_id=1, at_ms=0, title="t", arguments="", output=long)
    assert not is_open(made)
    assert is_open(Call(entry_id=1, at_ms=0, title="t", arguments="", output=long, is_error=True))
    assert is_open(Call(entry_id=1, at_ms=0, title="t", arguments="", output="short"))


class Tags(HTMLParser):
    """Every tag and attribute of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[tuple[str, tuple[str, ...]]] = set()
        self.targets: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add((tag, tuple(sorted(name for name, _ in attrs))))
        self.targets += [value or "" for name, value in attrs if name in {"href", "src"}]


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</pre></details></article><iframe src=//evil.example></iframe>",
    "</style><style>body{background:url(//evil.example)}</style>",
    "<!-- --><svg onload=alert(1)>",
    "&lt;script&gt; &#60;b&#62; &amp;",
    "```\n</code></pre><script>alert(1)</script>\n```",
    "`</code><script>x</script>` **<b onclick=x>**",
    '| a | b |\n|---|---|\n| <script>x</script> | " onmouseover=x |',
    "# <img src=x>\n- <a href=javascript:alert(1)>x</a>\n[x](javascript:alert(1)) ![x](http://evil.example/p.png)",
    "\x1b]0;title\x07\x1b[2J\u202egnp.exe\u200b\x00",
    "' style='position:fixed' x='",
]


@pytest.mark.rule("SA-1")
@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_a_chat_becomes_markup_of_its_own_or_loads_anything(text: str) -> None:
    def talk(words: str) -> list[Entry]:
        return [
            entry(1, UserMessage(content=(Text(text=words), Image(mime_type=f"image/png{words}", data=words), Image(mime_type="image/png", data=words)))),
            entry(
                2,
                AssistantMessage(
                    content=(Thinking(text=words), Text(text=words), ToolCall(id="c", name=words, arguments={words: words})), model=words, stop_reason="toolUse"
                ),
            ),
            entry(
                3,
                ToolResultMessage(tool_call_id="c", tool_name=words, content=(Text(text=words),), is_error=True),
                data={"title": words, "details": {"diff": words}},
            ),
            entry(4, UserMessage(content=(Text(text=words),)), kind=words),
        ]

    def tags(words: str) -> Tags:
        return Tags(html_of(talk(words), title=words, directory=words))

    allowed = {(tag, ()) for tag in ("pre", "code", "strong", "br", "p", "div", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td", "span")}
    plain, made = tags("plain"), tags(text)
    assert made.found - plain.found - allowed - {("span", ("class",))} == set()
    assert [target for target in made.targets if not re.fullmatch(r"#e\d+", target)] == []
    page_text = html_of(talk(text), title=text, directory=text)
    assert [character for character in page_text if (ord(character) < 32 and character not in "\n\t") or character in "\u202e\u200b\x7f"] == []


def html_of(entries: list[Entry] | Talk, *, title: str = "T", directory: str = "/d", form: str = "html", secrets: tuple[str, ...] = ()) -> str:
    chat = Chat(conversation_id=1, title=title, first_text=title, last_at_ms=0, last_seq=1, unfinished=False, is_empty=False, model="m")
    return written(
        Found(session=1, chat=chat), view(), entries if isinstance(entries, Talk) else Talk(entries=tuple(entries)), form, directory=directory, secrets=secrets
    )  # type: ignore[arg-type]


@pytest.mark.rule("SA-1")
def test_the_policy_of_the_page_allows_its_own_style_and_nothing_else() -> None:
    text = page(HEADING, BLOCKS, zone=UTC)
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    assert policy(STYLE) == f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    assert text.count("<style>") == 1
    assert f"<style>{STYLE}</style>" in text
    assert "<script" not in text
    assert text.index("Content-Security-Policy") < text.index("<style>")


@pytest.mark.rule("SA-17")
@pytest.mark.parametrize("form", ["html", "markdown", "jsonl"])
def test_no_form_holds_a_loaded_key_or_what_looks_like_one(form: str) -> None:
    loaded, shaped = "my-very-own-key", "sk-ant-REDACTED"
    words = f"I used {loaded} and {shaped}."
    entries = [
        entry(1, UserMessage(content=(Text(text=words),))),
        entry(2, AssistantMessage(content=(ToolCall(id="c", name="bash", arguments={"command": f"echo {words}"}),), model="m", stop_reason="toolUse")),
        entry(3, ToolResultMessage(tool_call_id="c", tool_name="bash", content=(Text(text=words),)), data={"title": f"bash echo {words}"}),
    ]
    text = html_of(entries, title=words, form=form, secrets=(loaded,))
    assert (loaded in text, shaped in text, "[redacted]" in text) == (False, False, True)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a **b** `c` d", "<p>a <strong>b</strong> <code>c</code> d</p>"),
        ("# H\ntext", "<h3>H</h3><p>text</p>"),
        ("- a\n  - b", "<div>- a<br>\u00a0\u00a0- b</div>"),
        ("```python\nx < 1\n```\nafter", "<pre><code>x &lt; 1</code></pre><p>after</p>"),
        ("````\n```\n````", "<pre><code>```</code></pre>"),
        ("```\nopen", "<pre><code>open</code></pre>"),
        ("|a|b|\n|-|-|", "<p>|a|b|<br>|-|-|</p>"),
        ("| a | b |\n|---|:--|\n| 1 | 2 |", "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>"),
        ("one\ntwo\n\nthree", "<p>one<br>two</p><p>three</p>"),
        ("2 ** 3 ** 4 and ``", "<p>2 ** 3 ** 4 and ``</p>"),
    ],
)
def test_an_answer_is_readable(text: str, html: str) -> None:
    assert answer_html(text) == html


def test_fences_in_markdown_are_longer_than_any_inside() -> None:
    text = markdown(HEADING, [Call(entry_id=1, at_ms=0, title="cat `x`", arguments="", output="````\ncode\n````")])
    assert text.endswith("### ✓ `cat 'x'`\n\n`````text\n````\ncode\n````\n`````\n")


def test_the_file_is_named_after_the_chat_and_never_by_its_words_alone() -> None:
    chat = Chat(
        conversation_id=3, title="../../etc/passwd \x1b[0m Änderung", first_text="", last_at_ms=0, last_seq=1, unfinished=False, is_empty=False, model="m"
    )
    assert file_name(Found(session=1, chat=chat), "html") == "chat-1.3-etc-passwd-0m-nderung.html"


# ------------------------------------------------------------------------------------------------------------- subagents


def with_subagents(words: str) -> Talk:
    """A chat whose first subagent has answered, and used one itself; the second one is at work."""
    deep = Talk(name=f"deep {words}", entries=(entry(21, UserMessage(content=(Text(text=f"deeper {words}"),))),))
    first = Talk(
        name=f"reader {words}",
        entries=(
            entry(11, UserMessage(content=(Text(text=f"read {words}"),))),
            entry(12, ToolResultMessage(tool_call_id="c9", tool_name="subagent", content=(Text(text="dug"),)), data={"details": {"subagent": 200}}),
            entry(13, AssistantMessage(content=(Text(text=f"all read {words}"),), model="m", stop_reason="stop")),
        ),
        subagents={200: deep},
    )
    second = Talk(name=f"writer {words}", entries=(entry(31, UserMessage(content=(Text(text=f"write {words}"),))),))
    result = ToolResultMessage(tool_call_id="c1", tool_name="subagent", content=(Text(text=f"all read {words}"),))
    asked = entry(1, UserMessage(content=(Text(text="go"),)))
    return Talk(entries=(asked, entry(2, result, data={"details": {"subagent": 100}})), subagents={100: first, 300: second})


def test_a_subagents_work_stands_with_its_call_or_at_the_end_while_it_has_no_result() -> None:
    prompt, call, open_work = blocks_of(with_subagents("x"), str)
    assert isinstance(prompt, Prompt)
    assert isinstance(call, Call)
    assert call.work is not None
    deeper, answer = call.work.blocks[1:]
    assert isinstance(deeper, Call)
    assert deeper.work == Work(name="deep x", blocks=(Prompt(entry_id=21, at_ms=21 * 60_000, text="deeper x"),))
    assert isinstance(answer, Answer)
    assert open_work == Work(name="writer x", blocks=(Prompt(entry_id=31, at_ms=31 * 60_000, text="write x"),))


@pytest.mark.rule("SA-1", "SA-17")
@pytest.mark.parametrize("form", ["html", "markdown", "jsonl"])
def test_every_form_holds_what_subagents_did_folded_clean_and_without_keys(form: str) -> None:
    words = "<script>alert(1)</script> \x1b[31m my-very-own-key"
    text = html_of(with_subagents(words), form=form, secrets=("my-very-own-key",))
    assert [said for said in ("read ", "deeper", "all read", "write") if said not in text] == []
    assert ("my-very-own-key" in text, "\x1b" in text) == (False, False)
    assert text.count("Its task") == (0 if form == "jsonl" else 3)
    if form == "html":
        assert "<script" not in text
        assert text.count('<details class="subagent">') == 3
        assert text.count("<details") == text.count("</details>")
        assert len(set(re.findall(r'id="(e\d+)"', text))) == text.count(' id="e')
        assert text.count("<li>") == 1, "the timeline is that of the chat"
    if form == "jsonl":
        assert [json.loads(line)["id"] for line in text.splitlines()] == [1, 2, 11, 12, 13, 21, 31]


async def test_what_is_read_are_the_conversations_of_all_subagents_and_theirs(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=subagent_tools())
    chat = await rig.start(call_for(("subagent", {"name": "reader", "prompt": "read"})), say("all read"), say("thanks"))
    await chat.submit("go")
    await rig.run_out(chat)
    talk = await read_talk(rig.harness, chat.id)
    await rig.close()
    (below,) = talk.subagents.values()
    assert (below.name, [each.kind for each in below.entries]) == ("reader", ["pi.user", "pi.assistant"])
    (work,) = [block.work for block in blocks_of(talk, str) if isinstance(block, Call)]
    assert work is not None
    assert work.name == "reader"


# ------------------------------------------------------------------------------------------------------------ the command

ASK = ("-p", "--model", "playback/01-hello", "In three sentences: what happens if the power goes out now?")


@pytest.mark.slow
@pytest.mark.rule("SA-16", "CL-6")
def test_the_command_writes_a_private_file_and_never_over_one_that_was_not_named(desk: Desk) -> None:
    assert desk.run(*ASK).code == 0
    first = desk.run("export")
    (path,) = desk.work.iterdir()
    assert (first.code, first.stdout, path.suffix) == (0, "", ".html")
    assert (first.stderr, stat.S_IMODE(path.stat().st_mode)) == (f"pidurable: wrote {path}\n", 0o600)
    again = desk.run("export")
    assert (again.code, "is there already" in again.stderr) == (2, True)
    assert desk.run("export", "--jsonl", "-o", path.name).code == 0
    kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]
    assert (kinds[0], kinds[-1], stat.S_IMODE(path.stat().st_mode)) == ("pi.user", "pi.assistant", 0o600)
    told = desk.run("export", "--markdown", "-o", "-")
    assert (told.code, told.stderr) == (0, "")
    assert "## You\n\n> In three sentences: what happens if the power goes out now?\n" in told.stdout
    two = desk.run("export", "--markdown", "--html")
    assert (two.code, "One form at a time" in two.stderr) == (2, True)
    nowhere = desk.run("export", "-o", "missing/x.html")
    assert (nowhere.code, "cannot be written" in nowhere.stderr) == (4, True)


@pytest.mark.slow
@pytest.mark.rule("CL-6")
def test_an_export_into_a_pipe_a_device_or_through_a_link_leaves_them_what_they_are(desk: Desk) -> None:
    assert desk.run(*ASK).code == 0
    whole = desk.run("export", "--markdown", "-o", "-").stdout
    assert desk.run("export", "--markdown", "-o", "/dev/stdout").stdout == whole

    pipe = desk.work / "pipe"
    os.mkfifo(pipe)
    unread = desk.run("export", "--markdown", "-o", "pipe")
    assert (unread.code, "cannot be written: No such device or address" in unread.stderr) == (4, True)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert desk.run("export", "--markdown", "-o", "pipe").code == 0
    assert (os.read(reader, 1_000_000).decode(), pipe.is_fifo()) == (whole, True)
    os.close(reader)

    (desk.work / "link").symlink_to("target")
    assert desk.run("export", "--markdown", "-o", "link").code == 0
    assert ((desk.work / "link").readlink(), (desk.work / "target").read_text()) == (Path("target"), whole)
