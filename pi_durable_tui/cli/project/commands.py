"""The slash commands of extensions: which can be used, and how one is run (rule AG-3).

They run on the harness's loop, beside the work. What a command has handed in is stored, whatever becomes of the command afterwards.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from pi_durable_tui.context.commands import NAME
from pi_durable_tui.errors import EnvironmentFailure, PidurableError
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.extensions.registry import Command, CommandContext, Extension
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.records.document import Definition
from pi_durable_tui.records.json import JsonObject, clean_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionCommands:
    """The commands by name, and one line for each that cannot be used."""

    by_name: dict[str, Command] = field(default_factory=dict[str, Command])
    warnings: tuple[str, ...] = ()

    def typed(self, text: str) -> tuple[Command, str] | None:
        """The command that a line names, and what follows it; None when it names none."""
        line = text.strip()
        if not line.startswith("/") or "\n" in line:
            return None
        name, _, argument = line[1:].partition(" ")
        command = self.by_name.get(name)
        return None if command is None else (command, argument.strip())


def commands_of(extensions: Iterable[Extension], built_in: Iterable[str]) -> ExtensionCommands:
    """The commands of extensions. A name that is taken stays with whoever had it first, the program before all. PURE."""
    taken = dict.fromkeys(built_in, "the program")
    found: dict[str, Command] = {}
    warnings: list[str] = []
    for extension in extensions:
        for command in extension.commands:
            if not NAME.fullmatch(command.name):
                warnings.append(f"A command of the extension {extension.name} is not used: {command.name[:40]!r} is not made of letters, digits and dashes.")
            elif command.name in taken:
                warnings.append(f"The command /{command.name} of the extension {extension.name} is not used: {taken[command.name]} has one of that name.")
            else:
                taken[command.name] = f"the extension {extension.name}"
                found[command.name] = command
    return ExtensionCommands(by_name=found, warnings=tuple(warnings))


async def run(
    command: Command, argument: str, *, harness: Harness, conversation: Conversation, say: Callable[[str], None], submit: Callable[[str], Awaitable[None]]
) -> None:
    """Run a command to its end.

    Raises:
        EnvironmentFailure: It failed; says how. What it had handed in before is stored.
    """

    async def document(definition: Definition) -> JsonObject:
        return await harness.session.snapshot(definition, conversation.id) or definition.initial()

    async def start_task(kind: str, task_input: JsonObject, checkpoint: JsonObject) -> int:
        return await harness.start_task(conversation.id, kind, task_input, checkpoint, background=True)

    context = CommandContext(
        conversation_id=conversation.id,
        directory=(await conversation.agent()).cwd,
        say=lambda text: say(clean_text(text)),
        submit=lambda text: submit(clean_text(text)),
        entries=conversation.entries,
        document=document,
        start_task=start_task,
    )
    try:
        await command.run(argument, context)
    except PidurableError:
        raise
    except Exception as error:
        reason = clean_text(" ".join(f"{type(error).__name__}: {error}".split())[:500])
        raise EnvironmentFailure(f"The command /{command.name} failed: {reason}.", hint="Mend the extension, and /reload.") from error
