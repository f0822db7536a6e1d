"""The looks of the app, each one table of colours; the style sheet and everything drawn by lines read the same one (rule TU-14).

Quiet on purpose: one accent, three signals (good, warn, bad), and greys. Every colour has a job, none is decoration. Where a terminal
knows 256 colours only (over SSH nothing tells it of more) each becomes the nearest of those, and surfaces must still stand apart.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct
from rich.style import Style
from textual.theme import Theme

ThemeName: TypeAlias = Literal["dark", "light", "ansi", "system"]
THEMES: tuple[ThemeName, ...] = ("dark", "light", "ansi", "system")


class Palette(Struct, frozen=True, kw_only=True):
    """Colours as "#rrggbb", or as the names of the terminal's own sixteen.

    Attributes:
        text, muted, faint: What is read, what accompanies it, what only orders it (rules, gutters).
        background, raised, sunken: The screen, a surface on it (the person's words), a well in it (code).
        added_back, removed_back: Behind changed lines of a diff.
        keyword, string, number, name, comment: Code.
    """

    name: str
    is_dark: bool
    text: str
    muted: str
    faint: str
    background: str
    raised: str
    sunken: str
    accent: str
    good: str
    warn: str
    bad: str
    added_back: str
    removed_back: str
    keyword: str
    string: str
    number: str
    name_color: str

    def style(self, color: str | None = None, *, on: str | None = None, bold: bool = False, italic: bool = False, underline: bool = False) -> Style:
        """A Rich style of the given colours; None leaves one as it is."""
        return Style(color=color, bgcolor=on, bold=bold or None, italic=italic or None, underline=underline or None)

    def theme(self) -> Theme:
        """The same colours for the style sheet."""
        return Theme(
            name=self.name,
            dark=self.is_dark,
            primary=_sheet(self.accent),
            secondary=_sheet(self.accent),
            accent=_sheet(self.accent),
            foreground=_sheet(self.text),
            background=_sheet(self.background),
            surface=_sheet(self.raised),
            panel=_sheet(self.raised),
            success=_sheet(self.good),
            warning=_sheet(self.warn),
            error=_sheet(self.bad),
            variables={
                "muted": _sheet(self.muted),
                "faint": _sheet(self.faint),
                "sunken": _sheet(self.sunken),
                "input-cursor-background": _sheet(self.muted if self.is_ansi else self.text),
                "input-cursor-foreground": _sheet(self.background),
                "scrollbar": _sheet(self.faint),
                "scrollbar-hover": _sheet(self.muted),
                "scrollbar-active": _sheet(self.muted),
                "scrollbar-background": _sheet(self.background),
                "scrollbar-background-hover": _sheet(self.background),
                "scrollbar-background-active": _sheet(self.background),
            },
        )

    @property
    def is_ansi(self) -> bool:
        """True when the terminal decides what its colours look like."""
        return not self.background.startswith("#")


def _sheet(color: str) -> str:
    """A colour as the style sheet spells it."""
    return color if color.startswith("#") else f"ansi_{color}"


DARK = Palette(
    name="pidurable-dark",
    is_dark=True,
    text="#d8dbe2",
    muted="#8b93a3",
    faint="#454c59",
    background="#14161b",
    raised="#202329",
    sunken="#1a1c22",
    accent="#7aa2f7",
    good="#8cc17f",
    warn="#e0af68",
    bad="#ec6a76",
    added_back="#1b3022",
    removed_back="#34202a",
    keyword="#bb9af7",
    string="#9ece8a",
    number="#e0a978",
    name_color="#7dcfff",
)

LIGHT = Palette(
    name="pidurable-light",
    is_dark=False,
    text="#24292f",
    muted="#656d76",
    faint="#c4cad2",
    background="#fbfbfa",
    raised="#f0f1f3",
    sunken="#f4f5f6",
    accent="#2f5fd0",
    good="#2f7d3b",
    warn="#9a6700",
    bad="#c4303f",
    added_back="#dff3e2",
    removed_back="#fbe3e4",
    keyword="#7a3fc4",
    string="#2f7d3b",
    number="#a8500d",
    name_color="#0b6ea8",
)

ANSI = Palette(
    name="pidurable-ansi",
    is_dark=True,
    text="default",
    muted="bright_black",
    faint="bright_black",
    background="default",
    raised="default",
    sunken="default",
    accent="blue",
    good="green",
    warn="yellow",
    bad="red",
    added_back="default",
    removed_back="default",
    keyword="magenta",
    string="green",
    number="yellow",
    name_color="cyan",
)


def palette_of(theme: ThemeName, *, colors: str = "") -> Palette:
    """The palette of a theme.

    Args:
        colors: What the terminal says of itself in COLORFGBG ("15;0"), which "system" goes by; without it "system" is dark.
    """
    match theme:
        case "dark":
            return DARK
        case "light":
            return LIGHT
        case "ansi":
            return ANSI
        case "system":
            background = colors.rpartition(";")[2]
            return LIGHT if background in ("7", "15") else DARK
