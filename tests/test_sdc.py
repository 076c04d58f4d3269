"""Silent corruption: real replays on the processor, some with a flipped bit, and the vote on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from sandbox.capture import capture
from sandbox.evaluate import EvaluateOptions, evaluate
from sandbox.isolation import Limits
from sandbox.kernel import Kernel, parse_kernel
from sandbox.sdc import Checksums, Device, ReplayDevice, check, checksums
from sandbox.target import load_target
from sandbox.verdict import Incorrect
from sandbox.workload import StoredWorkload

SOURCE = """
import torch
import triton
import triton.language as tl
{extra}

@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


def run(x):
    y = torch.empty_like(x)
    double[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y{noise}


if __name__ == "__main__":
    x = torch.arange(200, device="cuda", dtype=torch.float32)
    run(x)
"""
STEADY = parse_kernel(SOURCE.format(extra="", noise="").encode(), "k.py")
NOISY = parse_kernel(
    SOURCE.format(extra="import time", noise=" * 10.0 ** (time.perf_counter_ns() % 9973 / 1000)").encode(), "k.py"
)
TARGET = load_target("gfx942")


def recorded(kernel: Kernel) -> StoredWorkload:
    return capture(kernel, TARGET, executor="interpreter", limits=Limits(wall_s=120), compile=False).stored


@pytest.fixture(scope="module")
def steady() -> Sequence[Checksums]:
    """One real replay, shared: a device that never errs."""
    return ReplayDevice("processor", recorded(STEADY), STEADY, TARGET, "interpreter").replay(4)


@dataclass
class Steady:
    """Hands out the checksums of a real replay."""

    name: str
    held: Sequence[Checksums]

    def replay(self, repeats: int) -> Sequence[Checksums]:
        return self.held[:repeats]


@dataclass
class Flips:
    """The same device with one bit flipped in the first result of some repetitions."""

    inner: Device
    when: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"flipping {self.inner.name}"

    def replay(self, repeats: int) -> Sequence[Checksums]:
        found = [dict(held) for held in self.inner.replay(repeats)]
        for k in self.when:
            place = next(iter(found[k]))
            found[k][place] = f"{int(found[k][place], 16) ^ 1:032x}"
        return found


def test_real_replays_agree(steady: Sequence[Checksums]) -> None:
    assert len(steady) == 4 and all(held == steady[0] for held in steady) and list(steady[0]) == ["call 0 output"]
    report = check([Steady("a", steady), Steady("b", steady), Steady("c", steady)], 4)
    assert (report.outcome, report.results, report.culprits) == ("clean", 1, ())


@pytest.mark.parametrize("when", [(0, 1, 2, 3), (2,)])
def test_the_culprit_is_named(steady: Sequence[Checksums], when: tuple[int, ...]) -> None:
    bad = Flips(Steady("gpu 1", steady), when)
    report = check([Steady("gpu 0", steady), bad, Steady("gpu 2", steady)], 4)
    assert report.outcome == "corrupt"
    (culprit,) = report.culprits
    assert (culprit.device, culprit.wrong, culprit.repeats) == ("flipping gpu 1", len(when), 4)
    assert "call 0 output differs from the majority" in str(culprit)


def test_two_that_disagree_cannot_outvote_each_other(steady: Sequence[Checksums]) -> None:
    report = check([Steady("gpu 0", steady), Flips(Steady("gpu 1", steady), (0, 1, 2, 3))], 4)
    assert report.outcome == "undecided" and not report.culprits


def test_one_device_can_only_say_that_results_change(steady: Sequence[Checksums]) -> None:
    report = check([Flips(Steady("gpu 0", steady), (1,))], 4)
    assert report.outcome == "non-deterministic"
    assert "three devices would tell which" in report.sentences[0]


def test_a_program_that_is_random_everywhere_blames_nobody(steady: Sequence[Checksums]) -> None:
    devices = [Flips(Steady(f"gpu {n}", steady), (n,)) for n in range(3)]
    report = check(devices, 4)
    assert report.outcome == "non-deterministic" and not report.culprits
    assert "on 3 of 3 devices: the program is not deterministic" in report.sentences[0]


def test_a_real_program_that_is_not_deterministic() -> None:
    device = ReplayDevice("processor", recorded(NOISY), NOISY, TARGET, "interpreter")
    assert check([device], 3).outcome == "non-deterministic"


def test_checksums_see_one_bit() -> None:
    assert checksums({"a": 1.0}) != checksums({"a": 1.0000000000000002})


@pytest.mark.long
def test_an_unsteady_baseline_is_not_blamed_on_the_candidate() -> None:
    stored = recorded(NOISY)
    candidate = parse_kernel(NOISY.source.replace("BLOCK=64", "BLOCK=128").encode(), "k.py")
    options = EvaluateOptions(executor="interpreter", seed=1)
    done = evaluate(NOISY, candidate, stored, TARGET, options=options)
    assert not isinstance(done.verdict, Incorrect), done.verdict
    assert "differs from itself when it is repeated" in (done.doubt or str(done.verdict))
