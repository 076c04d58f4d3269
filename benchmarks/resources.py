"""What the patches of the suite do to spills, LDS, compare-and-swap loops and atomics, on the target and on the other.

    python benchmarks/patch_suite.py --target gfx950 --out wavesmith-out/gfx950 --only suite -- --executor interpreter
    python benchmarks/patch_suite.py --target gfx942 --out wavesmith-out/gfx942 --only suite -- --executor interpreter
    python benchmarks/resources.py --reports wavesmith-out/gfx950 wavesmith-out/gfx942 [--results FILE]

reads what `patch_suite.py` left (one folder per architecture) and needs no GPU. Every original and every patched file
is compiled once more, without being executed, for the architecture it was made for and for the other ones; a case that
is shown at its large sizes (`cases.json`) at those too, with `--large` every case. Lane atomics are those of the
report: counted in the emulator, after the compiler combined what it can. Exits with 1 where one of these does not hold:

- no spill of vector registers is left by a patch on its own target, and a file that spills has a patch;
- no patch spills more vector registers than the original on any architecture (none where that does not compile), more
  scalar ones where that builds, or has an LDS overflow that it has not; and what builds there still does;
- what needs too much LDS on a target builds there with its patch;
- a case built around compare-and-swap loops has no such instruction left;
- the lane atomics of the bounds check fall to BLOCK / 64 of what they were, with a tenth of slack.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agent.baseline import Baseline, measure, take_baseline
from agent.candidate import Measurement
from agent.events import Progress
from agent.job import JobRequest, Options
from benchmarks.cases import Case, load_suite
from benchmarks.patch_suite import LARGE_SUITE
from sandbox.errors import WavesmithError
from sandbox.kernel import load_kernel, parse_kernel
from sandbox.target import Target, load_target

SLACK = 0.9
LANES = 64
SUMMED = ("vgpr_spill_count", "sgpr_spill_count", "cas_loop_count", "atomic_cas_count")
"""Metrics that are added up over the kernels of a file; of `lds_bytes` and `block_elements` the largest counts."""
BOUNDS_CHECK = "bounds_check"


@dataclass(frozen=True)
class Resources:
    """One version of a file on one architecture. `failure` says why it does not build; metrics are of what compiled."""

    failure: str
    vgpr_spill_count: float
    sgpr_spill_count: float
    cas_loop_count: float
    atomic_cas_count: float
    lds_bytes: float
    block_elements: float

    def over(self, target: Target) -> bool:
        return self.lds_bytes > target.lds_bytes_per_workgroup


@dataclass(frozen=True)
class Comparison:
    """A file before and after the patch that was made for `made_for`, compiled for `arch`. `after` None: no patch."""

    name: str
    made_for: str
    arch: str
    sizes: str
    before: Resources
    after: Resources | None
    lane_atomics: tuple[float, float] | None = None
    """Before and after, of the same calls in the emulator; None where the report claims no such count."""
    outcome: str = ""
    on_the_way: tuple[tuple[float, float], ...] = ()
    """Spills of vector registers that a step of the patch removed, where the original does not build and has none."""


def resources_of(measured: Measurement) -> Resources:
    """The kernels of a file together."""
    found = list(measured.metrics.values())
    sums = {m: sum(k.get(m, 0.0) for k in found) for m in SUMMED}
    most = {m: max((k.get(m, 0.0) for k in found), default=0.0) for m in ("lds_bytes", "block_elements")}
    failure = measured.failures[0].sentence if measured.failures else ""
    return Resources(failure, **sums, **most)


class Compiler:
    """One case's calls, recorded once without executing them; compiles other versions of the file for a target."""

    def __init__(self, case: Case, first: Target, large: bool) -> None:
        harness = None
        if large:
            call = "make_large()" if case.large is None else f"make_inputs(**{case.large!r})"
            text = LARGE_SUITE.format(module=case.kernel.stem, entry=case.entry, call=call)
            harness = parse_kernel(text.encode(), "large_harness.py")
        kernel, original = load_kernel(case.kernel), case.kernel.read_bytes()
        self.request = JobRequest(
            kernel, first, case.kernel.name, original, harness=harness, options=Options(executor="none")
        )
        self.baseline: Baseline = take_baseline(self.request, Progress())

    def compile(self, file: Path, target: Target) -> Resources:
        kernel = replace(load_kernel(file), filename=self.request.kernel.filename)
        return resources_of(measure(kernel, replace(self.request, target=target), self.baseline))


def read_reports(folders: Iterable[Path]) -> dict[str, dict[str, tuple[dict[str, Any], Path | None]]]:
    """By case and architecture, the report and the patched file, if there is one."""
    found: dict[str, dict[str, tuple[dict[str, Any], Path | None]]] = {}
    for folder in folders:
        for path in sorted(folder.glob("*/job/report.json")):
            report = json.loads(path.read_text())
            patched = report["artifacts"].get("patched_file") if report["exit_code"] == 0 else None
            file = path.parent / patched if patched else None
            found.setdefault(path.parent.parent.name, {})[report["target"]["arch"]] = report, file
    return found


def compare(case: Case, reports: Mapping[str, tuple[dict[str, Any], Path | None]], large: bool) -> list[Comparison]:
    """One case: each architecture's patch on each architecture that has reports."""
    targets = {arch: load_target(arch) for arch in reports}
    compiler = Compiler(case, next(iter(targets.values())), large)
    before = {arch: compiler.compile(case.kernel, t) for arch, t in targets.items()}
    rows = []
    for made_for, (report, patched) in reports.items():
        for arch, target in targets.items():
            after = compiler.compile(patched, target) if patched is not None else None
            counted = lane_atomics(report) if arch == made_for and not large else None
            spills = spills_on_the_way(report) if arch == made_for and not large else ()
            told = (counted, report["outcome"], spills)
            rows.append(Comparison(case.name, made_for, arch, "large" if large else "own", before[arch], after, *told))
    return rows


