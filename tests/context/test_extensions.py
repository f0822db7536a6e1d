"""Python extensions of the user and of a trusted project: AG-3, EX-1, SA-5, SA-8."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace

import pytest

from pi_durable_tui.cli.project.commands import commands_of
from pi_durable_tui.context.extensions import replaced
from pi_durable_tui.harness.extensions.registry import Command, Extension, Registry
from pi_durable_tui.harness.live import Agent
from tests.support.context_folders import Folders
from tests.support.harness_rig import Rig
from tests.support.scripted_model import call, say

TOOL = '''
from __future__ import annotations

import msgspec

from pi_durable_tui.harness.ports import Tool, ToolResult
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.records.messages import Text


class Arguments(msgspec.Struct):
    """What it is asked."""

    word: str


async def execute(arguments: Arguments, _context: object) -> ToolResult:
    return ToolResult(content=(Text(text=f"{arguments.word} VERSION"),))


def extension() -> Extension:
    tool = Tool(name="shout", description="Shouts.", arguments=Arguments, execute=execute, title=lambda arguments: arguments.word, access="read")
    return Extension(name="shouting", tools=(tool,), sections=lambda _agent: {"shouting": "Shout often."})
'''

IMPORT = "from pi_durable_tui.harness.extensions.registry import Extension\n"


def put(folders: Folders, text: str, name: str = "one") -> None:
    folders.put(folders.config / "extensions" / name / "extension.py", text)


@pytest.mark.rule("AG-3", "EX-1")
async def test_an_extension_brings_a_tool_and_a_section_and_is_swapped_while_running(folders: Folders):
    put(folders, TOOL.replace("VERSION", "1"))
    workspace = folders.workspace()
    rig = Rig(folders.top, extensions=[workspace.extension(), *workspace.load_extensions().extensions])
    shout = call(("shout", {"word": "hey"}))
    chat = await rig.start(shout, say("one"), shout, say("two"), say("three"))
    await chat.submit("a")
    await rig.run_out(chat)
    put(folders, TOOL.replace("VERSION", "2"))
    for extension in replaced(["shouting"], workspace.load_extensions().extensions):
        rig.harness.install(extension)
    await chat.submit("b")
    await rig.run_out(chat)
    results = [entry.message.content[0].text for entry in await rig.entries(chat.id) if entry.kind == "pi.tool-result"]
    assert results == ["hey 1", "hey 2"]
    assert "Shout often." in repr(rig.model.requests[0].messages[0])

    (folders.config / "extensions" / "one" / "extension.py").unlink()
    for extension in replaced(["shouting"], workspace.load_extensions().extensions):
        rig.harness.install(extension)
    await chat.submit("c")
    await rig.run_out(chat)
    assert rig.model.requests[-1].tools == ()
    assert 'The section "shouting" no longer applies.' in repr(rig.model.requests[-1].messages)


@pytest.mark.rule("AG-3")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1/0", "ZeroDivisionError: division by zero"),
        ("def", "SyntaxError: invalid syntax (extension.py, line 1)"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = 1", "it has no function extension()."),
        ("def extension(): return 3", "extension() gave a int, not an Extension."),
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        (
            "from pi_durable_tui.harness.extensions.registry import Extension\nextension = lambda: Extension(name='pidurable.context')",
            "the name 'pidurable.context' is taken.",
        ),
        ("from pi_durable_tui.harness.extensions.registry import Extension\nextension = lambda: Extension(name='pidurable')", "the name 'pidurable' is taken."),
    ],
)
def test_an_extension_that_fails_is_told_and_the_others_count(folders: Folders, text: str, reason: str):
    put(folders, text, "bad")
    put(folders, TOOL, "good")
    loaded = folders.workspace().load_extensions()
    assert [extension.name for extension in loaded.extensions] == ["shouting"]
    assert loaded.warnings == (f"The extension config/extensions/bad/extension.py is not used: {reason}",)


@pytest.mark.rule("AG-3")
def test_two_extensions_of_one_name_do_not_replace_each_other(folders: Folders):
    put(folders, TOOL, "a")
    put(folders, TOOL + "\n", "b")
    loaded = folders.workspace().load_extensions()
    assert (len(loaded.extensions), loaded.warnings) == (
        1,
        ("The extension config/extensions/b/extension.py is not used: another one has the name 'shouting'.",),
    )


@pytest.mark.rule("SA-5", "SA-8")
def test_what_runs_is_what_was_read_and_its_folder_is_not_imported_from(folders: Folders):
    path = list(sys.path)
    put(folders, "import neighbour_of_an_extension\n")
    folders.put(folders.config / "extensions" / "one" / "neighbour_of_an_extension.py", "")
    workspace = folders.workspace()
    assert "No module named 'neighbour_of_an_extension'" in workspace.load_extensions().warnings[0]
    assert sys.path == path


def test_extensions_that_are_gone_leave_nothing_behind():
    registry = Registry()
    registry.install(Extension(name="a", sections=lambda _agent: {"a": "text"}))
    for extension in replaced(["a"], [Extension(name="b")]):
        registry.install(extension)
    assert (registry.sections(Agent()), list(registry.extensions)) == ({}, ["a", "b"])


WAITING = """
import sys

