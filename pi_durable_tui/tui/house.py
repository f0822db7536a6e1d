"""What the app needs of the program around it: the house it lives in. Called on the harness's loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from pi_durable_tui.harness.chats import Branch
    from pi_durable_tui.harness.live import Agent
    from pi_durable_tui.tui.bridge import Opened

Source: TypeAlias = Literal["default", "your file", "project file", "environment", "option", "this chat"]
"""Who says what a setting is; a later one wins over those before it."""

ExportForm: TypeAlias = Literal["html", "markdown", "jsonl"]


class Setting(Struct, frozen=True, kw_only=True):
    """One setting as it stands.

    Attributes:
        key: Its name in the file.
        value: What it is, as people read it; foreign text is allowed.
        choices: What it may be; () for a text or a number.
        allowed: What it may be, in words.
        is_own: The user's file says it.
        is_edited_here: False: an object, which is written in the file.
        when: From when on a change counts.
    """

    key: str
    help: str
    value: str
    source: Source
    choices: tuple[str, ...]
    allowed: str
    is_own: bool
    is_edited_here: bool
    when: Literal["now", "new sessions", "next start"]


class Changed(Struct, frozen=True, kw_only=True):
    """A setting after it was changed: what new chats get, and who else says so though the file says otherwise; "": nobody."""

    value: str | None
    overruled_by: str


class SettingsPort(Protocol):
    """The user's settings."""

    @property
    def file(self) -> str:
        """Where they are stored."""
        ...

    async def all(self, agent: Agent | None) -> tuple[Setting, ...]:
        """All of them, in the order in which people see them. `agent`: of the chat that is shown; None: of none.

        Raises:
            ConfigError: The file is wrong as it stands.
        """
        ...

    async def change(self, key: str, typed: str | None) -> Changed:
        """Store a value that a person typed, and use it from now on; None takes it out of the file.

        Raises:
            ConfigError: It is not allowed, or the file is no JSON object. Nothing was changed.
            EnvironmentFailure: It could not be stored. Nothing was changed.
        """
        ...


class KnownModel(Struct, frozen=True, kw_only=True):
    """A model that can be asked. Prices are US dollars for a million tokens; None: unknown."""

    name: str
    window_tokens: int | None = None
    input_usd: float | None = None
    output_usd: float | None = None


class ModelsPort(Protocol):
    """The models that can be asked here."""

    async def known(self) -> tuple[KnownModel, ...]:
        """Those of providers whose keys are there, of servers on this machine, and of the settings; by name. Loads what is known of them."""
        ...


class ExportPort(Protocol):
    """Writes chats into files."""

    async def write(self, conversation_id: int, form: ExportForm, path: str | None) -> str:
        """Write the chat and return where. `path`: relative to the working directory; None: a name is made after the chat.

        Raises:
            BadRequest: There is a file already. Nothing was written.
            EnvironmentFailure: It cannot be written. Nothing is left of it.
        """
        ...


class OtherSession(Struct, frozen=True, kw_only=True):
    """A session of the directory beside the open one, as it is stored. `holder`: who holds it, in words; "": nobody else."""

    number: int
    holder: str
    branches: tuple[Branch, ...]


class Others(Struct, frozen=True, kw_only=True):
    """Them all, and one line for each that cannot be read."""

    sessions: tuple[OtherSession, ...]
    remarks: tuple[str, ...]


class SessionsPort(Protocol):
    """The sessions of the directory beside the one that is open."""

    async def others(self) -> Others:
        """What is stored in them; only reads."""
        ...

    async def enter(self, session: int, conversation_id: int) -> Opened:
        """Open a chat of another one, which goes on until the app ends; of one that was opened before: what is open.

        Raises:
            StoreLocked: Another process has it now. Nothing was changed.
        """
        ...

    def watch(self, name: str) -> None:
        """Let another program watch a chat, in this terminal, until it is left; called while the terminal is not the app's."""
        ...


class HousePort(Protocol):
    """All of it."""

    @property
    def rings(self) -> bool:
        """Whether the terminal may ring when somebody is wanted."""
        ...

    @property
    def settings(self) -> SettingsPort: ...

    @property
    def models(self) -> ModelsPort: ...

    @property
    def export(self) -> ExportPort: ...

    @property
    def sessions(self) -> SessionsPort: ...
