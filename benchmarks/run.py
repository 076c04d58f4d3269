"""Time the suite on the GPU at hand: each kernel against its patched version and against the hand-written one.

    python benchmarks/run.py --patched wavesmith-out/suite --out benchmarks/out

`--patched DIR` holds one folder per case with the patched `kernel.py` (as `benchmarks/patch_suite.py` writes them);
cases without one are timed against the hand-written version only and count as 1.0. Needs torch, triton and numpy only.
Writes results.json and results.md; prints a line per case, and can be stopped and started again.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from sandbox.benchmark import PairTiming, TimingPlan, time_pair  # noqa: E402
from sandbox.timing_session import ProgramSpec, TimingError  # noqa: E402

INPUTS = """
import importlib.util, torch
spec = importlib.util.spec_from_file_location("trusted_baseline", {kernel!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
made = {{}}

def make(seed, device):
    if seed % 3 not in made:
        torch.manual_seed(seed)
        made[seed % 3] = {call}
    return tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in made[seed % 3]), {{}}
"""


@dataclass(frozen=True)
class Case:
    name: str
    kernel: Path
    entry: str
    bottleneck: str
    large: dict[str, Any] | None
    expert: Path | None


def load_cases() -> list[Case]:
    folder = ROOT / "benchmarks" / "suite"
    cases = []
    for c in json.loads((folder / "cases.json").read_text()):
        kernel = ROOT / c["kernel"] if "kernel" in c else folder / c["name"] / "kernel.py"
        expert = folder / c["name"] / "expert.py"
        cases.append(
            Case(
                c["name"],
                kernel,
                c.get("entry", "run"),
                c["bottleneck"],
                c.get("large"),
                expert if expert.exists() else None,
            )
        )
    return cases


def compare(case: Case, other: Path, work: Path, rounds: int) -> dict[str, Any]:
    """Ratio baseline / other with its interval, or the reason why there is none."""
    call = "module.make_large()" if case.large is None else f"module.make_inputs(**{case.large!r})"
    inputs = work / f"{case.name}_inputs.py"
    inputs.write_text(INPUTS.format(kernel=str(case.kernel), call=call))
    plan = TimingPlan(rounds=rounds, warmup_calls=3, warmup_s=0.3)
    specs = [ProgramSpec(p.resolve(), case.entry, inputs.resolve()) for p in (case.kernel, other)]
    try:
        timing: PairTiming = time_pair(*specs, plan)
    except TimingError as e:
        return {"fault": str(e)[-600:]}
    return timing.to_json()


def harness_passes(kernel: Path) -> str | None:
    """None when the file's own harness passes on this GPU, else its last line."""
    done = subprocess.run([sys.executable, str(kernel)], capture_output=True, text=True, timeout=300, check=False)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no message"])[-1][:300]


def ratio_of(result: dict[str, Any] | None) -> float | None:
    """The ratio as reported: 1.0 for a difference inside noise, None where nothing could be timed."""
    if result is None or "fault" in result:
        return None
    if result["gain"] or result["interval"]["high"] < 1 / (1 + result["noise_floor"]):
        return float(result["interval"]["ratio"])
    return 1.0


def spell(result: dict[str, Any] | None) -> str:
    if result is None:
        return "-"
    if "fault" in result:
        return "not timed"
    i = result["interval"]
    mark = " (suspect)" if result["suspicions"] else ""
    return f"{i['ratio']:.2f}x [{i['low']:.2f}, {i['high']:.2f}]{mark}"


def page(results: dict[str, Any]) -> str:
    device = next((r["ours"]["device"] for r in results.values() if "device" in (r.get("ours") or {})), None)
    device = device or next(r["expert"]["device"] for r in results.values() if "device" in (r.get("expert") or {}))
    lines = [
        f"# Suite on {device}",
        "",
        "Ratios baseline / other, interleaved, 95% bootstrap interval; above 1 is faster.",
        "",
    ]
    lines += ["| kernel | bottleneck | ours | expert | ours / expert |", "|---|---|---|---|---|"]
    gains, shares = [], []
    for name, r in results.items():
        ours, expert = ratio_of(r.get("ours")), ratio_of(r.get("expert"))
        share = ours / expert if ours and expert else None
        gains.append(ours or 1.0)
        if share:
            shares.append(share)
        lines.append(
            f"| {name} | {r['bottleneck']} | {spell(r.get('ours'))} | {spell(r.get('expert'))} | "
            f"{'-' if share is None else f'{share:.2f}'} |"
        )
    improved = sum(g > 1 for g in gains)
    middle = f"geomean {geomean(gains):.2f}x, median {statistics.median(gains):.2f}x over all"
    lines += ["", f"{improved} of {len(gains)} faster; {middle}."]
    if shares:
        lines.append(f"Ours over expert: geomean {geomean(shares):.2f} over {len(shares)}.")
    return "\n".join(lines) + "\n"


def geomean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--patched", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "out")
    parser.add_argument("--only", nargs="*", default=None)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--no-expert", action="store_true")
    parser.add_argument("--no-harness", action="store_true")
    parser.add_argument("--minutes", type=float, default=60.0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    store = options.out / "results.json"
    results: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
    end = time.monotonic() + options.minutes * 60
    for case in load_cases():
        if (options.only and case.name not in options.only) or time.monotonic() > end:
            continue
        row = results.setdefault(case.name, {"bottleneck": case.bottleneck})
        if not options.no_harness and "harness" not in row:
            row["harness"] = harness_passes(case.kernel)
        patched = options.patched / case.name / "kernel.py" if options.patched else None
        if patched is not None and patched.exists() and "ours" not in row:
            row["ours"] = compare(case, patched, options.out, options.rounds)
            row["patched_harness"] = harness_passes(patched)
        if case.expert is not None and not options.no_expert and "expert" not in row:
            row["expert"] = compare(case, case.expert, options.out, options.rounds)
        store.write_text(json.dumps(results, indent=1))
        print(f"{case.name:28} ours {spell(row.get('ours')):32} expert {spell(row.get('expert')):32} "
              f"{row.get('harness') or 'harness ok'} {row.get('patched_harness') or ''} "
              f"{(row.get('expert') or {}).get('fault', '')[-200:]}", flush=True)  # fmt: skip
    (options.out / "results.md").write_text(page(results))


if __name__ == "__main__":
    main()
