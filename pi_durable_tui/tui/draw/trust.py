"""What a person is asked about the files of a project, as data (rule SA-5). PURE; the texts are foreign and made safe when drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rich.cells import chop_cells
from rich.text import Text

from pi_durable_tui.tui.palette import Palette
from pi_durable_tui.tui.safe_text import safe_line, safe_text

KINDS = {
    "instructions": "the model is told",
    "settings": "chooses model and thinking",
    "skill": "skill the model may use",
    "prompt": "command you can type",
    "agent": "kind of agent the model may ask for",
    "servers": "STARTS PROGRAMS with your rights, or asks addresses",
    "extension": "CODE that runs with your rights",
}
"""Kind of file -> what it would do."""

STANDINGS = {"new": "new", "changed": "changed since you decided", "trusted": "trusted", "refused": "not trusted"}
NAME_CELLS = 60
LINES = 200
"""Of one file; the rest is in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustPart:
    """One file.

    Attributes:
        kind: A key of KINDS.
        standing: What was decided, or why it is asked.
        lines: What it holds, or how it differs from what was decided about.
    """

    kind: str
    name: str
    standing: Literal["new", "changed", "trusted", "refused"]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustQuestion:
    """The files of the project in `directory` that are asked about."""

    directory: str
    parts: tuple[TrustPart, ...]


def question_text(question: TrustQuestion, palette: Palette, *, width: int) -> Text:
    """The list of what would be loaded, then what is in each file, behind a bar that no content can get across (rule SA-3).

    Args:
        width: Cells of a line. Contents are cut into pieces that fit, so that each has its bar.
    """
    text = Text()
    text.append("These files of the project would be used:\n", palette.style(palette.text))
    longest = max((len(safe_line(part.name, max_cells=NAME_CELLS)) for part in question.parts), default=0)
    for part in question.parts:
        tone = palette.warn if part.kind in {"extension", "servers"} else palette.muted
        text.append(f"  {safe_line(part.name, max_cells=NAME_CELLS):<{longest}}  ", palette.style(palette.accent, bold=True))
        text.append(KINDS.get(part.kind, ""), palette.style(tone))
        text.append(f" · {STANDINGS[part.standing]}\n", palette.style(palette.muted))
    text.append("Untrusted files are only data: you can still read and edit them.\n", palette.style(palette.muted))
    for part in question.parts:
        text.append(f"\n{safe_line(part.name, max_cells=width)}\n", palette.style(palette.text, bold=True))
        for line in part.lines[:LINES]:
            for piece in chop_cells(safe_text(line).expandtabs(4).replace("\n", " "), max(8, width - 2)) or [""]:
                text.append("│ ", palette.style(palette.muted))
                text.append(f"{piece}\n", palette.style(_tone(part, line, palette)))
        if len(part.lines) > LINES:
            text.append(f"│ … {len(part.lines) - LINES} more lines are in the file\n", palette.style(palette.muted))
    text.rstrip()
    return text


def _tone(part: TrustPart, line: str, palette: Palette) -> str:
    if part.standing != "changed":
        return palette.muted
    return palette.good if line.startswith("+") else palette.bad if line.startswith("-") else palette.muted
