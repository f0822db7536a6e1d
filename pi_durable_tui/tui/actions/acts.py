"""What the slash commands do that stay in the chat they are typed in. Each method is a command of `commands.COMMANDS`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from pi_durable_tui.harness.live import UsageTotals
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.messages import AssistantMessage, Usage
from pi_durable_tui.tui.actions.changes import Changes
from pi_durable_tui.tui.actions.permissions import PermissionList
from pi_durable_tui.tui.commands import APPROVAL_MODES, THINKING_LEVELS
from pi_durable_tui.tui.configuring.settings import SettingsList
from pi_durable_tui.tui.palette import THEMES, ThemeName
from pi_durable_tui.tui.rewinding.files import Files
from pi_durable_tui.tui.rewinding.rewind import Rewinding
from pi_durable_tui.tui.rows import Notice
from pi_durable_tui.tui.screens.sheet import Part, SheetScreen, help_parts, key_parts
from pi_durable_tui.tui.status import count_text, money_text

if TYPE_CHECKING:
    from pi_durable_tui.harness.observation.overview import CompactionPlan, ContextUse, SessionFacts
    from pi_durable_tui.tui.app import PidurableApp


def commands_of(app: PidurableApp) -> dict[str, Callable[[str], None]]:
    """Every command by its name."""
    acts, changes, files, moves, project = Acts(app), Changes(app), Files(app), app.deeds.moves, app.deeds.project
    return {
        "help": acts.help,
        "hotkeys": acts.hotkeys,
        "model": acts.model,
        "thinking": acts.thinking,
        "approve": acts.approve,
        "permissions": PermissionList(app).show,
        "undo": files.undo,
        "redo": files.redo,
        "rewind": Rewinding(app, moves, files).rewind,
        "compact": acts.compact,
        "context": acts.context,
        "session": acts.session,
        "name": acts.name,
        "links": app.deeds.links.list,
        "copy": acts.copy,
        "diff": changes.diff,
        "export": changes.export,
        "theme": acts.theme,
        "settings": SettingsList(app).show,
        "tasks": acts.tasks,
        "quit": acts.quit,
        "mcp": app.deeds.extensions.mcp,
        "trust": project.trust,
        "reload": project.reload,
        "new": moves.new,
        "resume": app.deeds.directory.resume,
        "fork": moves.fork,
        "tree": app.deeds.directory.tree,
        "agents": moves.agents,
    }


class Acts:
    """See the module."""

    def __init__(self, app: PidurableApp) -> None:
        self._app = app

    def help(self, _argument: str) -> None:
        """Show keys and commands."""
        self._app.push_screen(SheetScreen(self._app.palette, "Help", help_parts(self._app.keymap)))

    def hotkeys(self, _argument: str) -> None:
        """Show the keys as they are bound now."""
        keymap = self._app.keymap
        told = Part(heading="What is wrong with it", lines=tuple(("!", remark) for remark in keymap.remarks))
        way = Part(heading=f"{keymap.where} changes them by the names behind the dots; /reload takes it over.", lines=())
        self._app.push_screen(SheetScreen(self._app.palette, "Keys", (way, *((told,) if told.lines else ()), *key_parts(keymap, named=True))))

    def model(self, argument: str) -> None:
        """Change the model, to the one that is named or chosen."""
        bridge = self._app.bridge
        if argument and bridge is not None:
            bridge.set_agent(model=argument)
        else:
            self._app.deeds.models.choose()

    def copy(self, _argument: str) -> None:
        """Put the last answer into the clipboard, as the model wrote it."""
        entries = self._app.view.entries if self._app.view is not None else ()
        answers = (stored.entry.message for stored in reversed(entries) if isinstance(stored.entry.message, AssistantMessage))
        text = next((answer.text for answer in answers if answer.text.strip()), "")
        if text:
            self._app.copy_to_clipboard(text)
            self._app.tell("info", f"Copied the last answer, {len(text):,} characters.")
        else:
            self._app.tell("info", "There is no answer to copy yet.")

    def thinking(self, argument: str) -> None:
        """Show or change the thinking level."""
        view, bridge = self._app.view, self._app.bridge
        if argument in THINKING_LEVELS and bridge is not None:
            bridge.set_agent(thinking=argument)
        elif view is not None:
            self._app.tell("info", f"Thinking is {view.agent.thinking}. /thinking takes {', '.join(THINKING_LEVELS)}.")

    def approve(self, argument: str) -> None:
        """Show or change the approval mode."""
        view, bridge = self._app.view, self._app.bridge
        if argument in APPROVAL_MODES and bridge is not None:
            bridge.set_agent(approval=argument)
        elif view is not None:
            self._app.tell("info", f"Approval is {view.agent.approval}. /approve takes {', '.join(APPROVAL_MODES)}.")

    def name(self, argument: str) -> None:
        """Show or change the chat's name."""
        view, bridge = self._app.view, self._app.bridge
        if argument and bridge is not None:
            bridge.set_agent(title=argument)
            self._app.tell("good", f"This chat is now called {argument}.")
        elif view is not None:
            self._app.tell("info", f"This chat is called {view.agent.title or 'after its first message'}. /name TITLE changes it.")

    def theme(self, argument: str) -> None:
        """Show or change the colours."""
        if argument in THEMES:
            self._app.run_worker(self._theme(argument))
        else:
            self._app.tell("info", f"The theme is {self._app.palette.name.removeprefix('pidurable-')}. /theme takes {', '.join(THEMES)}.")

    async def _theme(self, theme: ThemeName) -> None:
        """Now, and from the next start on."""
        bridge = self._app.bridge
        house = bridge.house if bridge is not None else None
        if bridge is None or house is None or await bridge.ask(lambda _harness: house.settings.change("theme", theme)) is not None:
            self._app.wear(theme)

    def tasks(self, _argument: str) -> None:
        """Show or hide the task graph."""
        self._app.action_tasks()

    def quit(self, _argument: str) -> None:
        """Leave, once what was sent and typed is stored."""
        self._app.run_worker(self._app.leave(self._app.problem.exit_code if self._app.problem is not None else 0))

    def compact(self, argument: str) -> None:
        """Say what a summary would do, and begin it."""
        self._app.run_worker(self._compact(argument))

    async def _compact(self, focus: str) -> None:
        bridge, view = self._app.bridge, self._app.view
        if bridge is None or view is None:
            return
        if view.live.compactions:
            self._app.tell("info", "A summary is being made already. It can be stopped when nothing else runs.")
            return
        shown = bridge.conversation_id
        found = await bridge.ask(lambda harness: _planned(harness.overview.compaction(shown)))
        if found is None:
            return
        plan = found[0]
        if plan is None:
            self._app.tell("info", "Nothing to compact: there is nothing old enough to summarize.")
        elif await bridge.compact(focus):
            self._app.chat.say(Notice(tone="info", text=plan_text(plan), passing=True))

    def context(self, _argument: str) -> None:
        """Show what fills the model's context."""
        self._app.run_worker(self._context())

    async def _context(self) -> None:
        bridge = self._app.bridge
        if bridge is None:
            return
        shown = bridge.conversation_id
        use = await bridge.ask(lambda harness: harness.overview.context(shown))
        if use is not None:
            self._app.push_screen(SheetScreen(self._app.palette, "Context", context_parts(use)))

    def session(self, _argument: str) -> None:
        """Show where the session is stored and what it used."""
        self._app.run_worker(self._session())

    async def _session(self) -> None:
        bridge, view = self._app.bridge, self._app.view
        if bridge is None or view is None:
            return
        facts = await bridge.ask(lambda harness: harness.overview.facts())
        total = await bridge.ask(lambda harness: harness.usage())
        if facts is not None and total is not None:
            self._app.push_screen(SheetScreen(self._app.palette, "Session", session_parts(view, facts, total)))


