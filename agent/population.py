"""The candidates a rewrite may start from: the best so far, and right ones of another kind, so that search stays broad.

A niche is a bottleneck together with the structure of the program. Each niche keeps one candidate, so many variants of
one idea take one place.
"""

from __future__ import annotations

import ast
import hashlib
import math
from dataclasses import dataclass, field

from agent.candidate import Measurement

MAX_NICHES = 8
RIGHT_FITNESS = 0.7
"""Of a right candidate that was no better than the best at its time."""
_FADE = 0.6
"""What is left of every fitness when a better candidate was found."""


@dataclass(slots=True)
class Parent:
    """A right candidate. `fitness` is 1 for the best so far and less for others; `visits` counts rewrites of it."""

    measured: Measurement
    fitness: float
    visits: int = 0


def structure_of(source: str) -> str:
    """A digest of what a program does, blind to names, numbers, comments and layout; empty for what is no Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    words = []
    for node in ast.walk(tree):
        words.append(type(node).__name__)
        if isinstance(node, ast.Attribute):
            words.append(node.attr)
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:16]


@dataclass
class Population:
    """At most `MAX_NICHES` parents. The best so far is always among them."""

    parents: dict[tuple[str, str], Parent] = field(default_factory=dict)
    _best: tuple[str, str] | None = None

    def set_best(self, measured: Measurement) -> None:
        """Note the candidate the search stands on; the one before becomes an ordinary parent."""
        if self._best is not None and self.parents[self._best].measured.kernel.digest == measured.kernel.digest:
            return
        for parent in self.parents.values():
            parent.fitness *= _FADE
        self._best = niche_of(measured)
        self.parents[self._best] = Parent(measured, 1.0)
        self._trim()

    def add(self, measured: Measurement, fitness: float = RIGHT_FITNESS) -> bool:
        """Take in a right candidate that was not kept, if its niche is free or holds a weaker one."""
        niche = niche_of(measured)
        held = self.parents.get(niche)
        if niche == self._best or (held is not None and held.fitness >= fitness):
            return False
        self.parents[niche] = Parent(measured, fitness)
        self._trim()
        return niche in self.parents

    def choose(self) -> Parent:
        """The parent to rewrite next, by fitness and by how often it was rewritten (UCB1 as in `agent.policy`)."""
        total = sum(p.visits for p in self.parents.values())

        def score(parent: Parent) -> float:
            return parent.fitness + 0.4 * math.sqrt(math.log(total + 2) / (parent.visits + 1))

        chosen = max(self.parents.values(), key=score)
        chosen.visits += 1
        return chosen

    def _trim(self) -> None:
        while len(self.parents) > MAX_NICHES:
            weakest = min((n for n in self.parents if n != self._best), key=lambda n: self.parents[n].fitness)
            del self.parents[weakest]


def niche_of(measured: Measurement) -> tuple[str, str]:
    first = measured.bottlenecks[0] if measured.bottlenecks else ""
    return first, structure_of(measured.kernel.source)
