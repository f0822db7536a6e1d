"""PURE. Which pictures models take, told by their first bytes."""

from __future__ import annotations

import base64
from typing import Literal, TypeAlias

from pi_durable_tui.records.messages import Image

ImageType: TypeAlias = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]

IMAGE_BYTES = 3_600_000
"""As base64 just below the 5 MB that the strictest provider takes."""


def image_type(data: bytes) -> ImageType | None:
    """The kind of picture by its first bytes, whatever its name says; None: no picture that models take."""
    match data:
        case _ if data.startswith(b"\x89PNG\r\n\x1a\n"):
            return "image/png"
        case _ if data.startswith(b"\xff\xd8\xff"):
            return "image/jpeg"
        case _ if data.startswith((b"GIF87a", b"GIF89a")):
            return "image/gif"
        case _ if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return "image/webp"
        case _:
            return None


def picture(kind: ImageType, data: bytes) -> Image:
    """A picture as a part of a message."""
    return Image(mime_type=kind, data=base64.b64encode(data).decode("ascii"))
