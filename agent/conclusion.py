"""How a job ends: the outcome, and a summary that claims no more than was shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from agent.candidate import (
    NEEDS_CLOCK,
    NEEDS_CLOCK_OF_TARGET,
    Attempt,
    Candidate,
    Fate,
    Judgement,
    Measurement,
    correctness_of,
    describe,
    speed_of,
)
from agent.job import Outcome, Requirement
from agent.search import Found
from sandbox.kernel import Kernel, Language
from sandbox.target import Target
from sandbox.verdict import Accepted, Correctness, NoGain, Speed
from skills.skill import Refusal
from skills.triton_source import parse_triton


@dataclass(frozen=True, slots=True)
class Offer:
    """A candidate that was not shown good enough to be the result; it gets a patch of its own."""

    title: str
    kernel: Kernel
    reason: str
    correctness: Correctness
    speed: Speed


@dataclass(frozen=True, slots=True)
class Conclusion:
    """`kernel` is the result of a success, None otherwise."""

    outcome: Outcome
    summary: str
    kernel: Kernel | None
    offers: tuple[Offer, ...] = ()


def conclude(start: Measurement, found: Found, target: Target, require: Requirement) -> Conclusion:
    """The outcome of a search. A chain that was kept but is below the required evidence becomes an offer."""
    unshown = tuple(_offer(a) for a in found.attempts if a.fate is Fate.UNSHOWN)
    final = found.final
    if final is not None and isinstance(final.verdict, Accepted):
        missing = _missing(final.verdict, require)
        if not missing:
            mended = final.verdict.built_now or final.verdict.mended
            outcome = Outcome.BUILDS_NOW if mended else Outcome.IMPROVED
            return Conclusion(outcome, _success(found, final, target), found.best.kernel, unshown)
        because = f"{missing} ({final.doubt})" if final.doubt else missing
        chain = _chain_offer(found.best, final, because)
        return Conclusion(Outcome.INCONCLUSIVE, f"A candidate was found, but {because}.", None, (chain, *unshown))
    if unshown:
        return Conclusion(Outcome.INCONCLUSIVE, _unshown_summary(unshown, target), None, unshown)
    if not start.builds:
        return Conclusion(Outcome.REFUSED, _refusal(start, found.refusals, target), None)
    return Conclusion(Outcome.NOTHING, _nothing(start.kernel, found, target), None)


def _missing(verdict: Accepted, require: Requirement) -> str:
    """What stands between an accepted verdict and the required evidence; empty when it suffices.

    A file that builds now has no baseline to be faster than, so the speed requirement does not concern it, nor one in
    which something can be launched now.
    """
    if verdict.correctness < require.correctness:
        return f"its correctness is shown at the level {verdict.correctness} only; {require.correctness} is required"
    if not (verdict.built_now or verdict.mended) and verdict.speed < require.speed:
        return f"its gain is shown at the level {verdict.speed} only; {require.speed} is required"
    return ""


def _success(found: Found, final: Judgement, target: Target) -> str:
    assert isinstance(final.verdict, Accepted)
    shown = _SHOWN[final.verdict.correctness].format(arch=target.arch)
    shown += f" {_sentence(final.doubt)}" if final.doubt else ""
    skills = ", ".join(dict.fromkeys(a.proposal.origin for a in found.best.steps))
    if final.verdict.built_now:
        gain = final.verdict.gain
        later = f" Beyond that: {gain.statement}." if gain is not None else ""
        return f"The file did not build for {target.arch}; with {skills} it does. {shown}{later}"
    if final.verdict.mended:
        return f"{_sentence(final.verdict.mended)} With {skills}. {shown}"
    said = f"{_sentence(describe(final.verdict))} With {skills}. {shown}{_caution(final.verdict.speed, target)}"
    return " ".join([said, *(f"Also: {_sentence(m)}" for m in _mended(found))])


def _mended(found: Found) -> list[str]:
    """What steps of the chain mended that the recorded run did not meet."""
    verdicts = [step.judgement.verdict for step in found.best.steps if step.judgement is not None]
    return [v.mended for v in verdicts if isinstance(v, Accepted) and v.mended]


_SHOWN = {
    Correctness.NONE: "Nothing was shown about its results.",
    Correctness.COMPILED: "It compiles; no result was compared.",
    Correctness.INTERPRETED: "Its results matched in the Triton interpreter; it did not run on a {arch}.",
    Correctness.EXECUTED_ELSEWHERE: "Its results matched on a GPU of another architecture; it did not run on a {arch}.",
    Correctness.EMULATED: "Its {arch} code object ran in the CPU emulator and the results matched.",
    Correctness.EXECUTED: "It ran on a {arch} and the results matched.",
}


def _caution(speed: Speed, target: Target) -> str:
    return "" if speed is Speed.MEASURED else f" Not timed on {target.arch}."


def _sentence(text: str) -> str:
    text = text.strip().rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


def _offer(attempt: Attempt) -> Offer:
    verdict = attempt.judgement.verdict if attempt.judgement else None
    reason = attempt.reason
    if isinstance(verdict, NoGain) and not verdict.doubted:
        reason = f"unmeasured: only a timing on the target can show its effect ({attempt.proposal.why})"
    return Offer(attempt.proposal.title, attempt.proposal.kernel, reason, correctness_of(verdict), speed_of(verdict))


def _chain_offer(best: Candidate, final: Judgement, missing: str) -> Offer:
    title = " + ".join(dict.fromkeys(a.proposal.title for a in best.steps))
    return Offer(title, best.kernel, missing, correctness_of(final.verdict), speed_of(final.verdict))


def _unshown_summary(offers: tuple[Offer, ...], target: Target) -> str:
    first = offers[0]
    more = f" ({len(offers) - 1} more in the report)" if len(offers) > 1 else ""
    return f"Nothing could be shown for {target.arch}: {first.title}: {first.reason}{more}."


def _refusal(start: Measurement, refusals: tuple[Refusal, ...], target: Target) -> str:
    failure = f"The file does not build for {target.arch}: {start.failures[0].sentence.rstrip('.')}."
    if refusals:
        first = refusals[0]
        return f"{failure} Refused: {first.reason.rstrip('.')}. {first.route.rstrip('.')}."
    if place := _cuda_library(start.kernel) if "__nv_" in failure else "":
        name = PurePosixPath(start.kernel.filename).name
        return f"{failure} {place} imports CUDA's library, and edits are made to {name} only: {_NEUTRAL_LIBRARY}."
    return f"{failure} No skill repairs this kind of failure."


_NEUTRAL_LIBRARY = "import it there from triton.language.extra, which has each vendor's"
_CUDA_LIBRARY = re.compile(r"^(?=.*\bimport\b).*\bextra\.cuda\b", re.M)


def _cuda_library(kernel: Kernel) -> str:
    """Where a file beside the kernel imports CUDA's device library, one that the kernel names first; else empty."""
    words = set(re.findall(r"\w+", kernel.source))
    for name in sorted(kernel.companions, key=lambda n: (PurePosixPath(n).stem not in words, n)):
        text = kernel.companions[name]
        if name.endswith(".py") and (found := _CUDA_LIBRARY.search(text)):
            return f"{name} line {text.count(chr(10), 0, found.start()) + 1}"
    return ""


