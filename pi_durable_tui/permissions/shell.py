"""PURE. A shell command as the simple commands it is made of, and everything in it that no standing permission can cover (rule SA-13).

Two parsers must agree on the words: the grammar of bash, and Python's own splitter. What either does not understand is a doubt, and a
doubt means asking. Nothing here decides; see `commands`.
"""

from __future__ import annotations

import ast
import re
import shlex
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

COMMAND_CHARS = 20_000  # a longer command is not looked at
_STRANGE = re.compile(
    r"[^\n\t\x20-\x7e\u00a0-\ud7ff\ue000-\ufdcf\ufe00-\ufffd\U00010000-\U0010ffff]|[\u00a0\u1680\u2000-\u200f\u2028-\u202f\u205f\u2060\u3000\ufeff]"
)
_PLAIN = re.compile(r"[^\\*?\[\]{}~$`!]*")
_EXPANDED = re.compile(r"[~*?\[]|-.*[*?\[]", re.DOTALL)  # may become other words, options among them
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PUNCTUATION = re.compile(r"[();<>|&]+")
_LISTS = frozenset({"program", "list"})
_BETWEEN = frozenset({"&&", "||", ";", "\n"})


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command. `text` None: it is not known before the command runs. `is_plain`: written exactly as it reads."""

    text: str | None
    is_plain: bool


@dataclass(frozen=True, slots=True)
class Simple:
    """One simple command; `words[0]` names the program."""

    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Parsed:
    """A command text.

    Attributes:
        commands: Every simple command in it, at any depth, in order.
        doubts: What no permission for single commands can cover, in words for people; empty: it is a plain list of simple commands.
    """

    commands: tuple[Simple, ...]
    doubts: tuple[str, ...]


def parse(text: str) -> Parsed:
    """Take a command apart."""
    if len(text) > COMMAND_CHARS:
        return Parsed((), ("it is very long",))
    if _STRANGE.search(text):
        return Parsed((), ("it holds characters that cannot be seen",))
    data = text.encode()
    root = _parser().parse(data).root_node
    walk = _Walk()
    walk.visit(root, at_top=True)
    if root.has_error:
        walk.doubt("it cannot be parsed")
    elif not walk.doubts and _split(data, walk.blanks) != [word.text for command in walk.commands for word in command.words]:
        walk.doubt("it can be read in two ways")
    return Parsed(tuple(walk.commands), tuple(walk.doubts))


class _Walk:
    """Goes through a syntax tree; knows few forms, and doubts the others."""

    def __init__(self) -> None:
        self.commands: list[Simple] = []
        self.doubts: list[str] = []
        self.blanks: list[tuple[int, int]] = []  # bytes that are no words: redirections

    def doubt(self, why: str) -> None:
        if why not in self.doubts:
            self.doubts.append(why)

    def visit(self, node: Node, *, at_top: bool) -> None:
        """Take what is below a node; `at_top` is False inside of forms that are doubted already."""
        match node.type:
            case "command":
                self._command(node)
            case kind if kind in _LISTS and at_top:
                for child in node.children:
                    self.visit(child, at_top=True)
            case kind if kind in _BETWEEN and at_top:
                return
            case "redirected_statement" if at_top:
                for child in node.children:
                    if child.type.endswith("_redirect"):
                        self._redirect(child)
                    else:
                        self.visit(child, at_top=True)
            case kind:
                if at_top:
                    self.doubt(_NAMES.get(kind, "it is more than simple commands"))
                for child in node.children:
                    self.visit(child, at_top=False)

    def _command(self, node: Node) -> None:
        words: list[Word] = []
        for child in node.children:
            match child.type:
                case "command_name":
                    words.append(self._word(child.children[0]))
                case "variable_assignment":
                    self.doubt("it sets variables for a command")
                    self.visit(child, at_top=False)
                case kind if kind.endswith("_redirect"):
                    self._redirect(child)
                case _:
                    words.append(self._word(child))
        if words:
            self.commands.append(Simple(tuple(words)))

    def _redirect(self, node: Node) -> None:
        """Only to another descriptor of its own, or to nowhere, is without doubt."""
        text = _text(node)
        if not re.fullmatch(r"\d?>&\d|(\d|&)?>{1,2} ?/dev/null", text):
            self.doubt("it redirects to or from a file")
            self.visit(node, at_top=False)
        self.blanks.append((node.start_byte, node.end_byte))

    def _word(self, node: Node) -> Word:
        text = _text(node)
        match node.type:
            case "word" | "number" if not node.named_children:
                if _EXPANDED.match(text) or "{" in text:
                    return Word(None, is_plain=False)
                return Word(_ESCAPED.sub(r"\1", text.replace("\\\n", "")), is_plain=_PLAIN.fullmatch(text) is not None)
            case "raw_string":
                return Word(text[1:-1], is_plain=False)
            case "string" if all(child.type in {'"', "string_content"} for child in node.children) and "\\" not in text:
                return Word(text[1:-1], is_plain=False)
            case "ansi_c_string":
                self.doubt("it holds a text with escapes")
                return Word(_ansi(text), is_plain=False)
            case "concatenation":
                parts = [self._word(child) for child in node.children]
                texts = [part.text for part in parts]
                return Word("".join(part or "" for part in texts) if None not in texts else None, is_plain=False)
            case _:
                self.doubt("it holds words that are known only when it runs")
                self.visit(node, at_top=False)
                return Word(None, is_plain=False)


_NAMES = {
    "pipeline": "it is a pipe",
    "&": "it runs in the background",
    "subshell": "it is a group of commands",
    "compound_statement": "it is a group of commands",
    "comment": "it holds a comment",
    "function_definition": "it defines a function",
}


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def _ansi(text: str) -> str | None:
    """What $'…' stands for, as far as Python reads it the same way; used to find what is forbidden, never to allow."""
    try:
        read: object = ast.literal_eval(f"'{text[2:-1]}'")
    except (ValueError, SyntaxError):
        return None
    return read if isinstance(read, str) else None


def _split(data: bytes, blanks: list[tuple[int, int]]) -> list[str] | None:
    """The words as Python splits them; None when it cannot."""
    kept = bytearray(data)
    for start, end in blanks:
        kept[start:end] = b" " * (end - start)
    lexer = shlex.shlex(kept.decode(), posix=True, punctuation_chars=True)
    lexer.commenters = ""
    lexer.whitespace_split = True
    try:
        return [token for token in lexer if not _PUNCTUATION.fullmatch(token)]
    except ValueError:
        return None


@cache
def _parser() -> Parser:
    """Made at its first use: most sessions start without a command."""
    import tree_sitter  # noqa: PLC0415 - see above
    import tree_sitter_bash  # noqa: PLC0415

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
