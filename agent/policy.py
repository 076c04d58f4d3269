"""Which idea to try next: UCB1 over arms, an arm being a bottleneck together with an operator that may remove it.

UCB1 is from Auer, Cesa-Bianchi, Fischer, "Finite-time Analysis of the Multiarmed Bandit Problem", 2002; one imagined
trial of middling reward per arm stands for what is hoped of an idea before it was tried. Ties are broken by a seed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.candidate import Attempt, Fate, correctness_of
from sandbox.verdict import Accepted, Inconclusive, NoGain

EXPLORATION = 0.7
"""Weight of what is not known yet against what was seen; sqrt(2) in the paper, whose rewards vary more than ours."""
PRIOR = 0.5


@dataclass(frozen=True, slots=True, order=True)
class Arm:
    """One kind of idea. `bottleneck` is `build` while the file does not build, `any` where none was named."""

    bottleneck: str
    operator: str
    """A skill's id, or the universal operator of a model."""


@dataclass(slots=True)
class _Record:
    trials: int = 0
    reward: float = 0.0


def reward_of(attempt: Attempt) -> float:
    """What an attempt teaches about its arm, 0 to 1: kept, moved on, right but no better, not shown, wrong."""
    if attempt.fate is Fate.KEPT:
        return 1.0
    if attempt.fate is Fate.STEP:
        return 0.6
    match attempt.judgement.verdict if attempt.judgement else None:
        case Accepted():
            return 0.8
        case Inconclusive():
            return 0.3
        case NoGain() as verdict if correctness_of(verdict).validated:
            return 0.2
        case _:
            return 0.0


@dataclass
class Policy:
    """Statistics of the arms and the choice among them. The same seed and history give the same choices."""

    seed: int = 0
    exploration: float = EXPLORATION
    _records: dict[Arm, _Record] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)

    def learn(self, arm: Arm, reward: float) -> None:
        """Add one outcome, 0 to 1."""
        record = self._records.setdefault(arm, _Record())
        record.trials += 1
        record.reward += reward

    @property
    def trials(self) -> int:
        return sum(r.trials for r in self._records.values())

    def score(self, arm: Arm) -> float:
        """Upper confidence bound of the arm's mean reward."""
        record = self._records.get(arm, _Record())
        weight = record.trials + 1
        mean = (record.reward + PRIOR) / weight
        return mean + self.exploration * math.sqrt(math.log(self.trials + 2) / weight)

    def choose(self, arms: Sequence[Arm], first: Iterable[Arm] = ()) -> Arm:
        """The arm with the highest bound; of equal ones those in `first` win, in their order, else the seed decides."""
        rank = {arm: -n for n, arm in reversed(list(enumerate(first, 1)))}
        low = -len(arms) - len(rank) - 1
        return max(arms, key=lambda arm: (round(self.score(arm), 9), rank.get(arm, low), self._rng.random()))

    def table(self) -> Mapping[Arm, tuple[int, float]]:
        """Trials and mean reward of every arm that was tried."""
        return {arm: (r.trials, r.reward / r.trials) for arm, r in sorted(self._records.items())}
