"""`wavesmith capture -- python train.py`: a program of the user's, recorded without touching it."""

from __future__ import annotations

import sys

import pytest

from sandbox.errors import InputError
from sandbox.program import capture_program
from sandbox.target import load_target

OPS = """
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


def add_one(x):
    y = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y
"""
TRAIN = """
import os, sys
import torch
from ops import add_one

assert os.environ["MY_SETTING"] == "kept" and sys.argv[1:] == ["--steps", "3"]
for n in (10, 10, 20, 30, 40):
    assert torch.equal(add_one(torch.zeros(n, device="cuda")).cpu(), torch.ones(n))
sys.exit(5)
"""


def test_representative_launches_of_a_program(tmp_path, monkeypatch):
    (tmp_path / "ops.py").write_text(OPS)
    (tmp_path / "train.py").write_text(TRAIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_SETTING", "kept")
    argv = [sys.executable, "train.py", "--steps", "3"]
    done = capture_program(argv, load_target("gfx950"), kernel_regex="^add_", max_launches=3)
    assert done.exit_code == 5 and done.reason is None
    (recording,) = done.recordings
    workload = recording.stored.workload
    assert recording.kernel.filename == "ops.py" and workload.outcome.form == "program"
    assert [launch.argument("n").value.value for launch in workload.launches] == [10, 20, 30]
    assert all(launch.compiles[0].ok and launch.execution.status == "executed" for launch in workload.launches)
    assert [e.qualname for e in workload.entries] == ["add_one"] * 3 and all(e.known for e in workload.entries)


def test_programs_without_launches_and_without_existence(tmp_path):
    done = capture_program([sys.executable, "-c", "print('hi')"], load_target("gfx950"))
    assert (done.exit_code, done.recordings) == (0, ()) and "no kernel was launched" in done.reason
    with pytest.raises(InputError, match="cannot be run"):
        capture_program([str(tmp_path / "nothing")], load_target("gfx950"))
