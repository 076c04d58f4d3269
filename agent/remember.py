"""From a finished job to the memory: a win only after it held once more on other inputs, and what did not help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.baseline import Baseline
from agent.candidate import Attempt, Fate, correctness_of, describe, speed_of
from agent.confirm import Confirmed
from agent.events import Progress
from agent.guided import bottleneck_names
from agent.job import JobRequest
from agent.memory import Memory, Program, Win, toolchain
from agent.verify import verify
from sandbox.kernel import Kernel
from sandbox.target import load_target


def remember(memory: Memory, request: JobRequest, baseline: Baseline, confirmed: Confirmed, origin: str) -> str:
    """Store what the model named `origin` taught in this job; returns one sentence on what was stored.

    A result that a model had a part in is stored only when it held on fresh inputs, one that did not as a failure.
    """
    arch, found = request.target.arch, confirmed.found
    first = next(iter(bottleneck_names(baseline.measurement)), "any")
    theirs = [a for a in found.attempts if a.proposal.origin == origin]
    dropped = [a for a in theirs if a.fate is Fate.DROPPED and a.judgement]
    memory.store_failures(arch, [(first, a.proposal.title, a.reason) for a in dropped])
    if confirmed.held is None:
        return f"{len(dropped)} ideas that did not help are remembered"
    own = [a for a in found.best.steps if a.proposal.origin == origin]
    final = found.final
    if not confirmed.held or not own or final is None or not correctness_of(final.verdict).validated:
        return "the win did not hold on other inputs and is not remembered"
    program = Program(baseline.measurement.kernel, found.best.kernel.source, request.harness)
    level = f"correctness {correctness_of(final.verdict)}, speed {speed_of(final.verdict)}"
    effect = describe(final.verdict)
    memory.store_win(Win(arch, first, _joined(own, "title"), _joined(own, "why"), effect, level, program))
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