async def _planned(work: Awaitable[CompactionPlan | None]) -> tuple[CompactionPlan | None]:
    """The plan in a tuple, so that "nothing to compact" is not taken for a problem."""
    return (await work,)


def plan_text(plan: CompactionPlan) -> str:
    """What a summary does, for the person who asked for it (rule TU-17)."""
    cut = f" {plan.shortened} long result{'s are' if plan.shortened > 1 else ' is'} shortened." if plan.shortened else ""
    kept = f"the newest {_entries(plan.kept_entries)} stay" if plan.kept_entries != 1 else "the newest entry stays"
    return (
        f"Summarizing {_entries(plan.summarized_entries)} ({count_text(plan.summarized_tokens)} tokens); "
        f"{kept} as before ({count_text(plan.kept_tokens)} tokens).{cut} "
        "All of it stays stored and visible; work goes on meanwhile."
    )


def context_parts(use: ContextUse) -> tuple[Part, ...]:
    """What fills the context, with a bar for each part."""
    window = use.window_tokens
    estimated = use.system_tokens + use.tool_tokens + use.summary_tokens + use.message_tokens
    total = max(use.total_tokens, estimated)
    whole = window or max(total, 1)
    named = [
        ("instructions", use.system_tokens),
        ("tools", use.tool_tokens),
        ("summary", use.summary_tokens),
        ("messages", use.message_tokens),
        ("counted by the provider on top", total - estimated),
    ]
    lines = [_bar(name, tokens, whole) for name, tokens in named if tokens or name == "messages"]
    if window is not None:
        lines.append(_bar("free", max(0, window - total), whole))
    of = f"{count_text(total)} of {count_text(window)} tokens ({total * 100 // window}%)" if window else f"{count_text(total)} tokens; the window is unknown"
    return (Part(heading=of, lines=tuple(lines)), Part(heading="Parts are estimates of four characters to a token.", lines=()))


