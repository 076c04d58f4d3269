"""Matching with the real library: what is proposed with and without a clock, and in which state of the file."""

from __future__ import annotations

from agent.candidate import Failure, Measurement
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
    with_clock = SkillProposer(TARGET, load_library(), has_clock=True).propose(measured(), ())
    without = SkillProposer(TARGET, load_library(), has_clock=False).propose(measured(), ())
    assert "config-retune" in {p.origin for p in with_clock.proposals}
    assert "config-retune" not in {p.origin for p in without.proposals}
    assert any(u.origin == "config-retune" and "no GPU here" in u.reason for u in without.unmatched)


def test_repairs_are_for_files_that_do_not_build() -> None:
    proposer = SkillProposer(TARGET, load_library(), has_clock=True)
    assert not [p for p in proposer.propose(measured(), ()).proposals if p.repair]


def test_proposals_are_the_same_every_time() -> None:
    proposer = SkillProposer(TARGET, load_library(), has_clock=True)
    first, second = (proposer.propose(measured(), ()) for _ in range(2))
    assert [(p.id, p.kernel.digest) for p in first.proposals] == [(p.id, p.kernel.digest) for p in second.proposals]
    assert all(p.kernel.digest != measured().kernel.digest for p in first.proposals)
