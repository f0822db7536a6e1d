"""Where a command works and with what: known before anything heavy is loaded, so that the app can paint first (speed.md)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pi_durable_tui.cli import paths
from pi_durable_tui.cli.configuration.keyring import Loaded, load_keys
from pi_durable_tui.cli.settings import UserSettings, load
from pi_durable_tui.clock import Clock, SystemClock
from pi_durable_tui.entropy import Entropy, SystemEntropy


class Setup(Struct, frozen=True, kw_only=True):
    """Where a command works and with what.

    Attributes:
        environ: The user's environment as the program started, with the keys that came from the keyring.
        keyring: What came from there.
    """

    place: paths.Place
    settings: UserSettings
    environ: Mapping[str, str]
    clock: Clock
    entropy: Entropy
    keyring: Loaded = Loaded()


def set_up(cwd: str | None, environ: Mapping[str, str], *, clock: Clock | None = None) -> Setup:
    """The setup for a working directory (None: the current one). Writes nothing.

    Raises:
        BadRequest: The directory cannot be used.
        ConfigError: An environment variable or the settings file is wrong.
    """
    roots = paths.folders(environ)
    place, settings = paths.place(cwd, roots.data), load(roots.config, environ)
    loaded = load_keys(settings.keyring, environ)
    return Setup(
        place=place,
        settings=settings,
        environ={**environ, **loaded.keys},
        clock=clock or SystemClock(),
        entropy=SystemEntropy(),
        keyring=loaded,
    )
