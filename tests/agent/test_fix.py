"""Matching with the real library: what is proposed with and without a clock, and in which state of the file."""

from __future__ import annotations

from pathlib import Path

from agent.candidate import Attempt, Failure, Fate, Measurement
from agent.fix import SkillProposer
from sandbox.kernel import parse_kernel
from sandbox.target import load_target
from skills.skill import load_library
from skills.source_facts import collect_facts

SOURCE = b"""import triton
import triton.language as tl


@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def run(x, y, n):
    copy[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024, num_warps=4)
"""
TARGET = load_target("gfx950")


def measured(*failures: Failure) -> Measurement:
    kernel = parse_kernel(SOURCE, "k.py")
    launch = {"launch.num_warps": 4, "launch.grid_programs": 64, "compile.status": "failed" if failures else "ok"}
    return Measurement(kernel, collect_facts(kernel, TARGET, observed={"copy": [launch]}), failures)


def test_guesses_need_a_clock() -> None:
    with_clock = SkillProposer(TARGET, load_library(), clock="amd").propose(measured(), ())
    without = SkillProposer(TARGET, load_library(), clock=None).propose(measured(), ())
    assert "config-retune" in {p.origin for p in with_clock.proposals}
    assert "config-retune" not in {p.origin for p in without.proposals}
    assert any(u.origin == "config-retune" and "no GPU here" in u.reason for u in without.unmatched)


PRODUCT = (Path(__file__).parent.parent.parent / "benchmarks/good/matmul_fp16.py").read_bytes()


def of_product() -> Measurement:
    kernel = parse_kernel(PRODUCT, "matmul.py")
    launch = {"launch.num_warps": 4, "launch.grid_programs": 64, "compile.status": "ok"}
    return Measurement(kernel, collect_facts(kernel, TARGET, observed={"matmul_fp16_kernel": [launch]}))


def test_the_clock_of_another_vendor_is_not_asked_about_what_its_gpus_do_not_have() -> None:
    with_clock = SkillProposer(TARGET, load_library(), clock="nvidia").propose(of_product(), ())
    assert "config-retune" in {p.origin for p in with_clock.proposals}
    assert not [p for p in with_clock.proposals if p.origin == "occupancy-and-mfma-options"]
    assert any(u.origin == "occupancy-and-mfma-options" and "GPU here" in u.reason for u in with_clock.unmatched)
    foreign = {p.origin: p.foreign for p in with_clock.proposals}
    assert not foreign["config-retune"]
    on_amd = SkillProposer(TARGET, load_library(), clock="amd").propose(of_product(), ())
    assert "occupancy-and-mfma-options" in {p.origin for p in on_amd.proposals}
    assert not any(p.foreign for p in on_amd.proposals)


def test_repairs_are_for_files_that_do_not_build() -> None:
    proposer = SkillProposer(TARGET, load_library(), clock="amd")
    assert not [p for p in proposer.propose(measured(), ()).proposals if p.repair]


def test_proposals_are_the_same_every_time() -> None:
    proposer = SkillProposer(TARGET, load_library(), clock="amd")
    first, second = (proposer.propose(measured(), ()) for _ in range(2))
    assert [(p.id, p.kernel.digest) for p in first.proposals] == [(p.id, p.kernel.digest) for p in second.proposals]
    assert all(p.kernel.digest != measured().kernel.digest for p in first.proposals)


TWO_KERNELS = b"""import triton
import triton.language as tl


@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y + i, tl.load(x + i, mask=i < n), mask=i < n, sem="relaxed")


@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def run(x, y, n):
    copy[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    add[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
"""


def of_two(launched: tuple[str, ...]) -> Measurement:
    launch = {"launch.count": 1, "launch.num_warps": 4, "launch.grid_programs": 64, "compile.status": "ok"}
    kernel = parse_kernel(TWO_KERNELS, "k.py")
    return Measurement(kernel, collect_facts(kernel, TARGET, observed={name: [launch] for name in launched}))


def test_a_skill_is_said_not_to_fit_the_kernel_it_came_closest_to() -> None:
    offers = SkillProposer(TARGET, load_library(), clock=None).propose(of_two(("copy", "add")), ())
    reasons = {u.origin: u.reason for u in offers.unmatched}
    assert reasons["relax-atomics"].startswith("add: ") and "nothing" in reasons["relax-atomics"]
    assert reasons["config-retune"] == "only a clock can tell whether it helps, and there is no GPU here"


def test_kernels_that_the_harness_leaves_out_are_left_alone() -> None:
    with_clock = SkillProposer(TARGET, load_library(), clock="amd")
    both, one = (with_clock.propose(of_two(names), ()).proposals for names in (("copy", "add"), ("copy",)))
    assert any("@add" in p.id for p in both)
    assert one and not any("@add" in p.id for p in one)


def test_kernels_take_turns_with_guesses() -> None:
    proposer, start = SkillProposer(TARGET, load_library(), clock="amd"), of_two(("copy", "add"))
    first = next(p for p in proposer.propose(start, ()).proposals if p.origin == "config-retune")
    kept = Attempt(first, start.kernel, Fate.KEPT, "", 1.0)
    later = [p.id.partition(":")[0] for p in proposer.propose(start, [kept]).proposals if p.origin == "config-retune"]
    own = first.id.partition(":")[0]
    assert {*later} == {"config-retune@add", "config-retune@copy"}
    assert later[0] != own and later[-1] == own
