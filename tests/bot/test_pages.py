"""The dashboard's pages of pull requests and ports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from seeding import seed_port, seed_pulls
from serving import get, run_app

from api.app import create_app
from api.dashboard_pulls import fixed_diagnostics
from api.settings import Settings
from api.store import Store


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path)


@pytest.fixture
def url(settings: Settings) -> Iterator[str]:
    with run_app(create_app(settings)) as address:
        yield address


def test_empty_pages_teach(url: str) -> None:
    assert "The GitHub bot is not set up" in get(f"{url}/pulls").text
    assert "kind=port" in get(f"{url}/ports").text


def test_reviews_are_listed_filtered_and_shown_without_markup_of_others(url: str, settings: Settings) -> None:
    pages = seed_pulls(Store(settings.database))
    listed = get(url + pages[0]).text
    assert "octo/other#8" in listed and "/wavesmith ignore &lt;b&gt;" in listed and "no write access" in listed
    assert "octo/other#8" not in get(url + pages[1]).text
    shown = get(url + pages[2])
    assert shown.status_code == 200 and "<script>alert" not in shown.text and shown.text.count("<script") == 1
    for words in ("compiled, not executed", "(there before)", "(silenced)", "Not looked at", "&lt;script&gt;alert(1)"):
        assert words in shown.text, words
    assert get(url + pages[3]).status_code == 404


def test_a_port_shows_rounds_diagnostics_and_contracts(url: str, settings: Settings) -> None:
    pages = seed_port(settings, Store(settings.database))
    assert "csrc/add.cu" in get(url + pages[0]).text
    shown = get(url + pages[1])
    assert shown.status_code == 200 and "Round 0" in shown.text and "Shims and their contracts" in shown.text
    assert "add" in shown.text and "compiled" in shown.text
    assert get(url + pages[2]).status_code == 404


def test_fixed_is_what_no_later_round_complains_about() -> None:
    rounds = [{"number": 1, "keys": ["a | x | ", "b |  | h"]}, {"number": 2, "keys": ["b |  | h"]}]
    assert fixed_diagnostics({"rounds": rounds}) == [{"key": "a x", "round": 1}]
    assert fixed_diagnostics({"rounds": []}) == []
