"""Fixtures of the bot's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from branches import Branches


@pytest.fixture
def branches(tmp_path: Path) -> Branches:
    return Branches(tmp_path / "repo")
