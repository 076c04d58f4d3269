"""Whether the classifier names the bottleneck that each kernel of the suite was built around, without a GPU.

    python benchmarks/bottlenecks.py [--only NAME ...] [--results FILE]

Each case of `benchmarks/suite/cases.json` names its bottleneck, and where it shows on gfx942 only (LDS of 64 KiB) that
target; gfx950 otherwise. A case is run by its own harness (or recorded at its large sizes where it says so), compiled
for the target and emulated; of all its kernels' bottlenecks the severest counts as named first. `does-not-build` is
one. A case built around another bottleneck that does not build for the target either (CUDA's libdevice, options of
NVIDIA) is repaired first, by the skill library's repairs alone, as `wavesmith optimize` does. Prints one line per case
and the share that agrees; exits with 1 below 90%.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agent.baseline import measure as measure_kernel
from agent.baseline import take_baseline
from agent.candidate import Attempt
from agent.events import Progress
from agent.fix import SkillProposer
from agent.job import JobRequest, Options
from agent.profiling import profile_file, rank
from benchmarks.cases import Case, load_cases
from benchmarks.tritonbench import one_line, read
from sandbox.errors import WavesmithError
from sandbox.kernel import load_kernel, parse_kernel
from sandbox.target import load_target
from skills.skill import load_library

ROOT = Path(__file__).resolve().parent.parent
TARGET = "gfx950"
WANTED = 0.9
MAX_REPAIRS = 6
LARGE = """\
import {module} as module

if __name__ == "__main__":
    module.{entry}(*module.make_inputs(**{sizes!r}))
"""
"""Harness of a case whose bottleneck needs sizes that are multiples of its tiles: recorded, not executed."""
NO_REPAIR = ("does-not-build", "lds-overflow", "launch-limit")
"""Bottlenecks that are what a repair would remove."""


def measure(case: Case, target: str, large: bool = False) -> dict[str, Any]:
    """One row: the bottlenecks found, severest first."""
    row: dict[str, Any] = {"file": case.name, "target": target, "expected": case.bottleneck, "found": [], "reason": ""}
    kernel = load_kernel(case.kernel)
    executor, harness = "interpreter", None
    if large:
        text = LARGE.format(module=case.kernel.stem, entry=case.entry, sizes=case.large)
        executor, harness = "none", parse_kernel(text.encode(), "large_harness.py")
    request = JobRequest(
        kernel,
        load_target(target),
        case.kernel.name,
        case.kernel.read_bytes(),
        harness=harness,
        options=Options(executor=executor),
    )
    try:
        if case.bottleneck not in NO_REPAIR:
            request, row["repairs"] = repaired(request)
        _, kernels = profile_file(request, Progress())
    except WavesmithError as e:
        return {**row, "reason": one_line(str(e))}
    found = rank(*(k.bottlenecks for k in kernels))
    row["found"] = [[b.name, round(b.severity, 2), one_line(b.statement)] for b in found]
    row["reason"] = "; ".join(f"{k.kernel}: {k.note}" for k in kernels if k.note)
    return row


def repaired(request: JobRequest) -> tuple[JobRequest, list[str]]:
    """The request with a kernel that builds, and the skills that repaired it; unchanged where it builds already."""
    baseline = take_baseline(request, Progress())
    measured, names = baseline.measurement, list[str]()
    proposer = SkillProposer(request.target, load_library(), clock=None)
    history: list[Attempt] = []
    while not measured.builds and len(names) < MAX_REPAIRS:
        offers = proposer.propose(measured, history)
        better = None
        for proposal in (p for p in offers.proposals if p.repair):
            tried = measure_kernel(proposal.kernel, request, baseline)
            if len(tried.failures) < len(measured.failures):
                better = proposal, tried
                break
        if better is None:
            break
        names.append(better[0].origin)
        measured = better[1]
    if measured.builds and names:
        request = replace(request, kernel=measured.kernel, original=measured.kernel.source.encode())
    return request, names


def agrees(row: dict[str, Any]) -> bool:
    return bool(row["found"]) and row["found"][0][0] == row["expected"]


def line(row: dict[str, Any]) -> str:
    first = f"{row['found'][0][0]} ({row['found'][0][1]}): {row['found'][0][2]}" if row["found"] else row["reason"]
    others = ", ".join(f"{name} {severity}" for name, severity, _ in row["found"][1:4])
    mark = "ok  " if agrees(row) else "MISS"
    return f"{mark} {row['file']:26} {row['target']} {row['expected']:18} {first[:90]}" + (
        f"  | {others}" if others else ""
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--results", type=Path, default=None, help="keep rows here; known ones are not measured again")
    options = parser.parse_args()
    known = read(options.results) if options.results is not None else {}
    listing = json.loads((ROOT / "benchmarks" / "suite" / "cases.json").read_text())
    targets = {c["name"]: c["target"] for c in listing if "target" in c}
    large = {c["name"] for c in listing if c.get("shown_at") == "large"}
    rows = []
    for case in load_cases():
        if options.only and case.name not in options.only:
            continue
        row = known.get(case.name) or measure(case, targets.get(case.name, TARGET), case.name in large)
        if options.results is not None and case.name not in known:
            with options.results.open("a") as out:
                out.write(json.dumps(row) + "\n")
        rows.append(row)
        print(line(row), flush=True)
    right = sum(agrees(row) for row in rows)
    print(f"\n{right} of {len(rows)} named first ({right / max(1, len(rows)):.0%})")
    return 0 if right >= WANTED * len(rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
