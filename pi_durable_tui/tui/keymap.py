"""Every key of the app, as one table: what is bound and what the help shows (terminal.md, "Keys"). Data only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One binding.

    Attributes:
        keys: Names of the keys, comma-separated, as the terminal library spells them.
        shown: The keys as people write them.
        action: The app's action, or the screen's behind "screen."; "" for what the composer does by itself.
        help: What it does.
    """

    keys: str
    shown: str
    action: str
    help: str


KEYS: tuple[Key, ...] = (
    Key(keys="enter", shown="Enter", action="", help="send; while the agent works: steer it"),
    Key(keys="shift+enter,ctrl+j", shown="Shift+Enter, Ctrl+J", action="", help="new line"),
    Key(keys="alt+enter,ctrl+q", shown="Alt+Enter, Ctrl+Q", action="queue", help="queue as a follow-up (Ctrl+Q where the terminal keeps Alt+Enter)"),
    Key(keys="alt+up", shown="Alt+Up", action="take_back", help="take the newest queued message back"),
    Key(keys="up,down", shown="Up, Down", action="", help="at the first or last line: what was sent before"),
    Key(keys="ctrl+r", shown="Ctrl+R", action="", help="search what was sent before, in all chats of the session"),
    Key(keys="tab", shown="Tab", action="", help="complete a path, a command or an @file"),
    Key(keys="ctrl+g", shown="Ctrl+G", action="", help="write the message in your editor"),
    Key(keys="ctrl+k,ctrl+u,ctrl+w,alt+d", shown="Ctrl+K, U, W, Alt+D", action="", help="kill to the end, the start, a word; Ctrl+Y and Alt+Y yank"),
    Key(keys="ctrl+underscore", shown="Ctrl+_", action="", help="undo"),
    Key(keys="escape", shown="Esc", action="stop", help="stop a subagent, then the run; twice when idle: the tree"),
    Key(keys="ctrl+c", shown="Ctrl+C", action="clear_or_quit", help="clear the line; twice: quit"),
    Key(keys="ctrl+d", shown="Ctrl+D", action="end_of_input", help="quit when nothing is typed"),
    Key(keys="ctrl+z", shown="Ctrl+Z", action="suspend_process", help="suspend; the shell's fg comes back"),
    Key(keys="ctrl+o", shown="Ctrl+O", action="screen.unfold", help="unfold all tools and thinking, or fold them"),
    Key(keys="ctrl+t", shown="Ctrl+T", action="tasks", help="show or hide what is at work"),
    Key(keys="alt+s", shown="Alt+S", action="subagents", help="look into a subagent; Esc comes back"),
    Key(keys="alt+t", shown="Alt+T", action="next('thinking')", help="next thinking level"),
    Key(keys="shift+tab", shown="Shift+Tab", action="next('approval')", help="next approval mode"),
    Key(keys="pageup", shown="PageUp", action="screen.page(-1)", help="scroll up"),
    Key(keys="pagedown", shown="PageDown", action="screen.page(1)", help="scroll down"),
    Key(keys="ctrl+up", shown="Ctrl+Up", action="screen.prompt(-1)", help="to your previous message"),
    Key(keys="ctrl+down", shown="Ctrl+Down", action="screen.prompt(1)", help="to your next message"),
    Key(keys="ctrl+f", shown="Ctrl+F", action="screen.search", help="search the transcript"),
    Key(keys="alt+c", shown="Alt+C", action="screen.select", help="select by keys: arrows, Space begins, Enter copies"),
    Key(keys="ctrl+home", shown="Ctrl+Home", action="screen.go_start", help="to the first line"),
    Key(keys="ctrl+end", shown="Ctrl+End", action="screen.go_end", help="to the last line, and follow"),
)
