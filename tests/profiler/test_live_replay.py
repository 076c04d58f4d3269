"""The command that a profiler runs: the recorded calls repeated from a folder, by a process of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from sandbox.capture import capture
from sandbox.kernel import parse_kernel
from sandbox.profiler.live import replay_command
from sandbox.target import load_target

SOURCE = b"""
import torch, triton
import triton.language as tl


@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, 2 * tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


def run(x):
    y = torch.empty_like(x)
    double[(1,)](x, y, x.numel(), BLOCK=64)
    print("called with", float(x.sum()))
    return y


if __name__ == "__main__":
    run(torch.ones(50, device="cuda"))
"""


def test_the_recorded_calls_are_made_again(tmp_path: Path) -> None:
    kernel, target = parse_kernel(SOURCE, "k.py"), load_target("gfx950")
    stored = capture(kernel, target, executor="interpreter", compile=False).stored
    command = replay_command(stored, kernel, target, tmp_path, "interpreter")
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == 3 * ["called with 50.0"], "on the recorded inputs, as often as asked"
