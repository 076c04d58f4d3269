"""A result that a model had a part in is judged once more on fresh inputs; what does not hold is taken back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from agent.baseline import Baseline
from agent.candidate import Attempt, Candidate, Fate, Judgement, Measurement, Proposal
from agent.confirm import Confirmation, Confirmed, with_fresh_inputs
from agent.events import Progress
from agent.job import JobRequest, Options
from agent.memory import Memory
from agent.remember import remember
from agent.search import Found
from sandbox.kernel import Kernel, Language
from sandbox.target import load_target
from sandbox.verdict import Accepted, Correctness, Gain, Incorrect, Speed, Verdict
from skills.facts import Facts

START = Kernel("x = 0\n", "k.py", Language.TRITON)
GOOD = Accepted(Correctness.EMULATED, Speed.STATIC, Gain(Speed.STATIC, "VGPR spills 37 -> 0"))
LUCKY = Incorrect("tolerance", "1 of 64 elements is wrong")


@dataclass
class Bench:
    """Rejects programs that hold one of the words."""

    wrong: tuple[str, ...] = ()
    verdict: Verdict = LUCKY
    judged: list[str] = field(default_factory=list)

    def measure(self, kernel: Kernel) -> Measurement:
        return Measurement(kernel, Facts({}))

    def judge(self, baseline: Measurement, proposal: Proposal) -> Judgement:
        self.judged.append(proposal.kernel.source)
        return Judgement(self.verdict if any(w in proposal.kernel.source for w in self.wrong) else GOOD)


def chain(*steps: tuple[str, str]) -> Found:
    """A search that kept these (origin, line) steps one after the other."""
    best, attempts = Candidate(START), []
    for origin, line in steps:
        kernel = START.with_source(f"{best.kernel.source}{line}\n")
        proposal = Proposal(line, origin, line, "why", kernel)
        attempt = Attempt(proposal, best.kernel, Fate.KEPT, "", 1.0, Judgement(GOOD), best.kernel)
        attempts.append(attempt)
        best = best.extend(attempt)
    final = Judgement(GOOD) if steps else None
    return Found(best, Measurement(best.kernel, Facts({})), final, tuple(attempts), (), ())


def confirm(found: Found, fresh: Bench) -> Confirmed:
    return Confirmation(Measurement(START, Facts({})), Bench(), fresh, Progress()).of(found, "model")


def test_a_result_that_holds_is_judged_once_and_said_to_hold() -> None:
    fresh = Bench()
    confirmed = confirm(chain(("skill", "a = 1"), ("model", "b = 1")), fresh)
    assert confirmed.held and "it held: VGPR spills 37 -> 0" in confirmed.statement
    assert fresh.judged == ["x = 0\na = 1\nb = 1\n"]


@pytest.mark.parametrize("steps", [(), (("skill", "a = 1"),)])
def test_without_a_part_of_the_model_nothing_is_judged(steps: tuple[tuple[str, str], ...]) -> None:
    fresh, found = Bench(("a",)), chain(*steps)
    assert confirm(found, fresh) == Confirmed(found) and fresh.judged == []


def test_a_lucky_step_is_taken_back_and_what_is_under_it_stays() -> None:
    confirmed = confirm(chain(("skill", "a = 1"), ("model", "b = 1")), Bench(("b",)))
    assert confirmed.held is False
    assert confirmed.found.best.kernel.source == confirmed.found.measured.kernel.source == "x = 0\na = 1\n"
    assert confirmed.found.final is not None and isinstance(confirmed.found.final.verdict, Accepted)
    assert "rejected by the check tolerance" in confirmed.statement and "taken back" in confirmed.statement


def test_steps_are_taken_back_until_the_rest_holds() -> None:
    found = chain(("model", "a = 1"), ("model", "b = 1"), ("skill", "c = 1"))
    fresh = Bench(("b",))
    confirmed = confirm(found, fresh)
    assert confirmed.held and len(fresh.judged) == 3
    assert confirmed.found.best.kernel.source == "x = 0\na = 1\n"
    everything = confirm(found, Bench(("x",)))
    assert everything.held is False and not everything.found.best.steps and everything.found.final is None
    assert everything.found.measured.kernel == START


def test_right_but_not_shown_as_far_is_not_holding() -> None:
    weak = replace(GOOD, correctness=Correctness.COMPILED)
    assert confirm(chain(("model", "b = 1")), Bench(("b",), weak)).held is False
    interpreted = replace(GOOD, correctness=Correctness.INTERPRETED)
    assert confirm(chain(("model", "b = 1")), Bench(("b",), interpreted)).held


def request() -> JobRequest:
    return JobRequest(START, load_target("gfx950"), "k.py", START.source.encode(), options=Options(seed=7))


def test_the_inputs_are_others_and_a_replay_draws_the_same() -> None:
    first, again = with_fresh_inputs(request()).options.seed, with_fresh_inputs(request()).options.seed
    assert first == again and first is not None and first != 7 and 0 <= first < 2**62


def test_only_what_held_is_remembered(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "m.db")
    measured = Measurement(START, Facts({}), bottlenecks=("k: spills",))
    baseline = Baseline(measured, None, "interpreter")  # type: ignore[arg-type]
    found = chain(("model", "b = 1"))
    said = remember(memory, request(), baseline, confirm(found, Bench(("b",))), "model")
    assert "is not remembered" in said and not memory.wins()
    ((_, bottleneck, title, reason, _),) = memory.failures()
    assert (bottleneck, title) == ("spills", "b = 1") and "did not hold" in reason
    assert "is remembered" in remember(memory, request(), baseline, confirm(found, Bench()), "model")
    (win,) = memory.wins()
    assert win.effect == "VGPR spills 37 -> 0" and win.program.after == "x = 0\nb = 1\n"
