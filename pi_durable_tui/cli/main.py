"""The console script `pidurable`: what most command lines are, read without a parser; for all others the parser is loaded.

Nothing slow may be imported at the top: the app paints first, and `--version` and `--help` answer at once (CASE-B11).
"""

# ruff: noqa: PLC0415 - what a command line needs is imported when it is read

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Sequence
from typing import NoReturn

from pi_durable_tui import __version__
from pi_durable_tui.cli.report import report
from pi_durable_tui.cli.streams import prepare_streams
from pi_durable_tui.cli.wish import COMMANDS, COMPLETING, HIDDEN, open_chat, plain_wish


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments ask for and return the exit code; errors are printed (rule CL-6)."""
    options = list(arguments)[: list(arguments).index("--")] if "--" in arguments else list(arguments)
    try:
        if list(arguments) == ["--version"]:  # the parser would take longer than everything else
            print(f"pidurable {__version__}", flush=True)
            return 0
        wish = plain_wish(arguments)
        if len(arguments) == 1 and wish is not None:
            _check(arguments)
        code = open_chat(wish) if wish is not None else _parsed(arguments)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the top: whatever comes here is printed and becomes an exit code
        return report(error, debug="--debug" in options)
    return code


def _check(arguments: Sequence[str]) -> None:
    """Return if a single word is a prompt, and no command with a letter wrong."""
    from pi_durable_tui.cli.commands.misuse import near_miss

    if (missed := near_miss(arguments, COMMANDS - HIDDEN)) is not None:
        raise missed


def _parsed(arguments: Sequence[str]) -> int:
    """Let the parser say what the arguments ask for, and do it."""
    import typer
    from typer.exceptions import TyperException

    from pi_durable_tui.cli.commands.application import app
    from pi_durable_tui.cli.commands.misuse import misuse

    command = typer.main.get_command(app)
    try:
        with command.make_context("pidurable", list(arguments)) as context:
            code = command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    except TyperException as error:
        return report(misuse(error), debug=False)
    return code if isinstance(code, int) else 0


def main() -> NoReturn:
    """The console script."""
    prepare_streams()
    if COMPLETING in os.environ:
        _complete()
    _leave(run(sys.argv[1:]))


def _leave(code: int) -> NoReturn:
    """End the process; at once where a thread still loads the model library.

    The interpreter would end that thread with the lock of imports in its hands, and then wait for the lock for ever, as soon as anything that it clears
    away imports something.
    """
    if not any(thread.daemon for thread in threading.enumerate()):
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)


def _complete() -> None:
    """Answer a shell that asks for completions, and end."""
    import typer
    from typer._completion_classes import completion_init

    from pi_durable_tui.cli.commands.application import app

    completion_init()
    typer.main.get_command(app).main(prog_name="pidurable", complete_var=COMPLETING)


if __name__ == "__main__":
    main()
