"""Pictures of the app as SVG files under snapshots/, one for each state a user can name."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path

from syrupy.extensions.image import SVGImageSnapshotExtension
from syrupy.location import PyTestLocation

ROOT = Path(__file__).resolve().parents[2]
PINNED = ("3.11", "8.2.8")


class Picture(SVGImageSnapshotExtension):
    """Keeps pictures where a reader finds them; a class of its own at module level, so that one that nobody asserts is noticed."""

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        return str(ROOT / "snapshots" / test_location.basename)


def why_not_update(*, is_ci: bool) -> str:
    """Why pictures may not be written here; "" when they may. Another Python or Textual draws other bytes."""
    if is_ci:
        return "pictures are not written in CI"
    here = (".".join(platform.python_version_tuple()[:2]), version("textual"))
    return "" if here == PINNED else f"pictures are written with Python and Textual {PINNED}, not {here}"
