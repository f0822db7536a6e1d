"""Keys from the system's keyring: those that the settings name, and nothing of them anywhere else (AG-5, SA-17)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pi_durable_tui.cli.check.machine import keys
from pi_durable_tui.cli.configuration.keyring import SERVICE, Keyring, Loaded, load_keys
from pi_durable_tui.cli.providers import default_model
from tests.support.cli_runs import Desk

KEY = "sk-" + "kept-in-the-ring"


class Ring:
    """A keyring in memory."""

    def __init__(self, **stored: str) -> None:
        self.stored = stored
        self.asked: list[tuple[str, str]] = []

    def get_password(self, service_name: str, username: str, /) -> str | None:
        self.asked.append((service_name, username))
        if username == "LOCKED":
            raise RuntimeError("The ring is locked.")
        return self.stored.get(username)


def not_asked() -> Keyring:
    raise AssertionError("nobody wanted anything of it")


@pytest.mark.rule("AG-5")
def test_the_named_keys_that_the_environment_lacks_come_from_the_keyring() -> None:
    ring = Ring(ANTHROPIC_API_KEY=f" {KEY}\n", OPENAI_API_KEY="other")
    loaded = load_keys(["ANTHROPIC_API_KEY", "OPENAI_API_KEY"], {"OPENAI_API_KEY": "set"}, lambda: ring)
    assert loaded == Loaded(keys={"ANTHROPIC_API_KEY": KEY})
    assert ring.asked == [(SERVICE, "ANTHROPIC_API_KEY")]
    assert default_model(loaded.keys) == "anthropic/claude-sonnet-5-5"


@pytest.mark.rule("AG-5", "CASE-B11")
def test_the_keyring_is_not_loaded_unless_something_of_it_is_wanted() -> None:
    assert load_keys([], {}, not_asked) == load_keys(["A_KEY"], {"A_KEY": "set"}, not_asked) == Loaded()
    assert "keyring" not in sys.modules


@pytest.mark.rule("AG-5")
@pytest.mark.parametrize(
    ("names", "ring", "problem"),
    [
        (["A_KEY"], None, "Keys are to come from the keyring, but the extra is not installed: pip install 'pidurable[keyring]'."),
        (["B_KEY"], Ring(), "The keyring has no B_KEY for the service pidurable: keyring set pidurable NAME."),
        (["LOCKED", "A_KEY"], Ring(A_KEY=KEY), "The keyring cannot be read: RuntimeError: The ring is locked."),
    ],
)
def test_a_keyring_that_gives_no_key_stops_nothing_and_says_why(names: list[str], ring: Ring | None, problem: str) -> None:
    assert load_keys(names, {}, lambda: ring) == Loaded(problem=problem)


@pytest.mark.rule("SA-17")
def test_the_doctor_says_where_a_key_is_from_and_never_the_key() -> None:
    environ = {"OPENAI_API_KEY": "set", "ANTHROPIC_API_KEY": KEY}
    told = keys(environ, Loaded(keys={"ANTHROPIC_API_KEY": KEY}))
    assert told.text == "anthropic (ANTHROPIC_API_KEY, from the keyring), openai (OPENAI_API_KEY); values are not looked at"
    assert keys({}, Loaded(problem="The keyring is locked.")).next_step == "The keyring is locked."


LIBRARY = f"""
def get_password(service_name, username):
    return {{"ANTHROPIC_API_KEY": {KEY!r}}}.get(username) if service_name == "pidurable" else None
"""


@pytest.mark.slow
@pytest.mark.rule("AG-5", "SA-17")
def test_a_key_of_the_keyring_counts_from_the_start_on_and_is_hidden_like_any_other(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "keyring.py").write_text(LIBRARY, encoding="utf-8")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "settings.json").write_text('{"keyring": ["ANTHROPIC_API_KEY"]}', encoding="utf-8")
    with_library = {"PYTHONPATH": f"{desk.environ()['PYTHONPATH']}:{tmp_path / 'library'}"}
    seen = desk.run("doctor", **with_library)
    assert "anthropic (ANTHROPIC_API_KEY, from the keyring)" in seen.stdout
    asked = desk.run("-p", "--model", "playback/01-hello", "--no-session", f"what happens if the power goes out now? {KEY}", **with_library)
    assert asked.code == 0
    shown = desk.run("-p", "--mode", "json", "--model", "playback/01-hello", f"what happens if the power goes out now? {KEY}", **with_library)
    assert (shown.code, KEY in shown.stdout + seen.stdout) == (0, False)
    without = desk.run("-p", "hi", "--model", "anthropic/claude-sonnet-5-5")
    assert (without.code, "the extra is not installed: pip install 'pidurable[keyring]'" in without.stderr) == (2, True)
