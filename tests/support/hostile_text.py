"""Texts that try to do something to a terminal: more than 400, of every kind that a terminal obeys or a reader is fooled by. The same every time."""

from __future__ import annotations

CASE_G1 = "A\x1b]52;c;UFdORUQ=\x07B\x1b]0;T\x07\x1b[2J\u009b2J\x1b]8;;http://evil.example\x07x\x1b]8;;\x07\x1b[6n\x1bPq\x1b\\\x1b]"

_ENDS = ("\x07", "\x1b\\", "\x9c")


def hostile_texts() -> tuple[str, ...]:
    """All of them; none holds a line break."""
    control = [f"\x1b[{given}{final}" for given in ("", "1;1", "?1049", ">1") for final in "ABCDEFGHIJKLMPSTXZ`abcdefghilnqrstuxy@"]
    control += [
        "\x1b[6n",
        "\x1b[?6n",
        "\x1b[c",
        "\x1b[>c",
        "\x1b[=c",
        "\x1b[0x",
        "\x1b[21t",
        "\x1b[?2004l",
        "\x1b[?1000h",
        "\x1b[20h",
        "\x1b[!p",
        '\x1b["q',
        "\x1b[ q",
    ]
    system = [f"\x1b]{number};{payload}{end}" for number, payload in _SYSTEM for end in _ENDS]
    strings = [f"\x1b{kind}{payload}{end}" for kind in "P_^X" for payload in ("q", "+q544e", "$qm", "payload") for end in _ENDS]
    short = [f"\x1b{final}" for final in "678=>cDEHMNOZno|}~"] + ["\x1b(0", "\x1b)B", "\x1b#8", "\x1b%G", "\x1b F"]
    eight_bit = [f"\x9b{given}{final}" for given in ("", "2", "?1049") for final in "JKHmhln"] + [f"{kind}52;c;UFdO\x9c" for kind in "\x90\x98\x9d\x9e\x9f"]
    eight_bit += [chr(code) for code in range(0x80, 0xA0)]
    open_ended = [
        "\x1b",
        "\x1b[",
        "\x1b[38;2",
        "\x1b]",
        "\x1b]0;owned",
        "\x1b]52;c;UFdO",
        "\x1bPq",
        "\x1b_x",
        "\x1b^x",
        "\x1bXx",
        "\x9b",
        "\x9b12",
        "\x9d0;t",
        "\x90q",
        "\x1b(",
    ]
    nested = [f"\x1b\x1b[{2}J", "\x1b[\x1b]0;t\x07", "\x1b]0;\x1b[2J\x07", "\x1b[2\x00J", "\x1b[2\x18J", "\x1b\x7f[2J", CASE_G1]
    controls = [chr(code) for code in (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F)] + ["a\rb", "a\bb"]
    hidden = [*"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c", "\u200b", "\ufeff", "\u2060", "\u00ad", "\u200b\u200d\u200c"]
    hidden += ["".join(chr(0xE0000 + ord(letter)) for letter in "run rm"), "\U000e0001", "\ufff9x\ufffa", "\u2028", "\u2029"]
    made = (*control, *system, *strings, *short, *eight_bit, *open_ended, *nested, *controls, *hidden)
    assert len(made) > 400
    return tuple(dict.fromkeys(made))


_SYSTEM = (
    ("0", "owned"),
    ("1", "owned"),
    ("2", "owned"),
    ("4", "1;?"),
    ("7", "file://host/etc"),
    ("8", ";http://evil.example"),
    ("9", "notice"),
    ("10", "?"),
    ("11", "?"),
    ("12", "#ff0000"),
    ("50", "?"),
    ("52", "c;UFdORUQ="),
    ("52", "c;?"),
    ("104", ""),
    ("133", "A"),
    ("777", "notify;a;b"),
    ("1337", "SetUserVar=a=b"),
    ("1337", "File=inline=1:AAAA"),
)
