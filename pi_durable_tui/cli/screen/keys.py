"""Reads the person's `keybindings.json` in the config folder. A file that cannot be used costs nobody their keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pi_durable_tui.cli.paths import read_text
from pi_durable_tui.errors import ConfigError

if TYPE_CHECKING:
    from pi_durable_tui.tui.keys.bindings import Keymap

LIMIT_BYTES = 100_000
NAME = "keybindings.json"


def read_keymap(config: Path) -> Keymap:
    """The keys as the file says, with remarks for what is wrong with it; without a file the usual ones."""
    from pi_durable_tui.tui.keys.bindings import Keymap, keymap  # noqa: PLC0415 - with the app

    where = str(config / NAME)
    try:
        text = read_text(config / NAME, limit_bytes=LIMIT_BYTES)
    except ConfigError as error:
        usual = keymap(None, where)
        return Keymap(keys=usual.keys, where=where, remarks=(f"The keys are the usual ones. {error.message.removesuffix(' Nothing was started.')}",))
    return keymap(text, where)
