"""The compose file: checked by docker itself where it has compose, and by its own rules everywhere."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILES = ["docker-compose.yml", "docker-compose.sandbox.yml"]


def load(name: str) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((ROOT / name).read_text())
    return data


def has_compose() -> bool:
    try:
        return subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not has_compose(), reason="docker has no compose here")
def test_docker_accepts_the_files() -> None:
    for files in (FILES[:1], FILES):
        words = ["docker", "compose", *[w for f in files for w in ("-f", f)], "config", "--quiet"]
        done = subprocess.run(
            words, cwd=ROOT, env={**os.environ, "WAVESMITH_TOKEN": "0123456789abcdef"}, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_api_and_worker_share_the_one_volume() -> None:
    compose = load(FILES[0])
    assert set(compose["services"]) == {"api", "worker"} and list(compose["volumes"]) == ["data"]
    for service in compose["services"].values():
        assert service["volumes"] == ["data:/data"]
        assert service["read_only"] and service["cap_drop"] == ["ALL"] and service["user"] != "0"
        assert "privileged" not in service and "docker.sock" not in str(service)


def test_the_worker_has_no_network_and_no_token_and_the_api_only_loopback() -> None:
    services = load(FILES[0])["services"]
    assert services["worker"]["network_mode"] == "none"
    assert "WAVESMITH_TOKEN" not in services["worker"]["environment"]
    assert services["api"]["environment"]["WAVESMITH_TOKEN"].startswith("${WAVESMITH_TOKEN:?")
    assert services["api"]["ports"] == ["127.0.0.1:8080:8080"]


def test_the_relaxed_options_concern_the_worker_only() -> None:
    assert set(load(FILES[1])["services"]) == {"worker"}


def test_every_copied_path_exists() -> None:
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY "):
            assert all((ROOT / p).exists() for p in line.split()[1:-1]), line
