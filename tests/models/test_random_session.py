"""A long session against providers that refuse what real ones refuse, with kills in it: nothing that happened may make a request they refuse."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.random_session import RandomSession

TURNS = int(os.environ.get("PIDURABLE_TEST_TURNS", "500"))
SEED = int(os.environ.get("PIDURABLE_TEST_SEED", "0")) or None

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("library"),
    pytest.mark.timeout(60 + TURNS),
    # Said by the library about itself; the program silences them when it loads it, pytest turns them on again for each test.
    pytest.mark.filterwarnings("ignore::UserWarning:pydantic"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    # A killed life leaves things behind that nobody awaits any more.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.rule("CX-1", "AG-5", "GE-3", "GE-6", "CASE-A1", "CASE-B1", "CASE-B2", "CASE-B6", "CASE-B7", "CASE-B9", "CASE-F1")
async def test_no_request_of_a_long_random_session_with_kills_is_ever_refused(tmp_path: Path) -> None:
    seed = SEED if SEED is not None else 20_261_130
    session = RandomSession(tmp_path / "s", seed=seed)
    await session.run(TURNS)

    refused = [(received.n, received.path, received.refusal) for received in session.server.refused]
    assert refused == [], session.told()
    assert min(session.happened[act] for act in ("act: kill", "act: kill at a commit", "act: fork", "act: abort")) > 0, session.told()
