"""Every key of the app, as one table: what is bound and what the help shows (terminal.md, "Keys"). Data only.

A person's `keybindings.json` names the actions of this table and gives them other keys, see `keys/bindings.py`. Keys of a list, a
card or a page (Enter, Esc, y, n, the arrows) belong to it, are written on it, and stay as they are.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Key(Struct, frozen=True, kw_only=True):
    """One action and its keys.

    Attributes:
        name: What `keybindings.json` calls it.
        keys: The keys it has unless a person says otherwise, comma-separated, as the terminal library spells them.
        action: The app's action, or the screen's behind "screen."; of the composer: its own.
        help: What it does.
        where: Whose action it is. Keys of the app come before those of the composer.
    """

    name: str
    keys: str
    action: str
    help: str
    where: Literal["app", "composer"] = "app"


APP_KEYS: tuple[Key, ...] = (
    Key(name="queue", keys="alt+enter,ctrl+q", action="queue", help="queue as a follow-up; the second key is for terminals that keep the first"),
    Key(name="take_back", keys="alt+up", action="take_back", help="take the newest queued message back"),
    Key(name="stop", keys="escape", action="stop", help="stop a subagent, then the run; twice when idle: the tree"),
    Key(name="clear_or_quit", keys="ctrl+c", action="clear_or_quit", help="clear the line; twice: quit"),
    Key(name="end_of_input", keys="ctrl+d", action="end_of_input", help="quit when nothing is typed"),
    Key(name="suspend", keys="ctrl+z", action="suspend_process", help="suspend; the shell's fg comes back"),
    Key(name="unfold", keys="ctrl+o", action="screen.unfold", help="unfold all tools and thinking, or fold them"),
    Key(name="tasks", keys="ctrl+t", action="tasks", help="show or hide what is at work"),
    Key(name="subagents", keys="alt+s", action="subagents", help="look into a subagent"),
    Key(name="pick_model", keys="alt+p", action="pick_model", help="choose the model"),
    Key(name="next_thinking", keys="alt+t", action="next('thinking')", help="next thinking level"),
    Key(name="next_approval", keys="shift+tab", action="next('approval')", help="next approval mode"),
    Key(name="page_up", keys="pageup", action="screen.page(-1)", help="scroll up"),
    Key(name="page_down", keys="pagedown", action="screen.page(1)", help="scroll down"),
    Key(name="previous_message", keys="ctrl+up", action="screen.prompt(-1)", help="to your previous message"),
    Key(name="next_message", keys="ctrl+down", action="screen.prompt(1)", help="to your next message"),
    Key(name="search", keys="ctrl+f", action="screen.search", help="search the transcript"),
    Key(name="select", keys="alt+c", action="screen.select", help="select by keys: arrows, Space begins, Enter copies"),
    Key(name="go_to_start", keys="ctrl+home", action="screen.go_start", help="to the first line"),
    Key(name="go_to_end", keys="ctrl+end", action="screen.go_end", help="to the last line, and follow"),
)


def _composer(name: str, keys: str, action: str, help_: str) -> Key:
    return Key(name=name, keys=keys, action=action, help=help_, where="composer")


COMPOSER_KEYS: tuple[Key, ...] = (
    _composer("send", "enter", "send_typed", "send; while the agent works: steer it"),
    _composer("new_line", "shift+enter,ctrl+j", "new_line", "new line"),
    _composer("search_history", "ctrl+r", "search_history", "search what was sent before, in all chats of the session"),
    _composer("complete", "tab", "complete", "complete a path, a command or an @file"),
    _composer("editor", "ctrl+g", "edit_elsewhere", "write the message in your editor"),
    _composer("cursor_up", "up,ctrl+p", "cursor_up", "a line up; on the first one: what was sent before"),
    _composer("cursor_down", "down,ctrl+n", "cursor_down", "a line down; on the last one: what was sent after that"),
    _composer("cursor_left", "left,ctrl+b", "cursor_left", "a character to the left"),
    _composer("cursor_right", "right", "cursor_right", "a character to the right"),
    _composer("word_left", "ctrl+left,alt+b", "cursor_word_left", "a word to the left"),
    _composer("word_right", "ctrl+right,alt+f", "cursor_word_right", "a word to the right"),
    _composer("line_start", "home,ctrl+a", "cursor_line_start", "to the start of the line"),
    _composer("line_end", "end,ctrl+e", "cursor_line_end", "to the end of the line"),
    _composer("select_up", "shift+up", "cursor_up(True)", "select a line up"),
    _composer("select_down", "shift+down", "cursor_down(True)", "select a line down"),
    _composer("select_left", "shift+left", "cursor_left(True)", "select a character to the left"),
    _composer("select_right", "shift+right", "cursor_right(True)", "select a character to the right"),
    _composer("select_word_left", "ctrl+shift+left", "cursor_word_left(True)", "select a word to the left"),
    _composer("select_word_right", "ctrl+shift+right", "cursor_word_right(True)", "select a word to the right"),
    _composer("select_line_start", "shift+home", "cursor_line_start(True)", "select to the start of the line"),
    _composer("select_line_end", "shift+end", "cursor_line_end(True)", "select to the end of the line"),
    _composer("select_line", "f6", "select_line", "select the line"),
    _composer("select_all", "f7", "select_all", "select all that is typed"),
    _composer("delete_left", "backspace,ctrl+h", "delete_left", "delete to the left"),
    _composer("delete_right", "delete", "delete_right", "delete to the right"),
    _composer("kill_line_right", "ctrl+k", "kill_line_right", "kill to the end of the line"),
    _composer("kill_line_left", "ctrl+u", "kill_line_left", "kill to the start of the line"),
    _composer("kill_word_left", "ctrl+w,alt+backspace,ctrl+backspace", "kill_word_left", "kill a word to the left"),
    _composer("kill_word_right", "alt+d,alt+delete", "kill_word_right", "kill a word to the right"),
    _composer("delete_line", "ctrl+shift+k", "delete_line", "delete the line"),
    _composer("yank", "ctrl+y", "yank", "bring back what was killed last"),
    _composer("yank_older", "alt+y", "rotate_yank", "right after that: the kill before it"),
    _composer("undo", "ctrl+underscore", "undo", "undo"),
    _composer("redo", "ctrl+shift+z,alt+underscore", "redo", "redo"),
    _composer("cut", "ctrl+x,super+x", "cut", "cut what is selected"),
    _composer("copy", "super+c", "copy", "copy what is selected"),
    _composer("paste", "ctrl+v", "paste", "insert what was cut or copied here"),
    _composer("repaint", "ctrl+l", "repaint", "draw the screen anew"),
)

KEYS: tuple[Key, ...] = (*APP_KEYS, *COMPOSER_KEYS)
