"""Opens a web address in the person's browser, after they have said so (rule SA-4). Nothing else here uses the network or starts one."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess  # noqa: TID251 - the person's browser outlives the app and has their environment: it is no tool's command
import sys
from collections.abc import Mapping

from pi_durable_tui.errors import EnvironmentFailure

STARTED_S = 5.0
"""An opener that has not ended by then is taken for the browser itself."""


def browse(url: str, environ: Mapping[str, str]) -> None:
    """The browser was told to open an address.

    Args:
        url: http or https.

    Raises:
        EnvironmentFailure: There is no browser, or it could not be told. Nothing was opened.
    """
    if not url.startswith(("http://", "https://")):
        raise EnvironmentFailure("That is no web address. Nothing was opened.")
    opener = opener_of(environ)
    if opener is None:
        raise EnvironmentFailure("There is no browser here that can be told to open it. Nothing was opened.", hint="In /links the key c copies the address.")
    try:
        process = subprocess.Popen(  # noqa: S603 - an absolute path and one argument, no shell
            [opener, url], env=dict(environ), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
    except OSError as error:
        raise EnvironmentFailure(f"{opener} could not be started: {error.strerror}. Nothing was opened.") from error
    with contextlib.suppress(subprocess.TimeoutExpired):
        if process.wait(STARTED_S) != 0:
            raise EnvironmentFailure(f"{opener} ended with code {process.returncode}. Nothing was opened.")


def opener_of(environ: Mapping[str, str], platform: str = sys.platform) -> str | None:
    """The program that hands an address to the browser; None: there is none, or no screen for one to appear on."""
    is_local = platform == "darwin" or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))
    found = shutil.which("open" if platform == "darwin" else "xdg-open", path=environ.get("PATH", "")) if is_local else None
    # With "." in the PATH it would be a file of whoever wrote the working directory.
    return found if found is not None and os.path.isabs(found) else None  # noqa: PTH117 - a path of text
