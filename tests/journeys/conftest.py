from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.journey_desk import Journey, journey
from tests.support.model_server import Step
from tests.support.screen_forks import ScreenForks, screen_forks

Begin = Callable[..., Journey]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Begins a journey with what the model will say."""
    with contextlib.ExitStack() as stack:

        def start(*script: Sequence[Step]) -> Journey:
            return stack.enter_context(journey(tmp_path, *script))

        yield start


@pytest.fixture(scope="session")
def forks() -> Iterator[ScreenForks]:
    """Apps that start at once."""
    with screen_forks(dict(os.environ)) as parent:
        yield parent
