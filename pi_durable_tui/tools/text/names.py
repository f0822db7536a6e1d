"""PURE. File names as texts that cannot be mistaken: no control character, no broken encoding, one line (rule SA-10)."""

from __future__ import annotations

import os


def shown(path: str) -> str:
    r"""A path on one line; what cannot be shown stands as \n, \x1b or \xff."""
    if path.isprintable():
        return path
    parts: list[str] = []
    for char in path:
        if char.isprintable():
            parts.append(char)
        elif "\udc80" <= char <= "\udcff":
            parts.append(f"\\x{os.fsencode(char)[0]:02x}")
        else:
            parts.append(char.encode("unicode_escape", errors="replace").decode("ascii"))
    return "".join(parts)


def relative(path: str, folder: str) -> str:
    """A path as seen from a folder above it, and whole when it lies elsewhere."""
    start = folder.rstrip("/") + "/"
    return path.removeprefix(start)
