"""The search with a scripted proposer and bench: real objects of the same protocols, so that every path is walked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from agent.candidate import Attempt, Failure, Fate, Judgement, Measurement, Offers, Proposal
from agent.conclusion import Conclusion, conclude
from agent.events import Event, Progress
from agent.job import Budget, Outcome, Requirement
from agent.search import Found, Search
from sandbox.kernel import Kernel, Language
from sandbox.target import load_target
from sandbox.verdict import (
    Accepted,
    Correctness,
    Gain,
    Inconclusive,
    Incorrect,
    Interval,
    NoGain,
    Speed,
    Verdict,
)
from skills.facts import Facts
from skills.skill import Refusal

TARGET = load_target("gfx950")
START = Kernel("start", "k.py", Language.TRITON)


def accepted(speed: Speed = Speed.STATIC, level: Correctness = Correctness.INTERPRETED, ratio: float = 0.0) -> Accepted:
    interval = Interval(ratio, ratio - 0.01, ratio + 0.01, 20) if ratio else None
    return Accepted(level, speed, Gain(speed, "VGPR spills 37 -> 0", interval))


BUILT = Accepted(Correctness.INTERPRETED, Speed.NONE, None, built_now=True)
NO_GAIN = NoGain(Correctness.INTERPRETED, "no resource improved")


@dataclass
class Script:
    """Proposes `edits[word]` to each source: every edit appends its word. Judges by the words of the result."""

    words: Sequence[str]
    verdicts: Mapping[str, Verdict]
    """Source of the candidate to verdict; a source that is missing is wrong."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Source to the failure of its build."""
    repairs: frozenset[str] = frozenset()
    timed: frozenset[str] = frozenset()
    refusals: tuple[Refusal, ...] = ()
    judged: list[tuple[str, str]] = field(default_factory=list)

    def propose(self, measured: Measurement, history: Sequence[Attempt]) -> Offers:
        source = measured.kernel.source
        proposals = [
            Proposal(
                id=word,
                origin=word.split(":")[0],
                title=word.split(":")[0],
                why="because",
                kernel=START.with_source(f"{source} {word}"),
                repair=word in self.repairs,
                needs_timing=word in self.timed,
            )
            for word in self.words
            if word not in source.split() and (word in self.repairs) != measured.builds
        ]
        return Offers(proposals, self.refusals)

    def measure(self, kernel: Kernel) -> Measurement:
        message = self.failures.get(kernel.source)
        return Measurement(kernel, Facts({}), (Failure("k", message, 3),) if message else ())

    def judge(self, baseline: Measurement, proposal: Proposal) -> Judgement:
        self.judged.append((baseline.kernel.source, proposal.kernel.source))
        return Judgement(self.verdicts.get(proposal.kernel.source, Incorrect("values", "element 3 differs")))


def run(script: Script, require: Requirement | None = None, **budget: float) -> tuple[Found, Conclusion, list[Event]]:
    events: list[Event] = []
    start = script.measure(START)
    limits = Budget(**budget)  # type: ignore[arg-type]
    found = Search(start, script, script, limits, Progress(events.append)).run()
    return found, conclude(start, found, TARGET, require or Requirement()), events


def test_gains_are_composed_and_the_whole_is_judged_against_the_original() -> None:
    script = Script(["a", "b"], {"start a": accepted(), "start a b": accepted()})
    found, conclusion, events = run(script)
    assert found.best.kernel.source == "start a b"
    assert script.judged == [("start", "start a"), ("start a", "start a b"), ("start", "start a b")]
    assert conclusion.outcome is Outcome.IMPROVED and conclusion.kernel == found.best.kernel
    assert [e.data["fate"] for e in events if e.kind == "attempt"] == ["kept", "kept"]


def test_what_is_wrong_or_no_better_is_dropped_with_its_reason() -> None:
    found, conclusion, _ = run(Script(["a", "b"], {"start b": NO_GAIN}))
    assert [(a.fate, a.reason) for a in found.attempts] == [
        (Fate.DROPPED, "rejected by the check values: element 3 differs"),
        (Fate.DROPPED, "no resource improved"),
    ]
    assert conclusion.outcome is Outcome.NOTHING and conclusion.kernel is None and not conclusion.offers


def test_steps_are_taken_back_when_the_whole_does_not_hold() -> None:
    class Turncoat(Script):
        def judge(self, baseline: Measurement, proposal: Proposal) -> Judgement:
            if (baseline.kernel.source, proposal.kernel.source) == ("start", "start a b"):
                return Judgement(Incorrect("values", "drifted"))
            return super().judge(baseline, proposal)

    found, conclusion, _ = run(Turncoat(["a", "b"], {"start a": accepted(), "start a b": accepted()}))
    assert found.best.kernel.source == "start a" and conclusion.outcome is Outcome.IMPROVED
    assert found.measured.kernel.source == "start a"


