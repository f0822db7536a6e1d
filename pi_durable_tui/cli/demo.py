"""`pidurable demo`: plays a recorded session with the real harness and real tools, also those in which the program dies.

Two processes. The parent sets up the stage (a temporary copy, with data and settings of its own: nothing of the user's is touched),
starts the player, says so when it was killed, and starts it again as a person would, with `--continue`. The player is an ordinary
pidurable on that stage. The deaths are real: SIGKILL, and a new process that finds what is on disk.
"""

from __future__ import annotations

import asyncio
import difflib
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn, TypeAlias

from msgspec.structs import replace

from pi_durable_tui.cli.chat import Opened, open_wished
from pi_durable_tui.cli.providers import PLAYBACK
from pi_durable_tui.cli.report import note
from pi_durable_tui.cli.screen.seam import seam_text
from pi_durable_tui.cli.screen.typing_hands import Keyboard, TypingHands
from pi_durable_tui.cli.setup import Setup, set_up
from pi_durable_tui.cli.signals import until_signal
from pi_durable_tui.cli.wish import Wish
from pi_durable_tui.clock import Clock, SystemClock
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.playback import child, folder, golden
from pi_durable_tui.playback.pace import PacedClock
from pi_durable_tui.playback.player import Hands, PlainHands, play
from pi_durable_tui.playback.story import Told, tell, told_so_far
from pi_durable_tui.tui.safe_text import safe_text

Say: TypeAlias = Callable[[str], None]

MOST_DEATHS = 10
SHOWN_LINES = 12
READING_MS, LEAST_READING_MS = 2_500, 1_000
"""How long a person is given to read that the app was killed; nobody reads faster in a story that is played fast."""
_RULE = "─" * 72
_DIED = "Kill"


def list_stories() -> int:
    """Print the recorded sessions, one line each."""
    stories = [folder.load(name) for name in folder.names()]
    width = max((len(story.name) for story in stories), default=0)
    for story in stories:
        _say(f"{story.name:<{width}}  {story.title}\n")
    return 0


def run_demo(name: str, *, headless: bool, speed: float, as_golden: bool, keep: str | None, debug: bool) -> int:
    """Play a story to its end and return the player's exit code.

    Args:
        name: Of the story, or a part of it.
        headless: As text on stdout, not in the app; also done where there is no terminal for the app.
        speed: How many times as fast; the commands that tools run take the time they take.
        as_golden: Print the commits instead of the story (headless).
        keep: The new folder that it is played in and that stays; None: one that goes away.
        debug: Hand `--debug` on.

    Raises:
        NotFound, ConfigError: There is no such story, or it does not follow the format. Nothing was started.
        BadRequest: The folder to keep is there already. Nothing was started.
    """
    story = folder.load(name)
    if not (headless or (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty())):
        note("There is no terminal for the app here, so the story is played as text.")
        headless = True
    stage = folder.set_up(story, None if keep is None else Path(keep).resolve())
    say: Say = _say if headless and not as_golden else _say_nothing
    flags = [flag for flag, is_set in (("--headless", headless), ("--debug", debug)) if is_set]
    try:
        say(f"{story.name}: {story.title}\n{story.shows}\n{_RULE}\n")
        code = _play_until_it_lives(
            ["demo-player", story.reference, str(stage.root), "--speed", str(speed), "--anchor-ms", str(SystemClock().now_ms()), *flags],
            stage,
            say=_say if not as_golden else _say_nothing,
            is_silent=as_golden,
            pause_ms=0 if headless else max(LEAST_READING_MS, READING_MS / speed),
        )
        if code == 0:
            say(f"{_RULE}\n{effects(folder.files_of(story.folder / 'workspace'), folder.files_of(stage.workspace))}")
        if code == 0 and as_golden:
            sys.stdout.write(golden.collapsed(folder.lines(stage.commits)))
        if keep is not None:
            note(f"Kept in {stage.root}: its files in workspace/, its session in data/.")
        return code if code >= 0 else 128 - code
    finally:
        if keep is None:
            folder.clear_away(stage)


def _play_until_it_lives(arguments: list[str], stage: folder.Stage, *, say: Say, is_silent: bool, pause_ms: float) -> int:
    """Start the player again whenever the story killed it; how it ended at last."""
    code = 0
    for _ in range(MOST_DEATHS):
        before = len(folder.lines(stage.steps))
        code = child.run_again(arguments, cwd=stage.workspace, environ=_environ(os.environ, stage), is_silent=is_silent)
        if code != -signal.SIGKILL or folder.lines(stage.steps)[before:][-1:] != [_DIED]:
            break
        say(f"\n{_RULE}\nKilled by SIGKILL: nothing was flushed, closed or handed back.\n\n$ pidurable --continue\n")
        if pause_ms:
            asyncio.run(SystemClock().sleep_ms(pause_ms))
    return code


