"""Colours of tool output as styles; pictures in words."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import Color
from rich.style import Style

from pi_durable_tui.tui.foreign.colors import colored
from pi_durable_tui.tui.foreign.images import image_words
from pi_durable_tui.tui.safe_text import SEQUENCE_MARK, safe_text, without_colors
from tests.tui.test_rows import ATTACK


def spans(text: str) -> list[tuple[str, Style]]:
    shown = colored(text)
    return [(shown.text[start:end], style) for start, end, style in shown.spans]


@pytest.mark.rule("SA-1")
def test_colours_become_styles_and_leave_no_byte() -> None:
    text = "\x1b[1;31mred\x1b[0m plain \x1b[38;5;208morange\x1b[39m\x1b[38:2:1:2:3;4mrgb\x1b[24;48;2;9;9;9mback\x1b[m"
    assert colored(text).text == "red plain orangergbback"
    assert spans(text) == [
        ("red", Style(color=Color.from_ansi(1), bold=True)),
        ("orange", Style(color=Color.from_ansi(208))),
        ("rgb", Style(color=Color.from_rgb(1, 2, 3), underline=True)),
        ("back", Style(color=Color.from_rgb(1, 2, 3), bgcolor=Color.from_rgb(9, 9, 9))),
    ]


@pytest.mark.rule("SA-1", "SA-3")
def test_nothing_printed_is_invisible() -> None:
    assert spans("\x1b[8mhidden\x1b[0m\x1b[31;41msame\x1b[0m\x1b[5mblink") == [("same", Style(color=Color.from_ansi(1)))]


@pytest.mark.rule("SA-1", "CASE-G1")
def test_other_sequences_between_colours_stay_marks() -> None:
    shown = colored(f"\x1b[31m{ATTACK}\x1b[0m\x1b]0;open\x1b[32mgreen")
    assert not any((ord(char) < 32 and char != "\n") or 0x7F <= ord(char) <= 0x9F for char in shown.text)
    assert shown.text.endswith(f"{SEQUENCE_MARK}green"), "an open string ends at the next sequence and swallows nothing"


@pytest.mark.rule("SA-1")
@given(st.lists(st.sampled_from(["\x1b[31m", "\x1b[0m", "\x1b[", "\x1b", "a", "日", "\t", "\n", "\x1b]0;t\x07", "\u202e", "\x9b2J", "\r"]), max_size=12))
def test_the_text_is_the_one_without_colours_and_spans_lie_in_it_in_order(pieces: list[str]) -> None:
    text = "".join(pieces)
    shown = colored(text)
    if "\x1b\x1b" not in text and "\x1b[\x1b" not in text:
        assert shown.text.replace(SEQUENCE_MARK, "") == safe_text(without_colors(text)).replace(SEQUENCE_MARK, "")
    position = 0
    for start, end, _ in shown.spans:
        assert position <= start < end <= len(shown.text)
        position = end


def encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + b"rest"
JPEG = b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + b"x" * 14 + b"\xff\xc0" + struct.pack(">HBHH", 17, 8, 480, 640) + b"rest"
WEBP = b"RIFF0000WEBPVP8X" + bytes(8) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")


@pytest.mark.rule("TU-6")
@pytest.mark.parametrize("raw", [PNG, b"GIF89a" + struct.pack("<HH", 640, 480) + b"rest", JPEG, WEBP])
def test_a_picture_is_named_with_its_size(raw: bytes) -> None:
    assert image_words("image/x", encoded(raw)) == f"image/x 640×480, {len(raw):,} bytes"


@pytest.mark.rule("TU-6")
@pytest.mark.parametrize("data", ["", "AAAA", encoded(PNG[:12]), encoded(JPEG[:22]), "!not base64!", encoded(b"RIFF0000WEBPVP8 ")])
def test_a_broken_picture_is_named_without_size(data: str) -> None:
    assert image_words("image/x", data).startswith("image/x, ")
