"""Reads keys of providers from the system's keyring: only those that the settings name, and only if the extra `keyring` is installed (AG-5, SA-17).

    keyring set pidurable ANTHROPIC_API_KEY        then  "keyring": ["ANTHROPIC_API_KEY"]  in the settings

A key stands there under the name of its environment variable; one in the environment wins. Nothing is ever written there. A keyring that is
locked or missing stops nothing: the key is then missing, and why is told where a key is asked for.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

SERVICE = "pidurable"
"""Under which service the keys stand in the keyring."""
_MISSING = "Keys are to come from the keyring, but the extra is not installed: pip install 'pidurable[keyring]'."


class Keyring(Protocol):
    """The part of the library `keyring` that is used."""

    def get_password(self, service_name: str, username: str, /) -> str | None:
        """The secret; None when there is none. May raise anything that a system's keyring raises."""
        ...


class Loaded(Struct, frozen=True, kw_only=True):
    """What came from the keyring: variable -> key, and why something did not come ("": all is well)."""

    keys: Mapping[str, str] = {}
    problem: str = ""


def load_keys(names: Sequence[str], environ: Mapping[str, str], keyring: Callable[[], Keyring | None] | None = None) -> Loaded:
    """The keys of these names that the environment does not have. Without names nothing is imported or asked.

    Args:
        keyring: Gives the keyring; None in its place: the library is not installed.
    """
    wanted = [name for name in names if not environ.get(name, "").strip()]
    if not wanted:
        return Loaded()
    library = (keyring or _library)()
    if library is None:
        return Loaded(problem=_MISSING)
    found: dict[str, str] = {}
    for name in wanted:
        try:
            key = library.get_password(SERVICE, name)
        except Exception as error:  # noqa: BLE001 - every system's keyring has errors of its own, and none of them may stop a start
            return Loaded(keys=found, problem=f"The keyring cannot be read: {type(error).__name__}: {error}"[:300].rstrip(".") + ".")
        if key and key.strip():
            found[name] = key.strip()
    absent = ", ".join(name for name in wanted if name not in found)
    return Loaded(keys=found, problem=f"The keyring has no {absent} for the service {SERVICE}: keyring set {SERVICE} NAME." if absent else "")


def _library() -> Keyring | None:
    if importlib.util.find_spec("keyring") is None:
        return None
    library: Keyring = importlib.import_module("keyring")  # pyright: ignore[reportAssignmentType] - a module with that function
    return library
