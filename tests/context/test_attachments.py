"""Files that come along with a prompt: AG-1, SA-10."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from pi_durable_tui.cli.wish import as_typed
from pi_durable_tui.context.attachments import MOST, MOST_NAMES, TEXT_BYTES, TOTAL_BYTES, Attached, gather, mentions
from pi_durable_tui.records.messages import Image, Text
from pi_durable_tui.records.pictures import IMAGE_BYTES

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def attach(text: str, folder: Path, *, takes_images: bool = True) -> Attached:
    return gather(text, directory=folder, home=folder / "home", takes_images=takes_images)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("look at @a.py, and @b/c.", [("a.py,", "a.py"), ("b/c.", "b/c")]),
        ('(@x) "@y" and @"with blanks.txt"', [("x)", "x"), ('y"', "y"), ("with blanks.txt",)]),
        ("me@example.com and a@b", []),
        ("@@ -1 +1 @@", []),
        ("@a @a @a.", [("a",)]),
        ("@ @\n@", []),
        ("@dataclass\nclass X", [("dataclass",)]),
    ],
)
def test_mentions_are_found_at_the_beginning_of_words(text: str, names: list[tuple[str, ...]]):
    assert [mention.spellings for mention in mentions(text)] == names


@pytest.mark.parametrize(("argument", "word"), [("@a b.txt", '@"a b.txt"'), ("@a.txt", "@a.txt"), ("explain this", "explain this"), ("@", "@")])
def test_an_argument_with_blanks_stays_one_mention(argument: str, word: str):
    assert as_typed(argument) == word


@pytest.mark.rule("AG-1")
def test_a_text_file_comes_as_a_block_with_its_path(tmp_path: Path):
    (tmp_path / "a.md").write_text("one\n```\ntwo\n```\n")
    assert attach("explain @a.md.", tmp_path) == Attached(parts=(Text(text="Attached a.md:\n````\none\n```\ntwo\n```\n````"),), remarks=())


def test_a_name_with_blanks_one_below_home_and_one_with_a_dot_at_its_end(tmp_path: Path):
    (tmp_path / "my notes").write_text("n")
    (tmp_path / "odd.").write_text("o")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "h.txt").write_text("h")
    parts = attach('@"my notes" @odd. @~/h.txt', tmp_path).parts
    assert [part.text.splitlines()[2] for part in parts if isinstance(part, Text)] == ["n", "o", "h"]


@pytest.mark.rule("SA-10")
def test_a_long_text_is_cut_and_says_so(tmp_path: Path):
    (tmp_path / "a.log").write_bytes("é".encode() * TEXT_BYTES)
    [part] = attach("@a.log", tmp_path).parts
    assert isinstance(part, Text)
    assert part.text.startswith(f"Attached a.log (the first 65,536 of {TEXT_BYTES * 2:,} bytes; read the file for the rest):\n```\né")
    assert part.text.count("é") == TEXT_BYTES // 2


@pytest.mark.rule("SA-10")
def test_all_files_of_a_message_together_are_bounded(tmp_path: Path):
    names = [f"f{number}.txt" for number in range(8)]
    for name in names:
        (tmp_path / name).write_bytes(b"x" * TEXT_BYTES)
    attached = attach(" ".join(f"@{name}" for name in names), tmp_path)
    assert sum(len(part.text) for part in attached.parts if isinstance(part, Text)) < TOTAL_BYTES + 1_000
    assert attached.remarks[-1] == "f7.txt would be more than 256 KiB in one message; it was not attached."


@pytest.mark.rule("AG-1")
def test_a_picture_comes_as_a_picture_whatever_it_is_called(tmp_path: Path):
    (tmp_path / "shot.dat").write_bytes(PNG)
    image = Image(mime_type="image/png", data=base64.b64encode(PNG).decode())
    assert attach("@shot.dat", tmp_path) == Attached(parts=(image, Text(text="Attached shot.dat (image/png).")), remarks=())


def test_a_picture_that_cannot_be_sent_is_told(tmp_path: Path):
    (tmp_path / "shot.png").write_bytes(PNG)
    (tmp_path / "big.png").write_bytes(PNG + bytes(IMAGE_BYTES))
    assert attach("@shot.png", tmp_path, takes_images=False).remarks == ("shot.png is a picture, and this model takes none; it was not attached.",)
    assert attach("@big.png", tmp_path).remarks == (
        f"big.png is a picture of {IMAGE_BYTES + len(PNG):,} bytes, more than the 3,600,000 that can be sent; it was not attached.",
    )


@pytest.mark.rule("AG-1", "SA-10")
def test_a_directory_is_listed(tmp_path: Path):
    (tmp_path / "d" / "sub").mkdir(parents=True)
    (tmp_path / "d" / "a\x1b[31m").write_text("")
    assert attach("@d/", tmp_path).parts == (Text(text="Attached d/ (a directory):\n```\na\\x1b[31m\nsub/\n```"),)
    for number in range(MOST_NAMES + 5):
        (tmp_path / "d" / f"n{number}").write_text("")
    [part] = attach("@d", tmp_path).parts
    assert isinstance(part, Text)
    assert (part.text.count("\n"), part.text.endswith("… and more than 200\n```")) == (MOST_NAMES + 3, True)


@pytest.mark.rule("SA-10")
def test_odd_files_are_told_and_never_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "bin").write_bytes(b"\0\1")
    assert attach("@pipe @loop @bin @/dev/zero", tmp_path) == Attached(
        parts=(),
        remarks=(
            "pipe is a named pipe; it was not attached.",
            "loop cannot be read (too many levels of symbolic links); it was not attached.",
            "bin is not a text; it was not attached.",
            "/dev/zero is a device; it was not attached.",
        ),
    )


def test_a_name_that_may_be_a_persons_is_left_alone_and_a_path_that_is_missing_is_told(tmp_path: Path):
    assert attach("ask @alice about @src/gone.py", tmp_path) == Attached(parts=(), remarks=("There is no file 'src/gone.py'; it was not attached.",))


def test_no_more_files_than_a_message_may_bring(tmp_path: Path):
    for number in range(MOST + 2):
        (tmp_path / f"f{number}").write_text(str(number))
    attached = attach(" ".join(f"@f{number}" for number in range(MOST + 2)), tmp_path)
    assert (len(attached.parts), attached.remarks) == (MOST, (f"Only the first {MOST} files were attached.",))