def test_two_repairs_in_a_row_then_a_tune() -> None:
    script = Script(
        ["r2", "r1", "t"],
        {"start r1 r2": BUILT, "start r1 r2 t": accepted()},
        {"start": "no __nv_expf", "start r1": "no tf32", "start r2": "no __nv_expf"},
        repairs=frozenset({"r1", "r2"}),
    )

    class Built(Script):
        def judge(self, baseline: Measurement, proposal: Proposal) -> Judgement:
            judgement = super().judge(baseline, proposal)
            if baseline.kernel.source == "start" and isinstance(judgement.verdict, Accepted):
                return Judgement(BUILT)
            return judgement

    script = Built(script.words, script.verdicts, script.failures, script.repairs)
    found, conclusion, _ = run(script)
    tried = [(a.proposal.id, str(a.fate)) for a in found.attempts]
    assert tried == [("r2", "dropped"), ("r1", "step"), ("r2", "kept"), ("t", "kept")]
    assert [a.proposal.id for a in found.best.steps] == ["r1", "r2", "t"]
    assert conclusion.outcome is Outcome.BUILDS_NOW and "did not build" in conclusion.summary


def test_a_repair_that_changes_nothing_is_no_step() -> None:
    script = Script(["r"], {}, {"start": "boom", "start r": "boom"}, repairs=frozenset({"r"}))
    found, conclusion, _ = run(script)
    assert found.attempts[0].fate is Fate.DROPPED and conclusion.outcome is Outcome.REFUSED
    assert "boom" in conclusion.summary


def test_a_refusal_names_reason_and_route() -> None:
    refusal = Refusal("add_rd has no counterpart", 9, "Bound the error another way", "port-cuda-libdevice")
    found, conclusion, _ = run(Script([], {}, {"start": "no add_rd"}, refusals=(refusal,)))
    assert conclusion.outcome is Outcome.REFUSED and found.refusals == (refusal,)
    assert "add_rd has no counterpart. Bound the error another way." in conclusion.summary


def test_a_refusal_of_a_file_that_builds_is_no_failure() -> None:
    _, conclusion, _ = run(Script([], {}, refusals=(Refusal("x", 1, "y"),)))
    assert conclusion.outcome is Outcome.NOTHING


def test_right_but_only_a_timing_could_show_it() -> None:
    found, conclusion, _ = run(Script(["swizzle"], {"start swizzle": NO_GAIN}, timed=frozenset({"swizzle"})))
    assert found.attempts[0].fate is Fate.UNSHOWN and conclusion.outcome is Outcome.INCONCLUSIVE
    assert conclusion.kernel is None and conclusion.offers[0].kernel.source == "start swizzle"
    assert "unmeasured" in conclusion.summary and "faster" not in conclusion.summary


def test_times_that_were_not_believed_are_said_to_be_the_reason() -> None:
    reason = "the times cannot be believed: the machine was not steady"
    doubted = NoGain(Correctness.EXECUTED_ELSEWHERE, reason, doubted=True)
    found, conclusion, _ = run(Script(["swizzle"], {"start swizzle": doubted}, timed=frozenset({"swizzle"})))
    assert found.attempts[0].fate is Fate.UNSHOWN and conclusion.outcome is Outcome.INCONCLUSIVE
    assert "the machine was not steady" in conclusion.offers[0].reason


def test_what_a_clock_saw_no_gain_in_is_nothing_rather_than_inconclusive() -> None:
    seen = NoGain(Correctness.EXECUTED_ELSEWHERE, "slower: 0.94x [0.92, 0.95] on NVIDIA H200", timed_on="NVIDIA H200")
    found, conclusion, _ = run(Script(["swizzle"], {"start swizzle": seen}, timed=frozenset({"swizzle"})))
    assert found.attempts[0].fate is Fate.DROPPED
    assert (conclusion.outcome, conclusion.offers) == (Outcome.NOTHING, ())
    assert conclusion.summary.endswith("1 edit was tried, 1 of them timed on NVIDIA H200.")


def test_who_finds_nothing_in_too_little_time_says_so() -> None:
    _, conclusion, _ = run(Script(["a", "b"], {"start a": NO_GAIN, "start b": NO_GAIN}), evaluations=1)
    assert conclusion.outcome is Outcome.NOTHING
    assert conclusion.summary.endswith(
        "1 edit was tried. The search ended early: the budget of 1 evaluations was used up."
    )


def test_an_unmeasured_candidate_does_not_spoil_a_shown_gain() -> None:
    verdicts = {"start swizzle": NO_GAIN, "start a": accepted(), "start a swizzle": NO_GAIN}
    _, conclusion, _ = run(Script(["swizzle", "a"], verdicts, timed=frozenset({"swizzle"})))
    assert conclusion.outcome is Outcome.IMPROVED and len(conclusion.offers) == 1


