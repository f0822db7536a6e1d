"""What holds for every test: no network, no personal settings, a seed that is always told."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

LOOPBACK_NAMES = frozenset({"", "localhost", "::1", "0.0.0.0", "::"})  # noqa: S104 - names to compare with, nothing listens here


def is_local(address: object) -> bool:
    """True for a Unix socket's path and for loopback addresses and names."""
    if isinstance(address, tuple):
        address = address[0]
    if address is None or isinstance(address, bytes):
        return True
    if not isinstance(address, str):
        return False
    return address in LOOPBACK_NAMES or address.startswith(("127.", "/", "\0"))


def _refuse_network(event: str, arguments: tuple[object, ...]) -> None:
    """Let nothing of this process leave the machine; an audit hook, because no code can go around one."""
    match event:
        case "socket.connect" | "socket.sendto" | "socket.sendmsg":
            target = arguments[1]
        case "socket.getaddrinfo" | "socket.gethostbyname":
            target = arguments[0]
        case _:
            return
    if not is_local(target):
        raise RuntimeError(f"tests run without a network: {event} to {target!r}")


sys.addaudithook(_refuse_network)

# dev: while typing. ci: the same examples in every run. deep: for a night. rules: the same few, where a trace makes each slow.
settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=500, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("rules", max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deep", max_examples=20_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how the run can be had again, also where the header was not printed, and what tests tell in numbers (property "told")."""
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for name, value in getattr(report, "user_properties", ()) if report.when == "call" else ():
            if name == "told":
                terminalreporter.write_line(str(value))
    seed = getattr(config.option, "randomly_seed", None)
    terminalreporter.write_line(f"seed: --randomly-seed={seed}, hypothesis profile: {settings.get_current_profile_name()}")


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of this run, for tests that draw moments or orders; printed at the end of the run."""
    return int(str(request.config.getoption("randomly_seed")))


@pytest.fixture(autouse=True)
def private_home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty home, no settings and no keys of whoever runs the tests, in this process and in the ones it starts."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(("PIDURABLE_", "XDG_")) or name.endswith(("_API_KEY", "_API_BASE", "_BASE_URL")) or name in {"NO_COLOR", "FORCE_COLOR"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    return home
