"""The one place that decides what is started for a shell command: its arguments, environment, directory and limits (rule SA-11).

Nothing is started.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.records.json import clean_text
from pi_durable_tui.tools import process, variables
from pi_durable_tui.tools.sandbox.bubblewrap import Wall, walled

_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash", "/bin/sh")


def shell_command(
    text: str, *, directory: str, agent: Mapping[str, str], timeout_ms: float, limits: process.CommandLimits, wall: Wall | None = None
) -> process.Command:
    """What to start so that a shell runs `text`.

    Args:
        agent: The environment of the agent, of which the command gets the harmless part.
        timeout_ms: Infinite: no limit.
        wall: The sandbox around it (rule SA-15); None: there is none.

    Raises:
        EnvironmentFailure: It cannot be run on this machine; says why.
    """
    text = clean_text(text)
    if "\0" in text:
        raise EnvironmentFailure("A command cannot hold a NUL character.")
    if len(text.encode()) > process.COMMAND_LIMIT_BYTES:
        raise EnvironmentFailure("The command is longer than 120,000 bytes. Write it to a file and run that.")
    shell = next((path for path in _SHELLS if os.access(path, os.X_OK)), None)
    if shell is None:
        raise EnvironmentFailure("There is no bash and no sh on this machine.")
    arguments = process.shell_arguments(shell, text)
    return process.Command(
        arguments=arguments if wall is None else walled(arguments, directory, wall),
        directory=directory,
        environment=variables.for_commands(agent),
        timeout_ms=timeout_ms,
        limits=limits,
    )
