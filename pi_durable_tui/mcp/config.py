"""How an MCP server is written down in settings, and what of it may come from where (rules AG-4, SA-6, SA-17). PURE.

A program, or an address. Keys are named, never written: `$NAME` stands for a variable of the user's environment, and only the user's own
settings may name one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated

import msgspec

NAME = re.compile(r"[A-Za-z](_?[A-Za-z0-9-]){0,31}")
"""Of a server: it begins the names of its tools, so two underscores in a row, which end it there, are not in it."""

ALLOWED = (
    'an object: name -> {"command", "args", "env", "cwd"} or {"url", "headers"}, both with "trust_read_only", "start_timeout_ms", "call_timeout_ms"; '
    'a value of "env" may be "$NAME", one of "headers" is "$NAME" or "Bearer $NAME", and NAME is a variable of your environment'
)

_REFERENCE = re.compile(r"((?:[A-Za-z]+ )?)\$([A-Za-z_][A-Za-z0-9_]*)")
"""A value that names a variable: "$NAME", or "Bearer $NAME"."""

_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
_HEADER_NAME = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"

_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=4_000)]
_Timeout = Annotated[int, msgspec.Meta(ge=1, le=86_400_000)]


class McpServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One server.

    Attributes:
        command: The program; a name of the search path, or a path.
        cwd: Where it starts; relative to the working directory.
        url: Where it listens, for one that runs by itself.
        trust_read_only: Its word counts that a tool only reads: that one runs without asking. Otherwise each of its tools is asked about.
        start_timeout_ms: How long it may take until it is ready; the first start of some fetches them.
        call_timeout_ms: How long a call may take.
    """

    command: _Text | None = None
    args: tuple[Annotated[str, msgspec.Meta(max_length=4_000)], ...] = ()
    env: dict[Annotated[str, msgspec.Meta(pattern=_VARIABLE)], Annotated[str, msgspec.Meta(max_length=4_000)]] = {}
    cwd: _Text | None = None
    url: Annotated[str, msgspec.Meta(pattern=r"^https?://[^\s/@]+(/\S*)?$")] | None = None
    headers: dict[Annotated[str, msgspec.Meta(pattern=_HEADER_NAME)], str] = {}
    trust_read_only: bool = False
    start_timeout_ms: _Timeout = 60_000
    call_timeout_ms: _Timeout = 600_000

    def __post_init__(self) -> None:
        """Refuse what would be half of one kind and half of the other, and a key that is written down."""
        if (self.command is None) == (self.url is None):
            raise ValueError('it needs either "command" or "url"')
        if self.command is None and (self.args or self.env or self.cwd):
            raise ValueError('"args", "env" and "cwd" belong to a "command"')
        if self.url is None and self.headers:
            raise ValueError('"headers" belong to a "url"')
        for name, value in self.headers.items():
            if not _REFERENCE.fullmatch(value):
                raise ValueError(f'the header "{name}" must name a variable of the environment, such as "Bearer $TOKEN"')

    @property
    def shown(self) -> str:
        """What is started or asked, for people; the values of variables are not in it."""
        if self.url is not None:
            return self.url
        return " ".join(part if part and not part.isspace() and " " not in part else repr(part) for part in (self.command or "", *self.args))

    @property
    def references(self) -> frozenset[str]:
        """The variables of the user's environment that it names."""
        return frozenset(found[2] for value in (*self.env.values(), *self.headers.values()) if (found := _REFERENCE.fullmatch(value)))


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    """A server that may be used: its name, what is written down, and the directory it is about."""

    name: str
    server: McpServer
    directory: str

    @property
    def digest(self) -> str:
        """Changes whenever another server could be meant."""
        written = msgspec.structs.replace(self.server, trust_read_only=False, start_timeout_ms=1, call_timeout_ms=1)
        return hashlib.sha256(msgspec.json.encode((self.name, self.directory, written), order="sorted")).hexdigest()


def filled(values: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Variables or headers with what they stand for; not to be stored or shown.

    Raises:
        KeyError: A variable that is named is not set; its name.
    """

    def fill(value: str) -> str:
        found = _REFERENCE.fullmatch(value)
        return value if found is None else found[1] + environ[found[2]]

    return {name: fill(value) for name, value in values.items()}


def of_project(values: object) -> McpServer:
    """What a trusted project may say: a program with plain values, or an address. It names no variable of the user and grants nothing (rule SA-6).

    Raises:
        msgspec.ValidationError: It says something else; why.
    """
    server = msgspec.convert(values, McpServer)
    if server.references or server.headers or server.trust_read_only:
        raise msgspec.ValidationError("a project can name no variables of yours, no headers and no trust; write the server into your own settings")
    return server
