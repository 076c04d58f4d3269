"""Time the suite on the GPU at hand: each kernel against its patched version and against the expert's.

    python benchmarks/run.py --patched wavesmith-out/gfx950 --out benchmarks/out
        [--external DIR] [--variants DIR] [--reports wavesmith-out/gfx950 wavesmith-out/gfx942]

`--patched DIR` holds one folder per case with the patched file (as `benchmarks/patch_suite.py` writes them); cases
without one are timed against the expert's version, else against themselves, and count as 1.0. `--external DIR` adds
the kernels that `benchmarks/external.py` fetched, `--variants DIR` what only a clock can choose between (as
`benchmarks/variants.py` writes it): ours is the fastest of a case. Needs torch, triton and numpy only. Writes
results.json and the page (`benchmarks/results_page.py`); prints a line per case, and can be stopped and started again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.cases import Case, load_cases  # noqa: E402
from benchmarks.results_page import best_of, spell, timed, write  # noqa: E402
from sandbox import device_lock  # noqa: E402
from sandbox.benchmark import PairTiming, TimingPlan, time_pair  # noqa: E402
from sandbox.timing_session import ProgramSpec, TimingError  # noqa: E402


def compare(case: Case, other: Path, work: Path, rounds: int) -> dict[str, Any]:
    """Ratio baseline / other with its interval, or the reason why there is none."""
    inputs = work / f"{case.name}_inputs.py"
    inputs.write_text(case.inputs)
    plan = TimingPlan(rounds=rounds, warmup_calls=3, warmup_s=0.3, call_timeout_s=600.0)
    baseline, candidate = (ProgramSpec(p.resolve(), case.entry, inputs.resolve()) for p in (case.kernel, other))
    try:
        timing: PairTiming = time_pair(baseline, candidate, plan)
    except TimingError as e:
        return {"fault": str(e)[-600:]}
    return timing.to_json()


def harness_passes(case: Case, kernel: Path) -> str | None:
    """None when the harness of the case passes with `kernel` on this GPU, else its last line."""
    paths = os.pathsep.join((str(kernel.parent), str(case.kernel.parent)))
    command, environment = [sys.executable, str(case.harness or kernel)], {**os.environ, "PYTHONPATH": paths}
    try:
        with device_lock.shared():  # not while another process of this benchmark has the clock
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=environment)
    except subprocess.TimeoutExpired:
        return "no end within 600 s"
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no message"])[-1][:300]


def tune(
    case: Case, folder: Path, work: Path, rounds: int, known: Sequence[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The variants of a case that are not known yet, each timed against the original."""
    done = {row["number"] for row in known}
    for path in sorted(folder.glob("*/edit.json"), key=lambda p: int(p.parent.name)):
        if int(path.parent.name) not in done:
            timing = compare(case, path.parent / case.kernel.name, work, rounds)
            yield {**json.loads(path.read_text()), "number": int(path.parent.name), "timing": timing}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--patched", type=Path, default=None)
    parser.add_argument("--external", type=Path, default=None, help="what `benchmarks/external.py fetch` made")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "out")
    parser.add_argument("--variants", type=Path, default=None, help="what `benchmarks/variants.py` wrote")
    parser.add_argument("--reports", type=Path, nargs="*", default=[], help="folders of patch_suite.py, for the page")
    parser.add_argument("--only", nargs="*", default=None, help="names of cases; `suite` or `external` for all of it")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--no-expert", action="store_true")
    parser.add_argument("--no-harness", action="store_true")
    parser.add_argument("--minutes", type=float, default=60.0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    store = options.out / "results.json"
    results: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
    end = time.monotonic() + options.minutes * 60
    for case in load_cases(options.external, options.only):
        if time.monotonic() > end:
            break
        row = results.setdefault(case.name, {"bottleneck": case.bottleneck, "origin": case.origin})
        if not options.no_harness and "harness" not in row:
            row["harness"] = harness_passes(case, case.kernel)
        patched = options.patched / case.name / case.kernel.name if options.patched else None
        if patched is not None and patched.exists() and "ours" not in row:
            row["ours"] = compare(case, patched, options.out, options.rounds)
            row["patched_harness"] = None if options.no_harness else harness_passes(case, patched)
        if options.variants is not None:
            known = row.setdefault("variants", [])
            for timed_variant in tune(case, options.variants / case.name, options.out, options.rounds, known):
                known.append(timed_variant)
                store.write_text(json.dumps(results, indent=1))
        if case.expert is not None and not options.no_expert and "expert" not in row:
            row["expert"] = compare(case, case.expert, options.out, options.rounds)
        if not {"ours", "expert", "baseline"} & row.keys():
            row["baseline"] = compare(case, case.kernel, options.out, min(options.rounds, 12))
        store.write_text(json.dumps(results, indent=1))
        ours, edit = best_of(row)
        print(f"{case.name:28} ours {spell(timed(ours)):32} {edit} expert {spell(timed(row.get('expert'))):32} "
              f"{row.get('harness') or 'harness ok'} {row.get('patched_harness') or ''} "
              f"{(row.get('expert') or {}).get('fault', '')[-200:]}", flush=True)  # fmt: skip
    write(options.out, results, options.reports)


if __name__ == "__main__":
    main()
