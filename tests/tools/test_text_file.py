"""Bytes to text and back."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.tools.text.text_file import decode, kind_of_binary, majority_newline, respell, view


@given(st.binary(max_size=60), st.sampled_from([b"", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE]))
def test_decoding_and_encoding_gives_the_same_bytes(body: bytes, mark: bytes):
    file = decode(mark + body)
    assert file.encode(file.text) == mark + body


@given(st.text(max_size=40))
def test_utf_8_is_read_as_utf_8(text: str):
    file = decode(text.encode())
    assert (file.text, file.encoding) == (text.removeprefix("\ufeff"), "utf-8")


@given(st.text(alphabet="ab\r\n", max_size=40), st.data())
def test_a_place_in_the_view_is_the_same_place_in_the_file(text: str, data: st.DataObject):
    text += "\n"  # without any newline a return would be one
    seen = view(text)
    position = data.draw(st.integers(0, len(seen.text)))
    place = seen.original(position)
    assert text[:place].replace("\r\n", "\n") == seen.text[:position]
    assert text[place - 1 : place + 1] != "\r\n", "a line ending is never cut in two"


@pytest.mark.parametrize(("text", "ending"), [("a", "\n"), ("a\nb\r\nc\r\n", "\r\n"), ("a\nb\r\n", "\n"), ("a\rb", "\r"), ("a\rb\n", "\n")])
def test_inserted_lines_take_the_most_frequent_ending(text: str, ending: str):
    assert majority_newline(text) == ending


@pytest.mark.parametrize(
    ("old", "new", "newline", "expected"),
    [
        ("a\r\nb\nc", "A\nB\nC", "\n", "A\r\nB\nC"),  # in order
        ("a\nb\r\nc", "a\nx\nb\nc", "\n", "a\nx\nb\r\nc"),  # equal lines keep theirs, the new one takes the file's
        ("a", "a\nb", "\r\n", "a\r\nb"),
        ("a\r\nb", "c", "\r\n", "c"),
        ("a\rb", "A\nB", "\r", "A\rB"),
        ("a\rb\n", "x\n", "\n", "x\n"),  # a lone return is a character where lines end otherwise
    ],
)
@pytest.mark.rule("CASE-C1")
def test_each_line_keeps_its_own_ending(old: str, new: str, newline: str, expected: str):
    assert respell(old, new, newline) == expected


def test_kinds_of_binary_files_have_names():
    assert kind_of_binary(b"\x89PNG\r\n\x1a\nrest") == "PNG image"
    assert kind_of_binary(b"text" + b"\0") == "binary file"
    assert kind_of_binary("text".encode("utf-16")) is None
    assert kind_of_binary(b"") is None