def lane_atomics(report: Mapping[str, Any]) -> tuple[float, float] | None:
    """Executed lane atomics before and after, from the judgement of the whole patch."""
    found = (m for m in report["speed"]["metrics"] if m["name"] == "lane_atomics")
    return next(((m["before"], m["after"]) for m in found), None)


def spills_on_the_way(report: Mapping[str, Any]) -> tuple[tuple[float, float], ...]:
    """Before and after of each step of the patch that had fewer spills of vector registers than the one before."""
    steps = (m for step in report["waterfall"] for m in step["metrics"])
    return tuple((m["before"], m["after"]) for m in steps if m["name"].endswith("vgpr_spill_count"))


def complaints(row: Comparison, bottleneck: str) -> list[str]:
    """What of the statement does not hold in one row."""
    target, own = load_target(row.arch), row.arch == row.made_for
    wrong = _own(row, bottleneck, target) if own else []
    if row.after is None:
        return wrong
    if row.before.failure == "" and row.after.failure:
        wrong.append(f"no longer builds: {row.after.failure}")
    for name in ("vgpr_spill_count", "sgpr_spill_count"):
        old, new = getattr(row.before, name), getattr(row.after, name)
        if new > old and (name.startswith("vgpr") or not row.before.failure):
            wrong.append(f"{name} {old:g} -> {new:g}")
    if row.after.over(target) and not row.before.over(target):
        wrong.append(f"LDS {row.before.lds_bytes:g} -> {row.after.lds_bytes:g} bytes, over the limit")
    return wrong


def _own(row: Comparison, bottleneck: str, target: Target) -> list[str]:
    """What a patch owes its own target."""
    after, wrong = row.after or row.before, []
    if after.vgpr_spill_count:
        wrong.append(f"{after.vgpr_spill_count:g} VGPR spills are left")
    if row.before.over(target) and (after.over(target) or after.failure):
        wrong.append(f"LDS overflow is left: {after.failure or f'{after.lds_bytes:g} bytes'}")
    if bottleneck == "atomic-cas-loops" and after.atomic_cas_count:
        wrong.append(f"{after.atomic_cas_count:g} compare-and-swap instructions are left")
    if row.name == BOUNDS_CHECK:
        wanted = SLACK * row.before.block_elements / LANES
        counted = row.lane_atomics
        if counted is None or not row.before.block_elements or counted[0] < wanted * counted[1]:
            wrong.append(f"lane atomics {counted}: less than {wanted:g} times fewer")
    return wrong


def line(row: Comparison, wrong: list[str]) -> str:
    """Before and after in one line."""
    b, a, limit = row.before, row.after or row.before, load_target(row.arch).lds_bytes_per_workgroup
    parts = [f"VGPR spills {b.vgpr_spill_count:g} -> {a.vgpr_spill_count:g}"]
    parts.append(f"SGPR spills {b.sgpr_spill_count:g} -> {a.sgpr_spill_count:g}")
    parts.append(f"LDS {b.lds_bytes:g} -> {a.lds_bytes:g} of {limit}")
    parts.append(f"CAS loops {b.cas_loop_count:g} -> {a.cas_loop_count:g}")
    if row.lane_atomics is not None:
        old, new = row.lane_atomics
        parts.append(f"lane atomics {old:g} -> {new:g}" + (f" ({old / new:.1f}x)" if new else ""))
    parts += [f"VGPR spills of a step {old:g} -> {new:g}" for old, new in row.on_the_way]
    builds = f"{'no' if b.failure else 'yes'} -> {'no' if a.failure else 'yes'}"
    where = row.made_for if row.arch == row.made_for else f"{row.made_for} on {row.arch}"
    large = " large" if row.sizes == "large" else ""
    text = f"{'MISS' if wrong else 'ok  '} {row.name + large:26} {where:16} builds {builds:10}  {', '.join(parts)}"
    return text + (f"  [{row.outcome}]" if row.after is None else "") + "".join(f"\n       {w}" for w in wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=Path, nargs="+", required=True, help="folders that patch_suite.py wrote")
    parser.add_argument("--only", nargs="*", help="names of cases")
    parser.add_argument("--large", action="store_true", help="at the sizes that are timed too: more memory and time")
    parser.add_argument("--results", type=Path, help="write the rows here, one JSON object a line")
    options = parser.parse_args()
    listing = json.loads((Path(__file__).parent / "suite" / "cases.json").read_text())
    shown_large = {c["name"] for c in listing if c.get("shown_at") == "large"}
    reports, rows, missed = read_reports(options.reports), list[Comparison](), 0
    for case in load_suite():
        if options.only and case.name not in options.only:
            continue
        mine = reports.get(case.name, {})
        try:
            if len(mine) < len(options.reports):
                raise LookupError(f"reports for {', '.join(mine) or 'nothing'} only")
            found = compare(case, mine, large=False)
            found += compare(case, mine, large=True) if options.large or case.name in shown_large else []
        except (WavesmithError, LookupError) as e:
            missed += 1
            print(f"MISS {case.name}: not compared, {type(e).__name__}: {e}", flush=True)
            continue
        for row in found:
            wrong = complaints(row, case.bottleneck)
            missed += bool(wrong)
            print(line(row, wrong), flush=True)
        rows += found
    if options.results is not None:
        options.results.write_text("".join(json.dumps(asdict(r)) + "\n" for r in rows))
    print(f"\n{len({r.name for r in rows})} cases, {len(rows)} comparisons, {missed} of them do not hold")
    return 1 if missed or not rows else 0


if __name__ == "__main__":
    raise SystemExit(main())
