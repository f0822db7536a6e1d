"""The tools that are installed from the start (rule AG-2)."""

from __future__ import annotations

from pi_durable_tui.harness.ports import Tool
from pi_durable_tui.tools.bash import bash_tool
from pi_durable_tui.tools.edit import edit_tool
from pi_durable_tui.tools.read import read_tool
from pi_durable_tui.tools.search.find import find_tool
from pi_durable_tui.tools.search.grep import grep_tool
from pi_durable_tui.tools.search.ls import ls_tool
from pi_durable_tui.tools.subagent import subagent_tools
from pi_durable_tui.tools.work.commands import commands_tool
from pi_durable_tui.tools.work.todo import todo_tool
from pi_durable_tui.tools.write import write_tool


def all_tools() -> tuple[Tool, ...]:
    """Every built-in tool, in the order in which models are told of them."""
    return (read_tool(), write_tool(), edit_tool(), bash_tool(), commands_tool(), grep_tool(), find_tool(), ls_tool(), todo_tool(), *subagent_tools())
