"""Starts pidurable with its doors watched: it may neither load its model library nor use the network until the file PAINTED exists.

    python -m tests.support.journey_watched PAINTED LOG [ARGUMENT…]

Whoever looks at the screen makes the file once the app stands there. Until then the import waits, so that a program that needs it for its
first picture never shows one. LOG gets a line for each thing that was tried, and when.
"""

from __future__ import annotations

import pathlib
import sys
import time

from tests.support.patience import PATIENCE_S


def _watch(painted: pathlib.Path, log: pathlib.Path) -> None:
    loaded: set[str] = set()

    def note(what: str) -> None:
        with log.open("a") as file:
            file.write(f"{'after' if painted.exists() else 'before'} {what}\n")

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        if event == "import" and arguments[0] == "litellm" and "litellm" not in loaded:
            loaded.add("litellm")
            note("litellm asked for")
            deadline_s = time.monotonic() + PATIENCE_S
            while not painted.exists() and time.monotonic() < deadline_s:
                time.sleep(0.01)
            note("litellm loaded")
        elif event in {"socket.connect", "socket.getaddrinfo"}:
            note("network")

    sys.addaudithook(audit)


def main() -> None:
    painted, log, *arguments = sys.argv[1:]
    _watch(pathlib.Path(painted), pathlib.Path(log))
    sys.argv = ["pidurable", *arguments]
    from pi_durable_tui.cli.main import main as start  # noqa: PLC0415 - after the hook

    start()


if __name__ == "__main__":
    main()
