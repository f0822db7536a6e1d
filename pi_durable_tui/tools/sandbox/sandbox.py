"""The sandbox that a person asked for: whether it holds here is tried before the first command, and a command without it does not run (SA-15)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.tools.sandbox.bubblewrap import Wall, Walled, walled
from pi_durable_tui.tools.sandbox.proof import prove

_BASH = "/bin/bash"
_WAYS_OUT = 'Install bubblewrap and let it make user namespaces, or set "sandbox" to "off" in the settings'


@dataclass(slots=True)
class Sandbox:
    """What all commands of a program are put into.

    Args:
        mode: How much is taken away.
        writable: Folders beside the work tree that may be written, absolute.
    """

    mode: Walled
    writable: tuple[str, ...] = ()
    _proofs: dict[Wall, tuple[str, ...]] = field(default_factory=dict[Wall, tuple[str, ...]])
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def wall(self, *, program: str | None, root: str, temporary: str, run: Callable[[Sequence[str]], Awaitable[str]]) -> Wall:
        """The wall around the commands of a work tree, once it has been seen to hold.

        Args:
            program: Where bubblewrap is; None: nowhere.
            root: The work tree, links resolved.
            temporary: The folder that stands for /tmp, which is there.
            run: (arguments) -> what the program of these arguments printed; "" when it could not be started.

        Raises:
            EnvironmentFailure: It does not hold, or there is none. Nothing was run but the probe.
        """
        if program is None:
            raise EnvironmentFailure(f"The settings ask for a sandbox, and bubblewrap (bwrap) is not installed. Nothing was run. {_WAYS_OUT}.")
        wall = Wall(program=program, mode=self.mode, root=root, temporary=temporary, writable=self.writable)

        async def inside(arguments: Sequence[str]) -> str:
            return await run(walled([_BASH, *arguments], root, wall))

        async with self._lock:
            if wall not in self._proofs:
                self._proofs[wall] = await prove(inside, self.mode, root=root, outside=_outside(root, temporary))
        if wrong := self._proofs[wall]:
            raise EnvironmentFailure(f"The sandbox that the settings ask for does not hold here: {'; '.join(wrong)}. Nothing was run. {_WAYS_OUT}.")
        return wall


def _outside(root: str, temporary: str) -> str:
    """A folder outside of the work tree that this program may write, and the probe must not; the root of all where there is none.

    None below /tmp, where commands have a folder of their own.
    """
    candidates = (temporary.rpartition("/")[0], root.rpartition("/")[0], "/var/tmp")  # noqa: S108 - nothing is left there
    hidden = (f"{root}/", "/tmp/")  # noqa: S108
    return next((folder for folder in candidates if folder and not f"{folder}/".startswith(hidden) and os.access(folder, os.W_OK)), "/")
