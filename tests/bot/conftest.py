"""Fixtures of the bot's tests: a repository, a GitHub of one's own, and the service that listens to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from bot_service import SECRET, Service
from branches import Branches
from github_server import APP_ID, GitHub, git_root, pem, serve
from serving import run_app

from api.app import create_app
from api.review_store import ReviewStore
from api.settings import Settings
from api.store import Store


@pytest.fixture
def branches(tmp_path: Path) -> Branches:
    return Branches(tmp_path / "repo")


@pytest.fixture
def github(branches: Branches) -> Iterator[GitHub]:
    with serve(GitHub(branches)) as server:
        yield server
        assert not server.problems, server.problems


@pytest.fixture
def service(github: GitHub, tmp_path: Path) -> Iterator[Service]:
    key = tmp_path / "key.pem"
    key.write_bytes(pem(github.key))
    settings = Settings(
        data_dir=tmp_path / "data",
        poll_s=0.05,
        public_url="https://wavesmith.example/",
        github_webhook_secret=SECRET,  # type: ignore[arg-type]
        github_app_id=APP_ID,
        github_private_key_file=key,
        github_api_url=github.url,
        github_git_url=git_root(github, tmp_path / "git"),
    )
    with run_app(create_app(settings)) as url:
        yield Service(url, github, settings, ReviewStore(Store(settings.database)))
