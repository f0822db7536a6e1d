"""How large a picture is, read from its first bytes (rule TU-6). PURE: never decodes a picture, never fails on a broken one."""

from __future__ import annotations

import base64
import binascii
import struct

_HEAD_CHARS = 87_384  # of base64, a multiple of 4: a JPEG may bring 64 KiB of other things first


def image_words(mime_type: str, data: str) -> str:
    """A picture in words: "image/png 640×480, 12,345 bytes"; without the size where it cannot be told.

    Args:
        data: The picture as base64.
    """
    size = _size(data)
    count = len(data) * 3 // 4 - data[-2:].count("=")
    return f"{mime_type}{f' {size[0]}×{size[1]}' if size else ''}, {count:,} bytes"


def _size(data: str) -> tuple[int, int] | None:
    head = data[:_HEAD_CHARS]
    try:
        raw = base64.b64decode(head[: len(head) // 4 * 4])
        if raw.startswith(b"\x89PNG\r\n\x1a\n"):
            return struct.unpack(">II", raw[16:24])
        if raw[:6] in (b"GIF87a", b"GIF89a"):
            return struct.unpack("<HH", raw[6:10])
        if raw.startswith(b"\xff\xd8"):
            return _jpeg_size(raw)
        if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
            return _webp_size(raw)
    except (binascii.Error, struct.error, IndexError):
        pass
    return None


def _jpeg_size(raw: bytes) -> tuple[int, int] | None:
    position = 2
    while position + 9 <= len(raw) and raw[position] == 0xFF:
        kind, length = raw[position + 1], int.from_bytes(raw[position + 2 : position + 4])
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", raw[position + 5 : position + 9])
            return width, height
        position += 2 + max(2, length)
    return None


def _webp_size(raw: bytes) -> tuple[int, int] | None:
    match raw[12:16]:
        case b"VP8X":
            return int.from_bytes(raw[24:27], "little") + 1, int.from_bytes(raw[27:30], "little") + 1
        case b"VP8L":
            bits = int.from_bytes(raw[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = struct.unpack("<HH", raw[26:30])
            return width & 0x3FFF, height & 0x3FFF
        case _:
            return None
