"""The last word on a result that a model had a part in: it is judged once more, on inputs nobody saw in the search.

A search looks at many candidates with one set of inputs, and what a model wrote was chosen for passing them. Inputs of
another seed, drawn anew from the recorded shapes and held-out ones, show whether it is right or was lucky.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from agent.candidate import Candidate, Fate, Judgement, Measurement, correctness_of, describe
from agent.events import Progress
from agent.job import JobRequest
from agent.search import Bench, Found, settle
from sandbox.verdict import Accepted


def with_fresh_inputs(request: JobRequest) -> JobRequest:
    """The request with another seed, made from its own, so that a replay draws the same; it must have one."""
    assert request.options.seed is not None
    digest = hashlib.sha256(f"confirmation {request.options.seed}".encode()).digest()
    return replace(request, options=replace(request.options, seed=int.from_bytes(digest[:8], "big") >> 2))


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What is left of a search after its result was judged again. `held` is None where no model had a part in it."""

    found: Found
    held: bool | None = None
    statement: str = ""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Judges the result of a search with `fresh`, whose inputs are not those of `bench`."""

    start: Measurement
    bench: Bench
    fresh: Bench
    progress: Progress

    def of(self, found: Found, origin: str) -> Confirmed:
        """Steps are taken back until what is left holds on fresh inputs, or nothing of the model `origin` is left.

        Not counted as an evaluation of the search.
        """
        best, final = found.best, found.final
        failures: list[str] = []
        while final is not None and isinstance(final.verdict, Accepted) and _has_part(best, origin):
            self.progress.step("judging the result once more, on inputs that nobody saw")
            again = self.fresh.judge(self.start, best.as_proposal("the result again"))
            if _holds(again, final):
                held = (
                    f"judged once more on inputs that nobody saw during the search, it held: {describe(again.verdict)}"
                )
                return self._concluded(found, best, final, failures, held)
            failures.append(describe(again.verdict))
            best, final = settle(Candidate(best.steps[-1].parent, best.steps[:-1]), self.start, self.bench)
        return self._concluded(found, best, final, failures, "")

    def _concluded(
        self, found: Found, best: Candidate, final: Judgement | None, failures: list[str], held: str
    ) -> Confirmed:
        if not failures and not held:
            return Confirmed(found)
        if failures:
            measured = self.bench.measure(best.kernel) if best.steps else self.start
            lost = {a.proposal.kernel.digest for a in found.best.steps} - {a.proposal.kernel.digest for a in best.steps}
            reason = f"taken back: on inputs that nobody saw during the search it did not hold: {failures[0]}"
            attempts = tuple(
                replace(a, fate=Fate.DROPPED, reason=reason) if a.proposal.kernel.digest in lost else a
                for a in found.attempts
            )
            found = replace(found, best=best, final=final, measured=measured, attempts=attempts)
        gone = [f"on inputs that nobody saw during the search a result did not hold and was taken back: {f}"
                for f in failures]  # fmt: skip
        statement = "; ".join([*gone, *([held] if held else [])])
        self.progress.step(statement)
        return Confirmed(found, bool(held), statement)


def _has_part(best: Candidate, origin: str) -> bool:
    return any(step.proposal.origin == origin for step in best.steps)


def _holds(again: Judgement, final: Judgement) -> bool:
    """Accepted again, and shown right: at a level that validates, or at the one it had."""
    level = correctness_of(again.verdict)
    return isinstance(again.verdict, Accepted) and (level.validated or level >= correctness_of(final.verdict))