@pytest.mark.parametrize(
    ("verdict", "require", "outcome"),
    [
        (accepted(), Requirement(), Outcome.IMPROVED),
        (accepted(), Requirement(speed=Speed.MEASURED), Outcome.INCONCLUSIVE),
        (accepted(), Requirement(correctness=Correctness.EMULATED), Outcome.INCONCLUSIVE),
        (accepted(level=Correctness.EMULATED), Requirement(correctness=Correctness.EMULATED), Outcome.IMPROVED),
        (accepted(level=Correctness.COMPILED), Requirement(), Outcome.INCONCLUSIVE),
        (accepted(Speed.MODELLED), Requirement(), Outcome.INCONCLUSIVE),
        (accepted(Speed.MEASURED, ratio=1.4), Requirement(speed=Speed.MEASURED), Outcome.IMPROVED),
    ],
)
def test_evidence_below_the_requirement_becomes_an_offer(
    verdict: Accepted, require: Requirement, outcome: Outcome
) -> None:
    _, conclusion, _ = run(Script(["a"], {"start a": verdict}), require)
    assert conclusion.outcome is outcome
    assert (conclusion.kernel is None) == (len(conclusion.offers) == 1) == (outcome is Outcome.INCONCLUSIVE)


def test_unknown_results_are_inconclusive() -> None:
    _, conclusion, _ = run(Script(["a"], {"start a": Inconclusive("the interpreter lacks inline assembly")}))
    assert conclusion.outcome is Outcome.INCONCLUSIVE and "lacks inline assembly" in conclusion.offers[0].reason


def test_measured_variants_compete_and_the_best_lower_bound_wins() -> None:
    verdicts = {
        f"start v:{n}": accepted(Speed.MEASURED, Correctness.EXECUTED, ratio)
        for n, ratio in (("1", 1.2), ("2", 1.5), ("3", 1.3))
    }
    found, _, _ = run(Script(["v:1", "v:2", "v:3"], verdicts))
    assert found.best.steps[0].proposal.id == "v:2"


def test_static_variants_stop_at_the_first_accepted() -> None:
    script = Script(["v:1", "v:2"], {"start v:1": accepted(), "start v:2": accepted(), "start v:1 v:2": NO_GAIN})
    found, _, _ = run(script)
    assert found.best.kernel.source == "start v:1"


def test_the_budget_ends_the_search_with_what_was_found() -> None:
    script = Script(["a", "b", "c"], {"start a": accepted(), "start a b": accepted(), "start a b c": accepted()})
    found, conclusion, _ = run(script, evaluations=2)
    assert found.best.kernel.source == "start a b" and "2 evaluations" in found.stopped
    assert conclusion.outcome is Outcome.IMPROVED


@pytest.mark.parametrize(
    ("wall_s", "kept", "tried"),
    [
        (165, "start", 6),  # 60 s and five times 20 s; what is left is less than another takes
        (179, "start", 6),
        (180, "start", 7),
    ],
)
def test_a_search_does_not_begin_what_its_budget_cannot_hold(wall_s: float, kept: str, tried: int) -> None:
    now = [0.0]

    class Slow(Script):
        def judge(self, baseline: Measurement, proposal: Proposal) -> Judgement:
            now[0] += 20 if self.judged else 60  # the first runs the user's file as well
            return super().judge(baseline, proposal)

    script = Slow(list("abcdefgh"), {})
    progress, budget = Progress(lambda event: None), Budget(wall_s=wall_s)
    found = Search(script.measure(START), script, script, budget, progress, clock=lambda: now[0]).run()
    assert (found.best.kernel.source, len(found.attempts)) == (kept, tried)
    assert now[0] <= wall_s and f"{wall_s} s" in found.stopped


def test_time_is_kept_for_judging_the_whole() -> None:
    now = [0.0]

    class Slow(Script):
        def judge(self, baseline: Measurement, proposal: Proposal) -> Judgement:
            now[0] += 20
            return super().judge(baseline, proposal)

    good = {"start a": accepted(), "start a b": accepted(), "start a b c": accepted(), "start a b c d": accepted()}
    script = Slow(list("abcd"), good)
    budget = Budget(wall_s=90)
    found = Search(
        script.measure(START), script, script, budget, Progress(lambda event: None), clock=lambda: now[0]
    ).run()
    assert found.best.kernel.source == "start a b c" and script.judged[-1] == ("start", "start a b c")
    assert now[0] == 80 and "90 s" in found.stopped


def test_what_is_built_on_an_invisible_edit_is_invisible_too() -> None:
    class Options(Script):
        flags: list[tuple[str, bool]] = []  # noqa: RUF012 - one search

        def propose(self, measured: Measurement, history: Sequence[Attempt]) -> Offers:
            offers = super().propose(measured, history)
            return Offers([replace(p, invisible=p.id == "num_warps") for p in offers.proposals])

        def judge(self, baseline: Measurement, proposal: Proposal) -> Judgement:
            self.flags.append((proposal.id, proposal.invisible))
            return super().judge(baseline, proposal)

    script = Options(["num_warps", "b"], {"start num_warps": accepted(), "start num_warps b": accepted()})
    run(script)
    assert script.flags == [("num_warps", True), ("b", True), ("the whole patch", True)]


def test_the_same_search_twice_is_the_same() -> None:
    def once() -> list[tuple[str, str]]:
        script = Script(["a", "b"], {"start a": NO_GAIN, "start b": accepted(), "start b a": accepted()})
        return [(a.proposal.id, a.reason) for a in run(script)[0].attempts]

    assert once() == once()
