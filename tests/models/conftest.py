"""What tests of models share: a local server that speaks both wire formats, and retries that do not wait."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from provider import Provider, provider

from agent import retry


@pytest.fixture
def server() -> Iterator[Provider]:
    with provider() as running:
        yield running


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_FIRST_S", 0.01)
