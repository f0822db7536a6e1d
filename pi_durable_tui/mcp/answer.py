"""What a server answered to a call, as a result of the harness. PURE.

The texts are foreign; they are made safe where they are shown. What a model cannot read is named with its kind and size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pi_durable_tui.records.json import clean_text
from pi_durable_tui.records.messages import Image

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
IMAGE_BASE64_BYTES = 5_000_000
MOST_IMAGES = 8


def text_and_images(result: CallToolResult) -> tuple[str, tuple[Image, ...]]:
    """The answer's text, and its pictures. What is only there as a structure is told as JSON."""
    texts: list[str] = []
    images: list[Image] = []
    for block in result.content:
        found = _block(block)
        if isinstance(found, Image) and len(images) < MOST_IMAGES:
            images.append(found)
        else:
            texts.append(found if isinstance(found, str) else "[A picture more than are taken from one answer.]")
    if not texts and not images and result.structured_content is not None:
        texts.append(msgspec.json.format(msgspec.json.encode(result.structured_content), indent=2).decode())
    return clean_text("\n".join(texts)), tuple(images)


def _block(block: ContentBlock) -> str | Image:
    match block.type:
        case "text":
            return block.text
        case "image":
            return _picture(block.mime_type, block.data)
        case "audio":
            return _named("Audio", block.mime_type, block.data)
        case "resource_link":
            about = f": {block.description}" if block.description else ""
            return f"[Resource {block.title or block.name} at {block.uri}{about}]"
        case "resource":
            from mcp.types import TextResourceContents

            resource = block.resource
            if isinstance(resource, TextResourceContents):
                return f"[Resource {resource.uri}]\n{resource.text}"
            return _picture(resource.mime_type or "", resource.blob)


def _picture(mime_type: str, data: str) -> str | Image:
    if mime_type not in IMAGE_TYPES or len(data) > IMAGE_BASE64_BYTES:
        return _named("Data", mime_type, data)
    return Image(mime_type=mime_type, data=data)


def _named(what: str, mime_type: str, data: str) -> str:
    return f"[{what} of the type {mime_type or 'unknown'}, {len(data) * 3 // 4:,} bytes, which cannot be shown to a model.]"
