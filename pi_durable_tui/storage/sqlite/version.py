"""Which SQLite this program brings, and whether its stores are safe with it."""

from __future__ import annotations

import apsw

SAFE_FROM = (3, 51, 3)
"""Older ones can damage a store when its log is reset while somebody reads."""


def library_version() -> str:
    """As `3.51.3`."""
    return apsw.sqlite_lib_version()


def is_safe(version: str) -> bool:
    """True for a version without that fault; False also for what is no version. PURE."""
    parts = version.split(".")
    return all(part.isdigit() for part in parts) and tuple(int(part) for part in parts) >= SAFE_FROM
