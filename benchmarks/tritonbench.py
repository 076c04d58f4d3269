"""Capture every Triton file of a folder for several targets and print what launched, what compiled, and why not.

    python benchmarks/tritonbench.py DIR [--targets gfx942,gfx950] [--results FILE] [--only REGEX]
        [--limit N] [--executor none] [--jobs N] [--repair]

`--repair`: files that do not build are given to the skills, and count as repaired when what comes out builds; nothing
is said about their results.

Made for TritonBench-G (`data/TritonBench_G_v1` of thunlp/TritonBench), works on any folder. One JSON line per file is
appended to the results file once it is known; a second run leaves out what is there. Nothing a file does stops it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agent.baseline import take_baseline
from agent.bench import SandboxBench
from agent.candidate import Attempt, Judgement, Measurement, Offers, Proposal
from agent.events import Progress
from agent.fix import SkillProposer
from agent.job import Budget, JobRequest, Options
from agent.search import Search
from sandbox.capture import Capture, capture
from sandbox.errors import WavesmithError
from sandbox.isolation import Limits
from sandbox.kernel import Kernel, load_kernel
from sandbox.target import Target, load_target
from sandbox.verdict import Accepted, Correctness, Speed
from skills.skill import load_library


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--targets", default="gfx942,gfx950")
    parser.add_argument("--results", type=Path, default=Path("tritonbench.jsonl"))
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--executor", default="auto", help="none: record and compile only")
    parser.add_argument("--wall-s", type=float, default=240.0)
    parser.add_argument("--launch-s", type=float, default=10.0)
    parser.add_argument("--jobs", type=int, default=1, help="files at a time")
    parser.add_argument("--repair", action="store_true")
    options = parser.parse_args()
    targets = [load_target(name) for name in options.targets.split(",")]
    files = [f for f in sorted(options.folder.glob("*.py")) if re.search(options.only, f.name)]
    files = files[: options.limit] if options.limit else files
    limits = Limits(wall_s=options.wall_s, launch_s=options.launch_s)
    for row in run(files, targets, limits, options.results, options.executor, options.jobs):
        print(line(row, targets), flush=True)
    if options.repair:
        repair(files, targets, options.results)
    rows = [row for row in read(options.results).values() if row["file"] in {f.name for f in files}]
    print(summary(rows, targets))


def run(
    files: Sequence[Path], targets: Sequence[Target], limits: Limits, results: Path, executor: str, jobs: int = 1
) -> Iterator[dict[str, Any]]:
    """One row per file as it becomes known; those of the results file first."""
    known = read(results)
    yield from (known[f.name] for f in files if f.name in known)
    with ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(measure, f, targets, limits, executor) for f in files if f.name not in known]
        for future in as_completed(waiting):
            row = future.result()
            with results.open("a") as out:
                out.write(json.dumps(row) + "\n")
            yield row


def repair(files: Sequence[Path], targets: Sequence[Target], results: Path) -> None:
    """What the skills make of files that do not build. Rows are appended: of a file the last one counts."""
    known = read(results)
    for file in files:
        row = known.get(file.name, {})
        failing = [t for t in targets if row.get("targets", {}).get(t.arch)]
        if failing and "repaired" not in row:
            row["repaired"] = {t.arch: repaired(file, t) for t in failing}
            print(f"{file.name[:44]:44} repaired: {row['repaired']}", flush=True)
            with results.open("a") as out:
                out.write(json.dumps(row) + "\n")


class Repairs:
    """Proposes until a file builds, and accepts what builds."""

    def __init__(self, target: Target, bench: SandboxBench) -> None:
        self.skills, self.bench = SkillProposer(target, load_library(), clock=None), bench

    def propose(self, measured: Measurement, history: Sequence[Attempt]) -> Offers:
        return Offers(()) if measured.builds else self.skills.propose(measured, history)

    def measure(self, kernel: Kernel) -> Measurement:
        return self.bench.measure(kernel)

    def judge(self, baseline: Measurement, proposal: Proposal) -> Judgement:
        return Judgement(Accepted(Correctness.COMPILED, Speed.NONE, None, built_now=True))


def repaired(file: Path, target: Target) -> str:
    """The skills that made a file build, or why none did."""
    request = JobRequest(
        kernel=load_kernel(file), path=file.name, original=file.read_bytes(), target=target,
        options=Options(executor="none"),
    )  # fmt: skip
    progress = Progress()
    try:
        baseline = take_baseline(request, progress)
        repairs = Repairs(target, SandboxBench(request, baseline, progress))
        found = Search(baseline.measurement, repairs, repairs, Budget(wall_s=300.0), progress).run()
    except WavesmithError as e:
        return f"fault: {one_line(str(e))}"
    if found.measured.builds:
        return "builds with " + ", ".join(dict.fromkeys(a.proposal.origin for a in found.best.steps))
    refused = [r.reason for r in found.refusals] or [f.sentence for f in found.measured.failures]
    return f"no: {one_line(refused[0]) if refused else 'nothing applies'}"


def read(results: Path) -> dict[str, dict[str, Any]]:
    """Rows by file name; a line that a killed run left half-written is dropped."""
    rows: dict[str, dict[str, Any]] = {}
    for text in results.read_text().splitlines() if results.is_file() else ():
        try:
            row = json.loads(text)
            rows[row["file"]] = row
        except (ValueError, KeyError):
            continue
    return rows


def measure(file: Path, targets: Sequence[Target], limits: Limits, executor: str) -> dict[str, Any]:
    started = time.monotonic()
    try:
        taken = capture(load_kernel(file), targets[-1], also=targets[:-1], limits=limits, executor=executor)
    except WavesmithError as e:
        return {"file": file.name, "launches": 0, "harness": "none", "reason": one_line(str(e)), "targets": {}}
    return {
        "file": file.name,
        "launches": len(taken.launches),
        "executed": sum(launch.execution.status == "executed" for launch in taken.launches),
        "kernels": list(taken.workload.kernels()),
        "entries": [f"{e.kind}:{e.qualname}" for e in taken.entries],
        "harness": taken.outcome.status,
        "form": taken.outcome.form,
        "reason": one_line(taken.outcome.exception or ""),
        "unknown": sorted(
            {one_line(x.execution.reason or "") for x in taken.launches if x.execution.status == "unknown"}
        ),
        "findings": sorted({f for launch in taken.launches for f in launch.execution.findings})[:5],
        "targets": {target.arch: failures(taken, target) for target in targets},
        "seconds": round(time.monotonic() - started, 1),
    }


def failures(taken: Capture, target: Target) -> list[str]:
    """Why launches do not compile or launch for the target, one line per distinct reason; empty when all do."""
    found: dict[str, None] = {}
    for launch in taken.launches:
        for record in launch.compiles:
            if record.arch == target.arch and not record.launches:
                found[f"{launch.kernel}: {one_line(record.message or record.limit or '')}"] = None
    return list(found)


def one_line(text: str) -> str:
    return " ".join(text.split())[:240]


def line(row: Mapping[str, Any], targets: Sequence[Target]) -> str:
    cells = [f"{row['file'][:44]:44}", f"{row['launches']:4}", f"{row.get('executed', 0):4}", f"{row['harness']:8}"]
    for target in targets:
        reasons = row["targets"].get(target.arch)
        verdict = "-" if reasons is None or not row["launches"] else "ok" if not reasons else "FAIL"
        cells.append(f"{verdict:5}")
    reasons = [r for target in targets for r in row["targets"].get(target.arch) or ()]
    text = reasons[0] if reasons else row["reason"] if row["harness"] != "passed" or not row["launches"] else ""
    unknown = row.get("unknown") or []
    return " ".join([*cells, text or (f"unknown: {unknown[0]}" if unknown else "")])


def summary(rows: Sequence[Mapping[str, Any]], targets: Sequence[Target]) -> str:
    launched = [row for row in rows if row["launches"]]
    static = sum(row.get("form") == "static" for row in launched)
    lines = [f"\n{len(rows)} files, launches recorded for {len(launched) - static}; from the signature only: {static}"]
    complete = sum(row["launches"] == row.get("executed") for row in launched)
    lines.append(f"every launch executed: {complete}; harness passed: {sum(r['harness'] == 'passed' for r in rows)}")
    for target in targets:
        built = sum(not row["targets"].get(target.arch, ["?"]) for row in launched)
        mended = sum(str(row.get("repaired", {}).get(target.arch, "")).startswith("builds") for row in launched)
        after = f"; {built + mended} with the skills" if mended else ""
        lines.append(f"{target.arch}: {built} compile and may launch as they are{after}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