def session_parts(view: ConversationView, facts: SessionFacts, total: UsageTotals) -> tuple[Part, ...]:
    """A session and the chat that is shown."""
    chat = [
        ("id", str(view.conversation.id)),
        ("name", view.agent.title or "after its first message"),
        ("entries", f"{len(view.entries)}{' and older ones' if view.has_older else ''}"),
        ("id told to providers", view.provider.session_id or "none yet"),
        *_usage_lines(view.usage),
    ]
    if view.conversation.parent is not None:
        chat.insert(2, ("forked from", f"chat {view.conversation.parent.conversation_id} at entry {view.conversation.parent.entry_id}"))
    session = [
        ("stored in", facts.store),
        ("commits", f"{facts.commits:,}"),
        ("chats", f"{facts.chats}, of them {facts.forks} fork{'' if facts.forks == 1 else 's'}"),
        ("subagents", str(facts.subagents)),
        *_usage_lines(total),
    ]
    return (Part(heading="This chat", lines=tuple(chat)), Part(heading="The session", lines=tuple(session)))


def _usage_lines(totals: UsageTotals) -> list[tuple[str, str]]:
    lines = [(f"used by {name}", _usage_text(used)) for name, used in totals.models.items()]
    lines += [(f"used by tool {name}", _usage_text(used)) for name, used in totals.tools.items()]
    return lines or [("used", "nothing yet")]


def _usage_text(used: Usage) -> str:
    cached = f" ({count_text(used.cache_read_tokens)} cached)" if used.cache_read_tokens else ""
    cost = money_text(used.cost_usd) if used.cost_usd is not None else "price unknown"
    return f"{count_text(used.input_tokens)} in{cached}, {count_text(used.output_tokens)} out, {cost}"


def _bar(name: str, tokens: int, whole: int) -> tuple[str, str]:
    filled = min(24, -(-tokens * 24 // whole)) if tokens else 0
    sign = "░" if name == "free" else "█"
    return name, f"{sign * filled}{' ' * (24 - filled)}  {count_text(tokens):>7}  {tokens * 100 / whole:4.1f}%"


def _entries(number: int) -> str:
    return f"{number} {'entry' if number == 1 else 'entries'}"
