"""What to do with a call and the words of its results (harness/tool/decide.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import msgspec
import pytest

from pi_durable_tui.harness.approval import APPROVALS
from pi_durable_tui.harness.ports import Access, Diagnostic, Replay, Tool, ToolResult
from pi_durable_tui.harness.tool import decide
from pi_durable_tui.harness.tool.checkpoint import CallInput
from pi_durable_tui.harness.tool.decide import Admitted, Refusal, admit, rerun
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.keys import MARK
from pi_durable_tui.records.messages import Image, ToolResultMessage
from pi_durable_tui.records.modes import ApprovalMode
from tests.support.harness_builders import gave, text_of


class Arguments(msgspec.Struct, frozen=True):
    """What the tool of these tests takes."""

    command: str
    timeout_s: int = 5


async def nothing(_arguments: Any, _context: Any) -> ToolResult:
    return ToolResult()


BASH = Tool(name="bash", description="Runs a command.", arguments=Arguments, execute=nothing, title=lambda arguments: arguments.command)


def bash_but(**changes: Any) -> Tool:
    return replace(BASH, **changes)


TOOLS: Mapping[str, Tool] = {"bash": BASH, "append": BASH}


def asked(name: str = "bash", *, malformed: str | None = None, is_cut: bool = False, **arguments: Any) -> CallInput:
    return CallInput(assistant=1, call_id="c1", name=name, arguments=arguments, malformed=malformed, is_cut=is_cut)


def verdict(call: CallInput, arguments: JsonObject | None = None, tools: Mapping[str, Tool] = TOOLS) -> Admitted | Refusal:
    return admit(tools, call, call.arguments if arguments is None else arguments)


# ---------------------------------------------------------------------------------------------------------------- admission


@pytest.mark.rule("GE-8", "TO-1")
def test_a_call_that_fits_its_tool_is_admitted_with_typed_arguments():
    assert verdict(asked(command="ls")) == Admitted(BASH, Arguments(command="ls"))


@pytest.mark.rule("GE-8", "TO-1")
@pytest.mark.parametrize(("written", "meant"), [(2.0, 2), (None, 5)])
def test_a_whole_number_with_a_point_and_a_null_for_what_is_left_out_are_taken_for_what_they_mean(written: Any, meant: int):
    assert verdict(asked(command="ls", timeout_s=written)) == Admitted(BASH, Arguments(command="ls", timeout_s=meant))


@pytest.mark.rule("GE-8", "TO-1")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"command": "ls", "timeout_s": 2.5}, "Expected `int`, got `float` - at `$.timeout_s`"),
        ({"command": None}, "Expected `str`, got `null` - at `$.command`"),
        ({"command": 5, "timeout_s": None}, "Expected `str`, got `int` - at `$.command`"),
    ],
)
def test_what_means_nothing_to_a_tool_is_refused_as_it_was_written(arguments: JsonObject, problem: str):
    assert verdict(asked(**arguments)) == Refusal("invalid_arguments", f"The arguments of bash do not fit, so it was not run: {problem}.")


@pytest.mark.rule("TO-1")
def test_a_tool_that_looks_closer_says_what_does_not_fit():
    careful = bash_but(check=lambda arguments: None if arguments.command else "there is no command")
    assert verdict(asked(command="ls"), tools={"bash": careful}) == Admitted(careful, Arguments(command="ls"))
    refused = verdict(asked(command=""), tools={"bash": careful})
    assert refused == Refusal("invalid_arguments", "The arguments of bash do not fit, so it was not run: there is no command.")


@pytest.mark.rule("SA-17")
def test_a_call_that_would_act_with_the_mark_of_a_hidden_key_is_refused_and_one_that_only_looks_is_not():
    marked = asked(command=f"curl -H '{MARK}'")
    assert verdict(marked) == Refusal(
        "invalid_arguments",
        f"The arguments of bash hold {MARK}, which stands for a key that is not shown, so it was not run. Let a program read the key itself.",
    )
    reading = bash_but(access="read")
    assert verdict(marked, tools={"bash": reading}) == Admitted(reading, Arguments(command=f"curl -H '{MARK}'"))


@pytest.mark.rule("TO-1")
def test_the_arguments_a_hook_made_are_the_ones_that_are_looked_at():
    assert verdict(asked(command=5), {"command": "ls", "timeout_s": 1}) == Admitted(BASH, Arguments(command="ls", timeout_s=1))
    assert verdict(asked(command="ls"), {"command": 5}) == Refusal(
        "invalid_arguments", "The arguments of bash do not fit, so it was not run: Expected `str`, got `int` - at `$.command`."
    )


@pytest.mark.rule("GE-8", "CASE-B2")
@pytest.mark.parametrize("name", ["search_files", "", "Bash", "bash "])
def test_an_unknown_tool_is_refused_with_the_list_of_real_ones(name):
    refusal = Refusal("tool_unavailable", f"There is no tool {name!r}. The tools are: append, bash.")
    assert verdict(asked(name, command="ls")) == refusal
    assert verdict(asked(name, malformed="{")) == refusal


@pytest.mark.rule("GE-8")
def test_without_any_tool_the_refusal_says_that_there_is_none():
    assert verdict(asked(command="ls"), tools={}) == Refusal("tool_unavailable", "There is no tool 'bash'. The tools are: none.")


@pytest.mark.rule("GE-8", "CASE-B2")
@pytest.mark.parametrize("raw", ['{"command": "f', "[]", "null", ""])
def test_arguments_that_are_no_object_are_refused(raw):
    assert verdict(asked(malformed=raw)) == Refusal("invalid_arguments", "The arguments of bash are not a JSON object, so it was not run.")


@pytest.mark.rule("GE-8", "CASE-B2")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "Object missing required field `command`"),
        ({"cmd": "ls"}, "Object missing required field `command`"),
        ({"command": 5}, "Expected `str`, got `int` - at `$.command`"),
        ({"command": None}, "Expected `str`, got `null` - at `$.command`"),
        ({"command": "ls", "timeout_s": "5"}, "Expected `int`, got `str` - at `$.timeout_s`"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_what_does_not_fit(arguments, problem):
    assert verdict(asked(**arguments)) == Refusal("invalid_arguments", f"The arguments of bash do not fit, so it was not run: {problem}.")


@pytest.mark.rule("CASE-B1")
@pytest.mark.parametrize("call", [asked(is_cut=True, command="rm -rf build"), asked(is_cut=True, malformed='{"comm'), asked("nosuch", is_cut=True)])
def test_no_call_of_an_answer_that_was_cut_is_admitted_not_even_one_that_looks_whole(call):
    assert verdict(call) == Refusal(
        "invalid_arguments", "The answer was cut at the output limit in the middle of its tool calls, so none of them was run. Send smaller parts."
    )


def test_a_refusal_is_an_error_result_with_its_code():
    assert Refusal("blocked", "No.").result == ToolResult(is_error=True, diagnostics=(Diagnostic("error", "blocked", "No."),))


# ---------------------------------------------------------------------------------------------------------------- approvals


@pytest.mark.rule("TU-19")
@pytest.mark.parametrize(
    ("mode", "read", "edit", "command"),
    [
        ("ask", "allow", "ask", "ask"),
        ("edits", "allow", "allow", "ask"),
        ("all", "allow", "allow", "allow"),
        ("plan", "allow", "deny", "deny"),
    ],
)
def test_what_each_mode_says_to_each_kind_of_access(mode, read, edit, command):
    assert APPROVALS[mode] == {"read": read, "edit": edit, "command": command}


@pytest.mark.rule("TU-19")
def test_every_mode_speaks_of_every_kind_of_access():
    assert {mode: set(row) for mode, row in APPROVALS.items()} == {mode: set(get_args(Access)) for mode in get_args(ApprovalMode)}


@pytest.mark.rule("TU-19")
def test_a_no_says_who_said_it_and_why():
    assert decide.denied("the user", "") == Refusal("blocked", "The call was not run: the user did not allow it.")
    assert decide.denied("the user", "not today") == Refusal("blocked", "The call was not run: the user did not allow it (not today).")


# ------------------------------------------------------------------------------------------------------------ after a cut-off

POLICIES: tuple[Replay | None, ...] = (*get_args(Replay), None)
AGAIN = {("safe", "safe"): "run", ("reconcile", "reconcile"): "ask_world"}


@pytest.mark.rule("TO-2", "TO-8", "FA-31", "FA-32")
@pytest.mark.parametrize("current", POLICIES)
@pytest.mark.parametrize("stored", get_args(Replay))
def test_a_call_runs_again_only_if_it_was_safe_and_still_is_and_the_world_is_asked_only_if_both_say_so(stored, current):
    assert rerun(stored, current) == AGAIN.get((stored, current), "interrupted")


@pytest.mark.rule("TO-2", "TO-3", "FA-33", "FA-34")
def test_the_ends_of_a_call_have_different_words():
    assert decide.interrupted("append") == Diagnostic("error", "interrupted", "Tool append was interrupted and may have partially run")
    assert decide.restart_limit("append") == Diagnostic(
        "error", "restart_limit", "Tool append was interrupted too many times in a row and may have partially run"
    )
    assert decide.aborted("append", has_started=True) == Diagnostic("error", "aborted", "Tool append was stopped by the user and may have partially run")
    assert decide.aborted("append", has_started=False) == Diagnostic("error", "aborted", "Tool append was stopped by the user before it started")
    assert decide.faulted("append", "OSError: gone") == Diagnostic("error", "tool_error", "Tool append failed: OSError: gone")


@pytest.mark.rule("TO-2", "FA-35")
def test_the_result_of_a_call_that_was_cut_off_is_what_it_had_said_and_then_why_it_ended():
    found = decide.message(asked("append"), decide.cut_short("working\n", decide.interrupted("append")))
    block = "<harness>\n[error] Tool append was interrupted and may have partially run\n</harness>"
    assert found == gave("c1", "working\n", block, name="append", is_error=True)


def test_a_call_that_had_said_nothing_has_the_reason_only():
    remark = decide.interrupted("append")
    assert decide.cut_short("", remark) == ToolResult(is_error=True, diagnostics=(remark,))


# ------------------------------------------------------------------------------------------------------------------- remarks


@pytest.mark.rule("TO-5")
def test_remarks_stand_at_the_end_of_the_content_in_one_block():
    picture = Image(mime_type="image/png", data="eA==")
    remarks = (Diagnostic("info", "reconciled", "It had run."), Diagnostic("warn", "truncated", "Cut to 10 lines."))
    result = ToolResult(content=(*text_of("out"), picture), diagnostics=remarks)
    assert decide.message(asked(command="ls"), result) == ToolResultMessage(
        tool_call_id="c1",
        tool_name="bash",
        content=(*text_of("out"), picture, *text_of("<harness>\n[info] It had run.\n[warn] Cut to 10 lines.\n</harness>")),
    )


@pytest.mark.rule("TO-5")
def test_a_result_without_remarks_is_given_on_as_it_is():
    assert decide.message(asked(), ToolResult(content=text_of("out"), details={"exitCode": 0})) == gave("c1", "out", name="bash")
    assert decide.message(asked(), ToolResult(is_error=True)) == gave("c1", name="bash", is_error=True)


@pytest.mark.rule("TO-5")
def test_remarks_stand_in_the_data_of_the_entry_as_they_are():
    remarks = (Diagnostic("error", "interrupted", "a"), Diagnostic("warn", "truncated", "b"))
    assert decide.remarks(remarks) == [
        {"level": "error", "code": "interrupted", "message": "a"},
        {"level": "warn", "code": "truncated", "message": "b"},
    ]
    assert decide.remarks(()) == []
