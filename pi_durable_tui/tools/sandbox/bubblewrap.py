"""PURE. What bubblewrap is told so that a command sees the machine read-only, writes its work tree alone, and reaches nothing else (rule SA-15).

Inside: the whole file system for reading; the work tree, a private `/tmp` and what the person names for writing; no devices but the
harmless ones; no capabilities; processes of its own, which end with it; with `full`, no network but a loopback of its own. `/run` is
empty, because sockets there (of Docker, of a session bus) lead out of any file system that is read-only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Walled: TypeAlias = Literal["files", "full"]
"""`files`: files and processes are protected; `full`: the network is taken away, too."""
RESOLVER = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf")
"""What name look-ups read below /run, for commands that may use the network."""
PROTECTED = (".git/hooks", ".git/config", ".pidurable")
"""What stays read-only inside the work tree: programs outside of the wall run what these say (rule SA-12)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wall:
    """How a command is walled in.

    Attributes:
        program: Where bubblewrap is, absolute.
        root: The work tree, absolute, links resolved; writable.
        temporary: The folder that stands for /tmp, absolute; writable, kept from command to command.
        writable: Further folders for writing, absolute; those that do not exist are left out.
    """

    program: str
    mode: Walled
    root: str
    temporary: str
    writable: tuple[str, ...] = ()


def walled(arguments: Sequence[str], directory: str, wall: Wall) -> list[str]:
    """What to execute instead of `arguments` in `directory`. Open descriptors reach the command."""
    network = ["--unshare-net"] if wall.mode == "full" else [word for path in RESOLVER for word in ("--ro-bind-try", path, path)]
    places = [
        *("--ro-bind", "/", "/"),
        *("--dev", "/dev"),
        *("--proc", "/proc"),
        *("--tmpfs", "/run"),
        *("--bind", wall.temporary, "/tmp"),  # noqa: S108 - a private folder stands there
        *(word for path in (*wall.writable, wall.root) for word in ("--bind-try", path, path)),
        *(word for name in PROTECTED for word in ("--ro-bind-try", f"{wall.root}/{name}", f"{wall.root}/{name}")),
    ]
    apart = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL", "--die-with-parent", "--new-session"]
    return [wall.program, *apart, *places, *network, "--setenv", "TMPDIR", "/tmp", "--chdir", directory, "--", *arguments]  # noqa: S108 - the private folder
