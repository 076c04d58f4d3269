"""The HIP suite: each kernel as it came, what `wavesmith optimize` makes of it, and a version by hand, in counts.

    python benchmarks/hip_suite.py --target gfx950,gfx942 --out wavesmith-out/hip-suite

One row per case and target: the counter that decides before, after and by hand, summed over the same made-up launches.
`SQ_LDS_BANK_CONFLICT` is predicted by a model of the banks, everything
else is counted; nothing is timed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agent.candidate import Proposal
from agent.events import Progress
from agent.hip.baseline import HipBaseline, take_hip_baseline
from agent.hip.bench import HipBench
from agent.job import JobRequest, Options, Requirement
from agent.orchestrator import optimize
from sandbox.gain import summed
from sandbox.kernel import Kernel, load_kernel
from sandbox.target import load_target
from sandbox.verdict import Accepted, NoGain, Speed

SUITE = Path(__file__).resolve().parent / "suite_hip"
SEED = 1
SMALLEST = 64
"""Launches of less than a wavefront's elements are left out."""


@dataclass(frozen=True, slots=True)
class Row:
    """One case on one target. `before`, `ours` and `expert` are sums of `counter`; None for a version that was not
    shown right."""

    name: str
    arch: str
    counter: str
    outcome: str
    skills: tuple[str, ...]
    before: int
    ours: int | None
    expert: int | None
    least: float
    """How many times smaller `ours` has to be than `before`."""

    @property
    def times(self) -> float | None:
        return None if self.ours is None else self.before / max(self.ours, 1)

    @property
    def good(self) -> bool:
        return self.times is not None and self.times >= self.least


def cases() -> list[dict[str, Any]]:
    """The suite, with the counter that decides and the least factor for each kernel."""
    found: list[dict[str, Any]] = json.loads((SUITE / "cases.json").read_text())
    return found


def run_case(case: Mapping[str, Any], arch: str, folder: Path) -> Row:
    """Optimize one kernel and count it beside the expert's version, on the launches of a fixed seed."""
    kernel = load_kernel(SUITE / case["name"] / "kernel.hip")
    modelled = case["counter"] == "SQ_LDS_BANK_CONFLICT"
    require = Requirement(speed=Speed.MODELLED if modelled else Speed.STATIC)
    options = Options(require=require, seed=SEED)
    request = JobRequest(kernel, load_target(arch), f"{case['name']}.hip", kernel.source.encode(), options=options)
    report = optimize(request, folder / f"{case['name']}-{arch}", Progress())
    baseline = take_hip_baseline(request, Progress())
    bench = HipBench(request, baseline, Progress())
    patched = report.artifacts.patched_file
    ours = None
    if patched is not None:
        text = (folder / f"{case['name']}-{arch}" / patched).read_text()
        ours = _count(bench, baseline, kernel.with_source(text), case["counter"])
    expert = kernel.with_source((SUITE / case["name"] / "expert.hip").read_text())
    return Row(
        case["name"], arch, case["counter"], report.outcome,
        tuple(dict.fromkeys(a.origin for a in report.attempts if a.fate == "kept")),
        _count(bench, baseline, kernel, case["counter"]) or 0, ours,
        _count(bench, baseline, expert, case["counter"]) if _is_right(bench, baseline, expert) else None, case["least"],
    )  # fmt: skip


def _count(bench: HipBench, baseline: HipBaseline, kernel: Kernel, counter: str) -> int:
    program = bench.program(kernel)
    runs = [
        run
        for d in baseline.driven
        for launch, run in zip(d.launches, bench.runs(program, d), strict=True)
        if launch.shape.size >= SMALLEST
    ]
    return summed(r.counters for r in runs).get(counter, 0)


def _is_right(bench: HipBench, baseline: HipBaseline, kernel: Kernel) -> bool:
    judged = bench.judge(baseline.measurement, Proposal("expert", "expert", "By hand", "it was given", kernel))
    return isinstance(judged.verdict, Accepted | NoGain) and judged.verdict.correctness.validated


def table(rows: list[Row]) -> Iterator[str]:
    """The rows as Markdown."""
    yield "| kernel | target | counter | before | ours | by hand | fewer | expert / ours | skills |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for r in rows:
        times = "" if r.times is None else f"{r.times:.2f}x"
        beside = "" if not r.ours or r.expert is None else f"{r.expert / r.ours:.2f}"
        cells = [r.name, r.arch, r.counter, r.before, r.ours, r.expert, times, beside, ", ".join(r.skills) or r.outcome]
        yield "| " + " | ".join("" if c is None else str(c) for c in cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", default="gfx950,gfx942")
    parser.add_argument("--out", type=Path, default=Path("wavesmith-out/hip-suite"))
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    chosen = [c for c in cases() if not options.only or c["name"] in options.only]
    rows = [run_case(c, arch, options.out) for c in chosen for arch in options.target.split(",")]
    text = "\n".join(table(rows))
    print(text)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.md").write_text(text + "\n")
    (options.out / "results.json").write_text(
        json.dumps([{**asdict(r), "good": r.good} for r in rows], indent=2) + "\n"
    )
    sys.exit(0 if all(r.good for r in rows) else 1)


if __name__ == "__main__":
    main()
