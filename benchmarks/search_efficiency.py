"""Evaluations until the best candidate, with a simulated model: the product's policy against best-of-N sampling.

    python benchmarks/search_efficiency.py [--runs 200] [--json FILE]

The program under work is a list of slots, one per bottleneck. The simulated model mends a slot with the success rate of
its bottleneck, else it writes something wrong or something that is no better; it cannot mend slots whose rate is 0. The
best candidate has all others mended. Nothing else is simulated: the search, the policy, the prompts, the tools and the
edits are those of the product. Every judged candidate counts.

Compared, from the same model and seeds:
- best-of-N: independent rewrites of the user's file, each aiming at every bottleneck; the best one counts.
- staged best-of-N: N rewrites of the best so far, each at a bottleneck drawn at random; the best one goes on (N = 8).
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.candidate import Attempt, Judgement, Measurement, Offers, Proposal
from agent.events import Progress
from agent.guided import GuidedProposer
from agent.job import Budget, Meter
from agent.model import Message, Reply, Stop, Tool, ToolCall, Usage
from agent.model_proposer import ModelProposer
from agent.policy import Policy
from agent.search import Search
from agent.spend import Ledger, Limits
from sandbox.kernel import Kernel, Language
from sandbox.target import load_target
from sandbox.verdict import Accepted, Correctness, Gain, Incorrect, NoGain, Speed
from skills.facts import Facts
from skills.skill import Library

TARGET = load_target("gfx950")
LIMIT = 4000
STAGE = 8


@dataclass(frozen=True)
class Scenario:
    """Bottlenecks and the model's success rate at each; `wrong` is the share of wrong programs among its failures."""

    name: str
    rates: tuple[float, ...]
    wrong: float = 0.5

    @property
    def goal(self) -> frozenset[int]:
        return frozenset(n for n, rate in enumerate(self.rates) if rate)

    @property
    def start(self) -> Kernel:
        return Kernel("".join(f"SLOT_{n} = 0\n" for n in range(len(self.rates))), "k.py", Language.TRITON)


SCENARIOS = (
    Scenario("two easy, one hard", (0.6, 0.5, 0.2)),
    Scenario("three of six can be mended", (0.5, 0.0, 0.4, 0.0, 0.3, 0.0)),
    Scenario("five of even rate", (0.4, 0.4, 0.4, 0.4, 0.4)),
    Scenario("a weak model", (0.15, 0.15, 0.0, 0.15)),
    Scenario("one that matters among eight", (0.0, 0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 0.0)),
)


def mended(source: str) -> frozenset[int]:
    """Slots that hold 1: mended. A negative number is a wrong program, a larger one is right and no better."""
    lines = [line.partition(" = ") for line in source.splitlines()]
    return frozenset(int(n.removeprefix("SLOT_")) for n, _, value in lines if int(value) == 1)


@dataclass
class SlotBench:
    """Measures and judges slot programs; counts what it judged and notes when the goal was reached."""

    scenario: Scenario
    judged: int = 0
    reached_after: int | None = None

    def measure(self, kernel: Kernel) -> Measurement:
        open_slots = [n for n in range(len(self.scenario.rates)) if n not in mended(kernel.source)]
        return Measurement(kernel, Facts({}), bottlenecks=tuple(f"k: b{n}" for n in open_slots))

    def judge(self, baseline: Measurement, proposal: Proposal) -> Judgement:
        self.judged += 1
        source = proposal.kernel.source
        if "= -" in source:
            return Judgement(Incorrect("tolerance", "wrong"))
        now, before = mended(source), mended(baseline.kernel.source)
        if now >= self.scenario.goal and self.reached_after is None:
            self.reached_after = self.judged
        if now > before:
            return Judgement(Accepted(Correctness.EMULATED, Speed.STATIC, Gain(Speed.STATIC, "better")))
        return Judgement(NoGain(Correctness.EMULATED, "no better"))


@dataclass
class SimulatedModel:
    """Answers a prompt with one candidate. Success is drawn at the rate of the bottleneck that the prompt asks for."""

    scenario: Scenario
    rng: random.Random
    name: str = "simulated"
    _fresh: int = field(default=1)

    def propose(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        schema: Any = None,
        *,
        max_output_tokens: int = 8192,
        timeout_s: float = 300.0,
    ) -> Reply:
        task = messages[1].text
        asked = task.rpartition("Remove this bottleneck first: b")[2].partition(".")[0]
        values = {}
        for line in task.splitlines():
            name, equals, value = line.partition(" = ")
            if equals and name.startswith("SLOT_"):
                values[int(name.removeprefix("SLOT_"))] = value
        named = [int(n) for n in re.findall(r"^- `k: b(\d+)`$", task, re.MULTILINE)]
        slot = int(asked) if asked.isdigit() else self.rng.choice(named or sorted(values))
        edits = [{"search": f"SLOT_{slot} = {values[slot]}\n", "replace": f"SLOT_{slot} = {self.draw(slot)}\n"}]
        call = ToolCall("c1", "submit_candidate", {"title": "t", "why": "w", "edits": edits})
        return Reply("", (call,), Stop.TOOLS, Usage(100, 0, 0, 20), self.name)

    def draw(self, slot: int) -> int:
        """1 for a success; else a number never used before, so that no failure looks like one seen before."""
        self._fresh += 1
        if self.rng.random() < self.scenario.rates[slot]:
            return 1
        return -self._fresh if self.rng.random() < self.scenario.wrong else self._fresh


