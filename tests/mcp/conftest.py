from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.mcp_rig import McpRig


@pytest.fixture
def desk(tmp_path: Path) -> McpRig:
    return McpRig(tmp_path)
