from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.context_folders import Folders, new_folders


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return new_folders(tmp_path)