@dataclass(frozen=True)
class NoSkills:
    """A library that has nothing to say."""

    def propose(self, measured: Measurement, history: Sequence[Attempt]) -> Offers:
        return Offers(())


def with_policy(scenario: Scenario, seed: int) -> int:
    """Evaluations of the product's search until the goal; the limit when it was not reached."""
    bench, meter, library = SlotBench(scenario), Meter(), Library({})
    model = SimulatedModel(scenario, random.Random(seed))
    ledger = Ledger(Limits(), model.name, None, meter=meter)
    proposer = ModelProposer(TARGET, model, bench, library, ledger, Progress(), rounds=LIMIT, wanted=1)
    budget = Budget(wall_s=float("inf"), evaluations=LIMIT)
    guided = GuidedProposer(NoSkills(), proposer, bench, library, budget, meter, Policy(seed), patience=LIMIT)
    guided.arm_failures = LIMIT
    search = Search(bench.measure(scenario.start), Stopping(guided, bench), bench, budget, Progress(), meter=meter)
    search.run()
    return bench.reached_after or LIMIT


@dataclass
class Stopping:
    """Passes proposals on until the goal is reached: what comes after is not what is counted."""

    inner: GuidedProposer
    bench: SlotBench

    def propose(self, measured: Measurement, history: Sequence[Attempt]) -> Offers:
        return Offers(()) if self.bench.reached_after else self.inner.propose(measured, history)


def best_of_n(scenario: Scenario, seed: int) -> int:
    """Independent rewrites of everything, each judged once, until one has every slot mended."""
    model = SimulatedModel(scenario, random.Random(seed))
    for judged in range(1, LIMIT + 1):
        drawn = {n: model.draw(n) for n in range(len(scenario.rates))}
        if all(drawn[n] == 1 for n in scenario.goal) and not any(v < 0 for v in drawn.values()):
            return judged
    return LIMIT


def staged_best_of_n(scenario: Scenario, seed: int) -> int:
    """Stages of N rewrites of the best so far, at bottlenecks drawn at random; ends within a stage at the goal."""
    rng = random.Random(seed)
    model = SimulatedModel(scenario, rng)
    best: frozenset[int] = frozenset()
    judged = 0
    while judged < LIMIT:
        found = best
        for _ in range(STAGE):
            judged += 1
            slot = rng.choice([n for n in range(len(scenario.rates)) if n not in best])
            if model.draw(slot) == 1:
                found = best | {slot}
                if found >= scenario.goal:
                    return judged
        best = found
    return judged


def compare(scenario: Scenario, runs: int) -> dict[str, Any]:
    """Mean evaluations of each, and the policy's share of the others with a 95% bootstrap interval."""
    counted = {
        name: [how(scenario, seed) for seed in range(runs)]
        for name, how in (("policy", with_policy), ("best-of-N", best_of_n), ("staged", staged_best_of_n))
    }
    row: dict[str, Any] = {"scenario": scenario.name}
    for name, values in counted.items():
        low, middle, high = quartiles(values)
        row[name] = {"mean": statistics.fmean(values), "quartiles": [low, middle, high]}
    for other in ("best-of-N", "staged"):
        row[f"share of {other}"] = share(counted["policy"], counted[other])
    return row


def quartiles(values: Sequence[int]) -> tuple[float, float, float]:
    low, middle, high = statistics.quantiles(values, n=4)
    return low, middle, high


def share(ours: Sequence[int], theirs: Sequence[int], draws: int = 1000) -> list[float]:
    """Ratio of means, and the ends of its 95% bootstrap interval."""
    rng = random.Random(0)
    ratios = sorted(
        statistics.fmean(rng.choices(ours, k=len(ours))) / statistics.fmean(rng.choices(theirs, k=len(theirs)))
        for _ in range(draws)
    )
    return [statistics.fmean(ours) / statistics.fmean(theirs), ratios[draws // 40], ratios[-draws // 40]]


def spell(row: dict[str, Any]) -> str:
    def cell(name: str) -> str:
        low, _, high = row[name]["quartiles"]
        return f"{row[name]['mean']:7.1f} [{low:.0f}, {high:.0f}]"

    def ratio(name: str) -> str:
        value, low, high = row[f"share of {name}"]
        return f"{value:5.0%} [{low:.0%}, {high:.0%}]"

    cells = [row["scenario"], cell("policy"), cell("best-of-N"), ratio("best-of-N"), cell("staged"), ratio("staged")]
    return "| " + " | ".join(cells) + " |"


def main(progress: Callable[[str], None] = print) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    progress("| scenario | policy | best-of-N | share | staged best-of-N | share |\n|---|---|---|---|---|---|")
    rows = []
    for scenario in SCENARIOS:
        rows.append(compare(scenario, options.runs))
        progress(spell(rows[-1]))
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
