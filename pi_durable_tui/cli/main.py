"""The `pidurable` command: options and commands, and nothing else. What they do is imported when it is done.

Nothing slow may be imported at the top: `--version` and `--help` answer at once (CASE-B11).
"""

# ruff: noqa: PLC0415, PLR0917 - what a command needs is imported when it runs; typer calls its functions by name

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from pi_durable_tui import __version__
from pi_durable_tui.cli.report import report
from pi_durable_tui.cli.routing import CHAT, PromptOrCommand
from pi_durable_tui.errors import BadRequest

_EPILOG = 'Example:  git diff | pidurable -p "review this"'

app = typer.Typer(
    name="pidurable",
    cls=PromptOrCommand,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A coding agent whose work cannot be lost: kill it, and --continue goes on.",
    epilog=_EPILOG,
)

sessions_app = typer.Typer(invoke_without_command=True, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})
app.add_typer(sessions_app, name="sessions")


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


class Store(StrEnum):
    """The kinds of store."""

    SQLITE = "sqlite"
    JSONL = "jsonl"


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


Cwd = Annotated[str | None, typer.Option("--cwd", metavar="DIR", help="Work in DIR instead of here.")]
Debug = Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
ChatId = Annotated[str | None, typer.Argument(metavar="[ID]", help="A chat as `pidurable sessions` names it; without: the one --continue takes.")]


@app.command(CHAT, hidden=True)
def chat(
    prompt: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    continue_: Annotated[bool, typer.Option("--continue", "-c", help="Resume this directory's newest chat and its work.")] = False,
    print_: Annotated[bool, typer.Option("--print", "-p", help="Print the answer and exit; piped input comes first.")] = False,
    mode: Annotated[Mode, typer.Option(metavar="MODE", show_default=False, help="With -p: text (the answer) or json (one event a line).")] = Mode.TEXT,
    model: Annotated[str | None, typer.Option(metavar="M", help="The model: provider/name, or playback/NAME.")] = None,
    approve: Annotated[Approve | None, typer.Option(metavar="MODE", help="What needs no question: ask, edits, all; plan only reads.")] = None,
    thinking: Annotated[Thinking | None, typer.Option(metavar="LEVEL", help="How much to reason: off, low, medium, high.")] = None,
    cwd: Cwd = None,
    debug: Debug = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")] = False,
) -> int:
    """Open a chat, optionally with a first prompt."""
    from pi_durable_tui.cli.chat import Wish, open_chat

    del debug, version
    if mode is Mode.JSON and not print_:
        raise BadRequest("--mode json needs print mode. Nothing was started.", hint="Add -p.")
    return open_chat(
        Wish(
            prompt=" ".join(prompt or ()),
            resume=continue_,
            in_print_mode=print_,
            as_json=mode is Mode.JSON,
            model=model,
            approval=approve.value if approve else None,
            thinking=thinking.value if thinking else None,
            cwd=cwd,
        )
    )


@app.command(epilog="Example:  pidurable demo 03-kill-mid-stream --headless --speed 4")
def demo(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Which one; without: 02-read-edit-test.")] = None,
    headless: Annotated[bool, typer.Option("--headless", help="As text on stdout instead of in the app.")] = False,
    speed: Annotated[float, typer.Option(min=0.25, max=1000, help="How many times as fast.")] = 1.0,
    golden: Annotated[bool, typer.Option("--golden", help="With --headless: print the commits, for golden.txt.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the recorded sessions.")] = False,
    debug: Debug = False,
) -> int:
    """Play a recorded session with real tools; no key, no network."""
    from pi_durable_tui.cli.demo import list_stories, run_demo

    if golden and not headless:
        raise BadRequest("--golden needs --headless. Nothing was started.", hint="Add --headless.")
    return list_stories() if list_ else run_demo(name or "02-read-edit-test", headless=headless, speed=speed, as_golden=golden, debug=debug)


@app.command("demo-player", hidden=True)
def demo_player(name: str, stage: str, headless: bool = False, speed: float = 1.0, anchor_ms: int = 0, debug: Debug = False) -> int:
    """The process that `demo` starts, and that may kill itself."""
    from pi_durable_tui.cli.demo import play_story

    del debug
    return play_story(name, stage, headless=headless, speed=speed, anchor_ms=anchor_ms)


@app.command(epilog="Example:  pidurable inspect 1.3 --json")
def inspect(chat_id: ChatId = None, as_json: Json = False, cwd: Cwd = None, debug: Debug = False) -> int:
    """Show live tasks, waits, restarts and open submissions."""
    from pi_durable_tui.cli.inspect import inspect_chat

    del debug
    return inspect_chat(chat_id, cwd=cwd, as_json=as_json)


@app.command(epilog="Example:  pidurable log | less")
def log(chat_id: ChatId = None, cwd: Cwd = None, debug: Debug = False) -> int:
    """Print a chat as plain text."""
    from pi_durable_tui.cli.log import log_chat

    del debug
    return log_chat(chat_id, cwd=cwd)


@sessions_app.callback(epilog="Example:  pidurable sessions --json")
def sessions(context: typer.Context, as_json: Json = False, cwd: Cwd = None, debug: Debug = False) -> int:
    """List the chats of this directory."""
    from pi_durable_tui.cli.sessions import list_sessions

    del debug
    return list_sessions(cwd=cwd, as_json=as_json) if context.invoked_subcommand is None else 0


@sessions_app.command("convert", epilog="Example:  pidurable sessions convert 2 --to jsonl")
def sessions_convert(
    to: Annotated[Store, typer.Option(metavar="KIND", help="sqlite (one file) or jsonl (a folder of JSON lines).")],
    number: Annotated[int, typer.Argument(min=1, metavar="[N]", help="The session: the number before the dot of its chats' ids.")] = 1,
    cwd: Cwd = None,
    debug: Debug = False,
) -> int:
    """Turn a session's store into the other kind; the old one is kept."""
    from pi_durable_tui.cli.sessions import convert_session

    del debug
    return convert_session(number, to.value, cwd=cwd)


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments ask for and return the exit code; errors are printed (rule CL-6)."""
    options = list(arguments)[: list(arguments).index("--")] if "--" in arguments else list(arguments)
    command = typer.main.get_command(app)
    try:
        with command.make_context("pidurable", list(arguments)) as context:
            code = command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as ended:
        return ended.exit_code
    except TyperException as error:
        return report(BadRequest(error.format_message(), hint="See pidurable --help; words after -- are always a prompt."), debug=False)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the top: whatever comes here is printed and becomes an exit code
        return report(error, debug="--debug" in options)
    return code if isinstance(code, int) else 0


def main() -> NoReturn:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a character must not end the program
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
