"""From a finished job to the memory: a win only after it held once more on other inputs, and what did not help."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

from agent.baseline import Baseline
from agent.bench import SandboxBench
from agent.candidate import Attempt, Fate, describe, speed_of
from agent.events import Progress
from agent.guided import bottleneck_names
from agent.job import JobRequest
from agent.memory import Memory, Program, Win, toolchain
from agent.search import Found
from agent.verify import verify
from sandbox.kernel import Kernel
from sandbox.target import load_target
from sandbox.verdict import Accepted


def remember(memory: Memory, request: JobRequest, baseline: Baseline, found: Found, origin: str) -> str:
    """Store what the model named `origin` taught in this job; returns one sentence on what was stored.

    Takes one more evaluation when a proposal of the model is part of an accepted result.
    """
    arch = request.target.arch
    first = next(iter(bottleneck_names(baseline.measurement)), "any")
    dropped = [a for a in found.attempts if a.proposal.origin == origin and a.fate is Fate.DROPPED and a.judgement]
    memory.store_failures(arch, [(first, a.proposal.title, a.reason) for a in dropped])
    own = [a for a in found.best.steps if a.proposal.origin == origin]
    accepted = found.final is not None and isinstance(found.final.verdict, Accepted)
    if not own or not accepted:
        return f"{len(dropped)} ideas that did not help are remembered"
    progress = Progress()
    other = replace(request, options=replace(request.options, seed=secrets.randbits(62)))
    judgement = SandboxBench(other, baseline, progress).judge(
        baseline.measurement, found.best.as_proposal("the win again")
    )
    verdict = judgement.verdict
    if not isinstance(verdict, Accepted) or not verdict.correctness.validated:
        memory.store_failures(arch, [(first, own[0].proposal.title, f"did not hold again: {describe(verdict)}")])
        return f"the win did not hold on other inputs and is not remembered: {describe(verdict)}"
    program = Program(baseline.measurement.kernel, found.best.kernel.source, request.harness)
    level = f"correctness {verdict.correctness}, speed {speed_of(verdict)}"
    memory.store_win(Win(arch, first, _joined(own, "title"), _joined(own, "why"), describe(verdict), level, program))
    return "the win held on other inputs and is remembered"


def _joined(steps: Sequence[Attempt], field: str) -> str:
    return "; ".join(dict.fromkeys(str(getattr(a.proposal, field)) for a in steps))


def check_wins(memory: Memory, progress: Progress) -> list[tuple[Win, bool, str]]:
    """Judge every win of another toolchain anew: (win, whether it holds, why). One that does not is dropped."""
    results = []
    for win in memory.wins(stale=True):
        before = win.program.before
        request = JobRequest(
            before, load_target(win.arch), before.filename, before.source.encode(), harness=win.program.harness
        )
        judged = verify(request, _after(win), progress)
        holds = judged.verdict == "Accepted" and judged.correctness.validated
        if holds:
            memory.store_win(replace(win, effect=judged.message))
        else:
            memory.drop_win(win, f"no longer holds with {toolchain()}: {judged.message}")
        results.append((win, holds, judged.message))
    return results


def _after(win: Win) -> Kernel:
    return win.program.before.with_source(win.program.after)