def _timed(found: Found) -> str:
    """How many of the attempts a clock saw, and whose."""
    verdicts = [a.judgement.verdict for a in found.attempts if a.judgement is not None]
    devices = [v.timed_on for v in verdicts if isinstance(v, NoGain) and v.timed_on is not None]
    return f", {len(devices)} of them timed on {devices[0]}" if devices else ""


def _nothing(kernel: Kernel, found: Found, target: Target) -> str:
    tried = len(found.attempts)
    waiting = [u.origin for u in found.unmatched if u.reason in (NEEDS_CLOCK, NEEDS_CLOCK_OF_TARGET)]
    foreign = any(u.reason == NEEDS_CLOCK_OF_TARGET for u in found.unmatched)
    clock = f"the clock of a {target.arch}" if foreign else "a GPU's clock"
    later = f" Untried without {clock}: {', '.join(waiting)}." if waiting else ""
    later += f" The search ended early: {found.stopped}." if found.stopped else ""
    if tried:
        edits = "1 edit was" if tried == 1 else f"{tried} edits were"
        return f"Nothing better was found for {target.arch}: {edits} tried{_timed(found)}.{later}"
    reason = "nothing that shows without running it" if waiting else "no skill applies to this file"
    if kernel.language is Language.TRITON and not parse_triton(kernel).functions:
        reason = (
            f"{PurePosixPath(kernel.filename).name} holds no kernel itself; give the file that holds what it launches"
        )
    return f"Nothing to change for {target.arch}: {reason}.{later}"
