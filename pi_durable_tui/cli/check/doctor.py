"""`pidurable doctor`: looks at everything that work depends on, and says what to do where something is wrong.

It changes nothing. With `--prove` it also tries: the disk with a session and a file of its own, the sandbox, and the program with real kills in
a temporary folder; then it says which guarantee holds here.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pi_durable_tui.cli.check import machine, proof, sandbox, servers, stores
from pi_durable_tui.cli.check.findings import Finding, as_text, as_values
from pi_durable_tui.cli.check.selftest import measured
from pi_durable_tui.cli.paths import check, folders, moved_from
from pi_durable_tui.cli.screen.keys import NAME as KEYS
from pi_durable_tui.cli.screen.keys import read_keymap
from pi_durable_tui.cli.settings import NAME
from pi_durable_tui.cli.setup import Setup, set_up
from pi_durable_tui.errors import ConfigError, PidurableError
from pi_durable_tui.selftest.ring import Told
from pi_durable_tui.storage.files import RealFiles
from pi_durable_tui.tui.safe_text import safe_json

PROVING_KILLS = 20
WRONG = 1
_NEEDED_FOR_POWER = ("SQLite", "file system", proof.STORE, "fsync", proof.DRIVE)


def run_doctor(*, prove: bool, cwd: str | None, as_json: bool) -> int:
    """Print what was found; 0 when nothing is wrong, else 1.

    Args:
        prove: Measure too; takes some seconds.

    Raises:
        BadRequest: The directory cannot be used.
    """
    findings = machine.versions()
    try:
        setup = set_up(cwd, os.environ)
        findings += _with(setup)
        if prove:
            findings += _proved(setup, findings)
    except ConfigError as error:
        findings.append(Finding(name="settings", state="bad", text=error.message, next_step=error.hint))
    print(safe_json(msgspec.json.encode(as_values(findings))) if as_json else as_text(findings))
    return WRONG if any(finding.state == "bad" for finding in findings) else 0


def _with(setup: Setup) -> list[Finding]:
    roots, files = folders(setup.environ), RealFiles()
    found = [
        Finding(name="settings", state="good", text=str(roots.config / NAME) + ("" if (roots.config / NAME).exists() else ", not there: the defaults hold")),
        *key_bindings(roots.config),
        stores.privacy(roots.data),
        *machine.disk(setup.place.folder, files),
        machine.this_terminal(setup.environ),
        machine.keys(setup.environ, setup.keyring),
        machine.shells(),
        *servers.servers(setup.settings.mcp_servers, setup.environ, setup.place.directory),
        sandbox.wanted(setup.settings.sandbox, is_there=machine.has_program("bwrap", setup.environ, setup.place.directory)),
    ]
    try:
        check(setup.place)
        found += asyncio.run(stores.sessions(setup))
    except PidurableError as error:
        found.append(Finding(name="sessions", state="bad", text=error.message, next_step=error.hint))
    return [*found, *(moved(str(was), str(setup.place.directory)) for was in moved_from(setup.place))]


def key_bindings(config: Path) -> list[Finding]:
    """What is wrong with the person's own keys; nothing without any."""
    first, *others = read_keymap(config).remarks or ("",)
    if not first:
        return [Finding(name="key bindings", state="good", text=str(config / KEYS))] if (config / KEYS).exists() else []
    text = first + (f" And {len(others)} more." if others else "")
    return [Finding(name="key bindings", state="note", text=text, next_step="Correct the file; /hotkeys in the app shows every key.")]


def moved(was: str, now: str) -> Finding:
    """PURE."""
    text = f"{was} had sessions and is gone; this directory has the same name"
    return Finding(name="moved", state="note", text=text, next_step=f"If it became {now}: rename its folder in the data folder, as README says.")


def _proved(setup: Setup, findings: Sequence[Finding]) -> list[Finding]:
    """What trying says, in this order, and the guarantee that follows from all of it."""
    told, seed = measured(PROVING_KILLS, seed=None)
    tried = [*_disk(setup), _sandbox(setup), kills(told, seed)]
    return [*tried, guarantee([*findings, *tried], told)]


def _disk(setup: Setup) -> list[Finding]:
    """A session, a flush and the drive of the data folder."""
    files, folder = RealFiles(), folders(setup.environ).data
    try:
        files.create_folder(folder)
        return [
            proof.store(folder, files, setup.clock, setup.entropy),
            machine.sync(machine.sync_times_ms(folder, files, setup.clock, setup.entropy)),
            proof.drive(folder, files, setup.environ),
        ]
    except OSError as error:
        return [
            Finding(name="fsync", state="bad", text=f"the data folder cannot be written: {error.strerror or error}", next_step="Make room or rights there.")
        ]


def _sandbox(setup: Setup) -> Finding:
    try:
        return sandbox.proved(setup.settings.sandbox, sandbox.tried(setup.place.directory, setup.environ, setup.clock))
    except OSError as error:
        return Finding(
            name=sandbox.TRIED, state="bad", text=f"it cannot be tried, no temporary folder can be made: {error}", next_step="Make room, or set TMPDIR."
        )


def kills(told: Told, seed: int) -> Finding:
    """PURE."""
    done = sum(told.kills.values())
    text = f"{done} kills in {told.runs} runs, {told.commits} acknowledged commits looked for, {told.effects} commands run"
    if not told.faults:
        return Finding(name="kills", state="good", text=f"{text}: nothing lost, nothing done twice")
    return Finding(name="kills", state="bad", text=f"{text}: {told.faults[0]}", next_step=f"Please report it, with {told.kept} and seed {seed}.")


def guarantee(findings: Sequence[Finding], told: Told) -> Finding:
    """What can be promised on this machine. PURE."""
    if told.faults:
        return Finding(name="guarantee", state="bad", text="none: a promise was broken above")
    weak = [finding.name for finding in findings if finding.name in _NEEDED_FOR_POWER and finding.state != "good"]
    if weak:
        text = f"process: what was acknowledged survives kill -9; a power cut may take the newest of it, because of {', '.join(weak)}"
        return Finding(name="guarantee", state="note", text=text)
    text = "power: what was acknowledged survives kill -9, and a power cut as far as the drive keeps its word"
    return Finding(name="guarantee", state="good", text=text)