def _environ(environ: Mapping[str, str], stage: folder.Stage) -> dict[str, str]:
    """The player's environment: the user's, with other folders. Its Python serves where a command asks for one and there is none."""
    kept = {name: value for name, value in environ.items() if name != "PIDURABLE_MODEL"}
    path = os.pathsep.join(part for part in (environ.get("PATH", ""), str(Path(sys.executable).parent)) if part)
    return {**kept, "PATH": path, "PIDURABLE_DATA_DIR": str(stage.data), "PIDURABLE_CONFIG_DIR": str(stage.config)}


def effects(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """What became of the files: new, changed and lost ones, with their lines. PURE."""
    told: list[str] = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        lines = list(difflib.unified_diff((old or "").splitlines(), (new or "").splitlines(), lineterm="", n=0))[2:]
        changed = [line for line in lines if not line.startswith("@@")]
        what = "new" if old is None else "removed" if new is None else "changed"
        told += [f"{what}: {name}", *(f"    {line}" for line in changed[:SHOWN_LINES])]
    return "".join(f"{line}\n" for line in told or ["no file was changed"])


# ------------------------------------------------------------------------------------------------------------- the player


def play_story(name: str, root: str, *, headless: bool, speed: float, anchor_ms: int) -> int:
    """What the player does: an ordinary chat on the stage, in which the story's person acts. Dies where the story says so."""
    story = folder.load(name)
    stage = folder.Stage(root=Path(root))
    clock = SystemClock() if speed == 1 else PacedClock(SystemClock(), speed=speed, anchor_ms=anchor_ms)
    setup = set_up(str(stage.workspace), os.environ, clock=clock)
    setup = replace(setup, settings=replace(setup.settings, mcp_servers={}))  # a story starts no programs of yours
    wish = Wish(resume=bool(folder.lines(stage.steps)), model=PLAYBACK + story.reference, approval=story.approve)
    if headless:
        return asyncio.run(until_signal(_play_headless(setup, wish, story, stage)))
    from pi_durable_tui.cli.terminal import run_app  # noqa: PLC0415 - the text form does not need it

    async def script(opened: Opened, app: Keyboard, screen: asyncio.AbstractEventLoop) -> None:
        record_commits(opened, stage)
        await act(opened, TypingHands(opened.harness, opened.conversation, app, screen, clock), story, stage, clock)

    return run_app(setup, wish, script=script)


async def _play_headless(setup: Setup, wish: Wish, story: folder.Story, stage: folder.Stage) -> None:
    opened = await open_wished(setup, wish)
    telling: list[asyncio.Future[None]] = []

    def forked(made: Conversation, entry_id: int) -> None:
        _say(f"\n  ⑂ a fork of the conversation, as of entry {entry_id}\n")
        telling.append(asyncio.ensure_future(_tell(made)))

    try:
        record_commits(opened, stage)
        if wish.resume:
            _say(f"{seam_text(opened.harness.recovery, None)}\n")
        telling.append(asyncio.ensure_future(_tell(opened.conversation)))
        if wish.resume:
            await opened.harness.resume()
        await act(opened, PlainHands(opened.conversation, opened.harness, forked), story, stage, setup.clock)
    finally:
        await opened.close()
        await asyncio.gather(*telling)  # the close ended them, after they had got everything


async def act(opened: Opened, hands: Hands, story: folder.Story, stage: folder.Stage, clock: Clock) -> None:
    """Take the steps that are left."""

    def note(step: folder.Step) -> None:
        folder.append_line(stage.steps, type(step).__name__)

    def die() -> NoReturn:
        sys.stdout.flush()
        child.die()

    taken = len(folder.lines(stage.steps))
    await play(story.steps, taken=taken, conversation=opened.conversation, conversations=opened.harness, hands=hands, clock=clock, note=note, die=die)


def record_commits(opened: Opened, stage: folder.Stage) -> None:
    """From now on each commit leaves its line on the stage, for golden.txt."""
    places = {str(stage.root): "<stage>"}
    if opened.harness.recovery.was_killed:
        folder.append_line(stage.commits, golden.line_of_recovery(opened.harness.recovery.interrupted))
    opened.harness.session.subscribe(lambda commit: folder.append_line(stage.commits, golden.line_of(commit, places)))


async def _tell(conversation: Conversation) -> None:
    told: Told | None = None
    async for frame in conversation.watch():
        text, told = tell(told if told is not None else told_so_far(frame.view), frame.view)
        _say(text)


def _say(text: str) -> None:
    sys.stdout.write(safe_text(text))
    sys.stdout.flush()


def _say_nothing(_text: str) -> None: ...
