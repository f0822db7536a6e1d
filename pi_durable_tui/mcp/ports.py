"""What the command line hands to the servers: how a program is started, where what is remembered lies, and how a long text is cut.

The protocol's library is known to `link` and `answer` only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from pi_durable_tui.harness.ports import Diagnostic, ToolContext
from pi_durable_tui.mcp.config import McpServer


class Process(Protocol):
    """A program that runs; `tools/serving/program.py` is the real one."""

    async def read(self) -> bytes:
        """Some of its output; b"" once it has ended."""
        ...

    async def write(self, data: bytes) -> None:
        """Give it input.

        Raises:
            OSError: It has ended.
        """
        ...

    async def stop(self) -> None:
        """End it, and all that it has started."""
        ...


Spawn: TypeAlias = Callable[[McpServer, dict[str, str], Callable[[bytes], None]], Awaitable[Process]]
"""(server, its variables, what takes its error output) -> the program. Raises EnvironmentFailure when it cannot be started."""


class Shelf(Protocol):
    """Where what servers offered is remembered, by the digest of their configuration. Never raises: what is lost is asked for again."""

    def load(self, digest: str) -> bytes | None: ...

    def store(self, digest: str, data: bytes) -> None: ...


Bounded: TypeAlias = Callable[[str, ToolContext], Awaitable[tuple[str, tuple[Diagnostic, ...]]]]
"""(text, call) -> so much of it as a model may be given, and remarks on where the rest is."""
