"""`wavesmith emulate`: schedules, and results that depend on them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.emulate import parse_schedules
from api.cli import _run
from sandbox.errors import InputError

RACE = """
import torch
import triton
import triton.language as tl


@triton.jit
def last(y, BLOCK: tl.constexpr):
    tl.store(y + tl.arange(0, BLOCK) * 0, tl.program_id(0))


def run(x):
    y = torch.zeros(1, device=x.device, dtype=torch.int32)
    last[(7,)](y, BLOCK=64)
    return y


if __name__ == "__main__":
    run(torch.zeros(3, device="cuda"))
"""


def test_schedules_are_parsed() -> None:
    assert parse_schedules("all") == ("lockstep", "sequential", "reverse", "random:0")
    assert parse_schedules("reverse") == ("reverse",)
    assert parse_schedules("random") == ("random:0",) and parse_schedules("random:7") == ("random:7",)
    for text in ("sideways", "reverse:1", "random:x", "random:", ""):
        with pytest.raises(InputError, match="is no schedule"):
            parse_schedules(text)


def test_results_that_depend_on_the_order_of_waves_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "race.py"
    file.write_text(RACE)
    assert _run(["emulate", str(file), "--target", "gfx950", "--schedule", "all", "--json"]) == 4
    found = json.loads(capsys.readouterr().out)
    assert [row["schedule"] for row in found["launches"]] == ["lockstep", "sequential", "reverse", "random:0"]
    assert all(row["executed"] for row in found["launches"]) and not found["complete"]
    assert any("differs between lockstep and reverse: 1 of 1 elements differ" in d for d in found["disagreements"])
