from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.journey_desk import Journey, journey
from tests.support.model_server import Step

Begin = Callable[..., Journey]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Begins a journey with what the model will say."""
    with contextlib.ExitStack() as stack:

        def start(*script: Sequence[Step]) -> Journey:
            return stack.enter_context(journey(tmp_path, *script))

        yield start