import msgspec

from pi_durable_tui.library import Extension, Text, Tool, ToolResult


class Nothing(msgspec.Struct):
    pass


async def execute(_arguments, _context):
    await sys.modules["gate_of_a_test"].gate.wait()
    return ToolResult(content=(Text(text="VERSION"),))


def extension():
    tool = Tool(name="wait", description="Waits.", arguments=Nothing, execute=execute, title=lambda _arguments: "wait", access="read")
    return Extension(name="waiting", tools=(tool,))
"""


@pytest.mark.rule("AG-3", "EX-1", "SA-5")
async def test_a_call_that_runs_while_its_extension_is_swapped_ends_with_the_code_it_began_with(folders: Folders, monkeypatch: pytest.MonkeyPatch):
    gate = asyncio.Event()
    monkeypatch.setitem(sys.modules, "gate_of_a_test", SimpleNamespace(gate=gate))
    path = folders.put(folders.repo / ".pidurable/extensions/one/extension.py", WAITING.replace("VERSION", "old"))
    assert folders.workspace(trusting="none").load_extensions().extensions == ()
    workspace = folders.workspace()
    rig = Rig(folders.top, extensions=workspace.load_extensions().extensions)
    chat = await rig.start(call(("wait", {})), call(("wait", {})), say("done"))
    await chat.submit("go")
    await rig.settle()
    path.write_text(WAITING.replace("VERSION", "new"))
    for extension in replaced(["waiting"], workspace.load_extensions().extensions):
        rig.harness.install(extension)
    gate.set()
    await rig.run_out(chat)
    results = [entry.message.content[0].text for entry in await rig.entries(chat.id) if entry.kind == "pi.tool-result"]
    assert results == ["old", "new"]


def test_commands_keep_their_names_to_who_had_them_first():
    async def run(_argument: str, _context: object) -> None: ...

    def brings(name: str, *commands: str) -> Extension:
        return Extension(name=name, commands=tuple(Command(name=command, help="", run=run) for command in commands))

    found = commands_of([brings("a", "quit", "mine", "not a name"), brings("b", "mine", "other-one")], ["quit"])
    assert list(found.by_name) == ["mine", "other-one"]
    assert found.warnings == (
        "The command /quit of the extension a is not used: the program has one of that name.",
        "A command of the extension a is not used: 'not a name' is not made of letters, digits and dashes.",
        "The command /mine of the extension b is not used: the extension a has one of that name.",
    )
    assert found.typed(" /other-one some words ") == (found.by_name["other-one"], "some words")
    assert [found.typed(text) for text in ("/quit", "other-one", "/other-one\nmore", "/other-onex")] == [None] * 4
