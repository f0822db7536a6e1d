"""The two looks of the app, each one table of colours; the style sheet and everything drawn by lines read the same one (rule TU-14).

Quiet on purpose: one accent, three signals (good, warn, bad), and greys. Every colour has a job, none is decoration.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.style import Style
from textual.theme import Theme


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """Colours as "#rrggbb".

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
            primary=self.accent,
            secondary=self.accent,
            accent=self.accent,
            foreground=self.text,
            background=self.background,
            surface=self.raised,
            panel=self.raised,
            success=self.good,
            warning=self.warn,
            error=self.bad,
            variables={
                "muted": self.muted,
                "faint": self.faint,
                "sunken": self.sunken,
                "input-cursor-background": self.text,
                "input-cursor-foreground": self.background,
                "scrollbar": self.faint,
                "scrollbar-hover": self.muted,
                "scrollbar-active": self.muted,
                "scrollbar-background": self.background,
                "scrollbar-background-hover": self.background,
                "scrollbar-background-active": self.background,
            },
        )


DARK = Palette(
    name="pidurable-dark",
    is_dark=True,
    text="#d8dbe2",
    muted="#8b93a3",
    faint="#454c59",
    background="#14161b",
    raised="#1e222a",
    sunken="#191c22",
    accent="#7aa2f7",
    good="#8cc17f",
    warn="#e0af68",
    bad="#ec6a76",
    added_back="#1b2c22",
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

PALETTES = {palette.name: palette for palette in (DARK, LIGHT)}
