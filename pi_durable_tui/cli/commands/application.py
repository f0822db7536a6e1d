"""The options and commands of `pidurable`, and nothing else. What they do is imported when it is done.

Nothing slow may be imported at the top: `--version` and `--help` answer at once (CASE-B11).
"""

# ruff: noqa: PLC0415, PLR0917 - what a command needs is imported when it runs; typer calls its functions by name

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pi_durable_tui import __version__
from pi_durable_tui.cli.commands import checks, looking, sessions
from pi_durable_tui.cli.commands.options import HELP_NAMES, Cwd, Debug
from pi_durable_tui.cli.commands.page import Page
from pi_durable_tui.cli.routing import CHAT, ChatCommand, PromptOrCommand
from pi_durable_tui.cli.wish import as_typed
from pi_durable_tui.errors import BadRequest

_EPILOG = 'Example:  git diff | pidurable -p "review this"'

app = typer.Typer(
    name="pidurable",
    cls=PromptOrCommand,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=HELP_NAMES,
    help="A coding agent whose work cannot be lost: kill it, and --continue goes on.",
    epilog=_EPILOG,
)


class Mode(StrEnum):
    """What print mode writes to stdout."""

    TEXT = "text"
    JSON = "json"


class Approve(StrEnum):
    """What the agent may do without asking."""

    ASK = "ask"
    EDITS = "edits"
    ALL = "all"
    PLAN = "plan"


class Thinking(StrEnum):
    """How much the model reasons."""

    OFF = "off"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


def _version(wanted: bool) -> None:
    if wanted:
        print(f"pidurable {__version__}")
        raise typer.Exit


def _refuse_contradictions(mode: Mode, *, in_print_mode: bool, is_continued: bool, resume: str | None, in_memory: bool) -> None:
    """Return if the options go together.

    Raises:
        BadRequest: They do not; says which. Nothing was started.
    """
    if mode is Mode.JSON and not in_print_mode:
        raise BadRequest("--mode json needs print mode. Nothing was started.", hint="Add -p.")
    if is_continued and resume is not None:
        raise BadRequest("--continue and --resume both say which chat. Nothing was started.", hint="Take one of them.")
    if in_memory and (is_continued or resume is not None):
        raise BadRequest("A chat that is stored cannot be resumed with --no-session. Nothing was started.")
    if in_print_mode and resume == "":
        raise BadRequest("Print mode cannot ask which chat to resume. Nothing was started.", hint="pidurable -r ID -p; pidurable sessions lists the ids.")


@app.command(CHAT, hidden=True, cls=ChatCommand, epilog=_EPILOG)
def chat(
    prompt: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    continue_: Annotated[bool, typer.Option("--continue", "-c", help="Resume this directory's newest chat and its work.")] = False,
    resume: Annotated[str | None, typer.Option("--resume", "-r", metavar="[ID]", help="Resume a chat; without ID: choose one.")] = None,
    print_: Annotated[bool, typer.Option("--print", "-p", help="Print the answer and exit; more: pidurable -p --help")] = False,
    mode: Annotated[Mode, typer.Option(metavar="MODE", show_default=False, help="With -p: text (the answer) or json (one event a line).")] = Mode.TEXT,
    model: Annotated[str | None, typer.Option(metavar="M", help="The model: provider/name, or playback/NAME.")] = None,
    approve: Annotated[Approve | None, typer.Option(metavar="MODE", help="What needs no question: ask, edits, all; plan only reads.")] = None,
    thinking: Annotated[Thinking | None, typer.Option(metavar="LEVEL", help="How much to reason: off, low, medium, high.")] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Use this project's own files in this run, unasked.")] = False,
    tools: Annotated[str | None, typer.Option(metavar="A,B", help="Offer only these tools.")] = None,
    max_turns: Annotated[int | None, typer.Option(min=1, metavar="N", help="End a run after N turns (exit status 3).")] = None,
    max_cost: Annotated[float | None, typer.Option(min=0, metavar="USD", help="End a run that has cost so much (exit status 3).")] = None,
    max_time: Annotated[int | None, typer.Option(min=1, metavar="SECONDS", help="End a run that has worked so long (exit status 3).")] = None,
    name: Annotated[str, typer.Option(metavar="NAME", show_default=False, help="What to call the chat.")] = "",
    no_session: Annotated[bool, typer.Option("--no-session", help="Store nothing: the chat is gone with the process.")] = False,
    cwd: Cwd = None,
    debug: Debug = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")] = False,
) -> int:
    """Open a chat, optionally with a first prompt."""
    from pi_durable_tui.cli.wish import Wish, open_chat

    del debug, version
    _refuse_contradictions(mode, in_print_mode=print_, is_continued=continue_, resume=resume, in_memory=no_session)
    return open_chat(
        Wish(
            prompt=" ".join(as_typed(word) for word in prompt or ()),
            resume=continue_ or resume is not None,
            chat_id=resume or None,
            pick=resume == "",
            name=name,
            tools=None if tools is None else tuple(word.strip() for word in tools.split(",") if word.strip()),
            in_memory=no_session,
            max_turns=max_turns,
            max_cost_usd=max_cost,
            max_time_s=max_time,
            in_print_mode=print_,
            as_json=mode is Mode.JSON,
            model=model,
            approval=approve.value if approve else None,
            thinking=thinking.value if thinking else None,
            cwd=cwd,
            trust=trust,
        )
    )


@app.command(cls=Page, short_help="a recorded session, no key", epilog="Example:  pidurable demo 03-kill-mid-stream --headless --speed 4")
def demo(
    name: Annotated[str | None, typer.Argument(metavar="[NAME|FOLDER]", help="Which one, or a folder; without: 02-read-edit-test.")] = None,
    headless: Annotated[bool, typer.Option("--headless", help="As text on stdout instead of in the app.")] = False,
    speed: Annotated[float, typer.Option(min=0.25, max=1000, help="How many times as fast.")] = 1.0,
    golden: Annotated[bool, typer.Option("--golden", help="With --headless: print the commits, for golden.txt.")] = False,
    keep: Annotated[str | None, typer.Option("--keep", metavar="DIR", help="Play in this new folder, and leave it there.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the recorded sessions.")] = False,
    debug: Debug = False,
) -> int:
    """Play a recorded session with real tools; no key, no network."""
    from pi_durable_tui.cli.demo import list_stories, run_demo

    if golden and not headless:
        raise BadRequest("--golden needs --headless. Nothing was started.", hint="Add --headless.")
    return list_stories() if list_ else run_demo(name or "02-read-edit-test", headless=headless, speed=speed, as_golden=golden, keep=keep, debug=debug)


@app.command("demo-player", hidden=True)
def demo_player(name: str, stage: str, headless: bool = False, speed: float = 1.0, anchor_ms: int = 0, debug: Debug = False) -> int:
    """The process that `demo` starts, and that may kill itself."""
    from pi_durable_tui.cli.demo import play_story

    del debug
    return play_story(name, stage, headless=headless, speed=speed, anchor_ms=anchor_ms)


app.add_typer(looking.app)
app.add_typer(sessions.app, name="sessions")
app.add_typer(checks.app)
