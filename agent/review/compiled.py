"""Findings that compiled code gives: what fails to build or launch, spills, atomics. Nothing is run for results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent.baseline import Baseline, measure, take_baseline
from agent.candidate import Failure, Measurement
from agent.companions import load_with_companions
from agent.events import Progress
from agent.fix import SkillProposer
from agent.job import Budget, JobRequest, Options
from agent.review.source import OwnerOf, Sighting, normal_python, owner_of_python
from sandbox.bottleneck import classify
from sandbox.kernel import Kernel
from sandbox.limits import LIMIT_NAMES
from sandbox.profiler.metrics import Profile
from sandbox.target import Target
from skills.skill import load_library

if TYPE_CHECKING:
    from agent.port.result import PortResult

_MAX_REPAIRS = 3
_LDS = re.compile(r"shared memory.*(Required|Hardware limit)|out of resource: shared", re.IGNORECASE)
"""What Triton raises where it refuses a launch itself."""


@dataclass(frozen=True, slots=True)
class Side:
    """One version of a kernel file in a folder of its own."""

    folder: Path
    path: str
    harness: str | None = None

    @property
    def file(self) -> Path:
        return self.folder / self.path

    def request(self, target: Target, *, executor: str = "none", wall_s: float = 0.0) -> JobRequest:
        """The file as the input of a job; raises `InputError` for one that cannot be used."""
        harness = load_with_companions(self.folder / self.harness) if self.harness else None
        options = Options(executor=executor, budget=Budget(wall_s=wall_s) if wall_s else Budget())
        kernel = load_with_companions(self.file)
        return JobRequest(kernel, target, self.path, self.file.read_bytes(), harness, options=options)


def compiled_sightings(side: Side, target: Target, progress: Progress, *, repair: bool) -> list[Sighting]:
    """Compile one version for `target`. With `repair`, a failing file is also tried with the skills that mend it."""
    request = side.request(target)
    baseline = take_baseline(request, progress)
    measured = baseline.measurement
    owner = owner_of_python(request.kernel.source)
    mended, title = _mend(request, baseline, progress) if repair and measured.failures else (None, "")
    found = list(_failures(measured, owner))
    if mended is not None:
        remedy = f"{title.rstrip('.')}: with this edit it compiles. Results were not compared."
        found = [replace(s, repaired=mended, title=title, builds=True, remedy=remedy) for s in found]
    found += _resources(measured, target, owner, request.kernel.filename)
    return [replace(s, targets=(target.arch,), end_line=s.line, evidence="compiled") for s in found]


def _failures(measured: Measurement, owner: OwnerOf) -> Iterator[Sighting]:
    for failure in measured.failures:
        line = failure.line or 1
        kind = failure.limit_kind or ("lds" if _LDS.search(failure.message) else None)
        rule = LIMIT_NAMES[kind] if kind is not None else "does-not-build"
        kernel = failure.kernel if rule != "does-not-build" else failure.kernel or owner(line)
        code = normal_python(failure.source_line or "") if rule == "does-not-build" else ""
        yield Sighting(rule, kernel, line, code, _sentence(failure))


def _sentence(failure: Failure) -> str:
    message = " ".join(failure.message.split())
    return f"{failure.kernel}: {message[:500]}"


def _resources(measured: Measurement, target: Target, owner: OwnerOf, filename: str) -> Iterator[Sighting]:
    for name, profile in measured.profiles.items():
        first = next(iter(owner.lines_of(name)), 1)
        spills = profile.count("vgpr_spill_count") + profile.count("sgpr_spill_count")
        if spills:
            scratch = profile.count("scratch_bytes")
            message = f"{name} spills {spills} registers on {target.arch} ({scratch} bytes of scratch per lane)."
            remedy = "Smaller tiles, more warps or fewer pipeline stages need fewer registers."
            yield Sighting("spills", name, first, "", message, remedy, value=float(spills))
        yield from _atomics(name, profile, target, first, filename)


def _atomics(name: str, profile: Profile, target: Target, first: int, filename: str) -> Iterator[Sighting]:
    """Compare-and-swap loops; or atomics inside the kernel's own loops, which those of the former are not."""
    known = {b.name: b for b in classify(profile, target)}
    found = known.get("atomic-cas-loops")
    if found is None and profile.count("global_atomic_count_in_loops"):
        found = known.get("atomics")
    if found is None:
        return
    line = next((s.line for s in found.sites if s.file.endswith(filename)), first)
    value = profile.count("cas_loop_count") or profile.count("global_atomic_count_in_loops")
    remedy = "Reduce within the workgroup first, or use a type that has an atomic instruction."
    yield Sighting("atomics", name, line, found.name, f"{name}: {found.statement}.", remedy, value=float(value))


def _mend(request: JobRequest, baseline: Baseline, progress: Progress) -> tuple[Kernel | None, str]:
    """The first repair with which every launch compiles and may be launched, and what it is called."""
    offers = SkillProposer(request.target, load_library(), None).propose(baseline.measurement, ())
    for proposal in [p for p in offers.proposals if p.repair][:_MAX_REPAIRS]:
        progress.step(f"compiling {request.path} with {proposal.title}")
        if measure(proposal.kernel, request, baseline).builds:
            return proposal.kernel, proposal.title
    return None, ""


def ported_sightings(side: Side, target: Target, includes: tuple[str, ...], progress: Progress) -> list[Sighting]:
    """Port one CUDA or HIP file, without executing it, and read what the compiler says of the result.

    Raises `InputError` for a file that cannot be ported and `ToolMissing` without a compiler.
    """
    from agent.port.loop import port
    from agent.port.request import PortRequest

    folders = tuple(f for name in includes if (f := side.folder / name).is_dir())
    request = PortRequest(side.file, targets=(target.arch,), include_folders=folders, execute=False)
    result = port(request, progress.step)
    found = [*_port_failures(result), *_port_resources(result)]
    return [replace(s, targets=(target.arch,), end_line=s.line, evidence="compiled") for s in found]


def _port_failures(result: PortResult) -> Iterator[Sighting]:
    for d in result.diagnostics:
        if d.severity == "error":
            line = d.line or 1
            yield Sighting("does-not-build", "", line, d.message[:200], f"After porting: {d.message[:500]}.")


def _port_resources(result: PortResult) -> Iterator[Sighting]:
    for f in result.findings:
        if f.kind == "lds-over-limit":
            yield Sighting("lds-overflow", f.kernel, f.line, "", f"{f.kernel}: {f.message}.")
        elif f.kind == "spills":
            count = re.match(r"\d+", f.message)
            value = float(count.group()) if count else None
            yield Sighting("spills", f.kernel, f.line, "", f"{f.kernel}: {f.message}.", value=value)
