"""The person's own editor for the composer (Ctrl+G). The text is in a file that only they can read, and the file goes afterwards."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess  # noqa: TID251 - the person's editor has their terminal and their environment: it is no tool's command
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pi_durable_tui.errors import EnvironmentFailure

FALLBACKS = ("nano", "vim", "vi")


def edit(text: str, environ: Mapping[str, str]) -> str:
    """`text` as the person leaves it; without the newline that editors put at the end.

    Raises:
        EnvironmentFailure: There is no editor, or it ended with a failure. The text is as it was.
    """
    command = editor_command(environ)
    folder = tempfile.mkdtemp(prefix="pidurable-")  # 0700: the name of the file in it may be a fixed one
    path = Path(folder, "prompt.md")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        ended = subprocess.run([*command, str(path)], env=dict(environ), check=False)  # noqa: S603 - the person named it
        if ended.returncode != 0:
            raise EnvironmentFailure(f"The editor {command[0]} ended with code {ended.returncode}. The text is as it was.")
        edited = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise EnvironmentFailure(f"The editor {command[0]} could not be used: {error.strerror}. The text is as it was.") from error
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
    return edited.removesuffix("\n") if not text.endswith("\n") else edited


def editor_command(environ: Mapping[str, str]) -> list[str]:
    """The editor of the environment, or the first usual one that is there.

    Raises:
        EnvironmentFailure: There is none.
    """
    for name in ("VISUAL", "EDITOR"):
        words = shlex.split(environ.get(name, ""))
        if words:
            return words
    found = next((name for name in FALLBACKS if shutil.which(name, path=environ.get("PATH"))), None)
    if found is None:
        raise EnvironmentFailure("There is no editor: neither VISUAL nor EDITOR is set, and none of the usual ones was found.")
    return [found]
