"""Run `wavesmith optimize` on every case of the suite and keep the patched files for `benchmarks/run.py`.

    python benchmarks/patch_suite.py --target gfx950 --out wavesmith-out/suite

One folder per case with patch, report and, where there is a patch, the patched file. Skips cases that are done, unless
they ended in a fault or ran out of time; prints a line per case, and writes what became of each and of the edits that
were tried (summary.md). With a GPU the candidates are executed and timed on it; there `--large` gives the search the
sizes of `benchmarks/run.py`, not the small ones of the checks in the files.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.cases import Case, load_cases
from benchmarks.optimize_sample import attempts_of, classify, page, run
from skills.skill import load_library


def patch(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    folder = options.out / case.name
    done = folder / "summary.json"
    if done.exists():
        row: dict[str, Any] = json.loads(done.read_text())
        if row["exit"] not in (None, 1):
            return row
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        *(sys.executable, "-c", "from api.cli import main; main()", "optimize", str(case.kernel)),
        *("--target", options.target, "--out", str(folder / "job"), "--budget-s", str(options.budget_s), "--json"),
        *harness_of(case, folder, options.large),
        *options.extra,
    ]
    began = time.monotonic()
    code, said, complaint = run(command, options.budget_s + 240)
    if code is None:
        said, complaint = "", f"no end within {options.budget_s + 240:.0f} s"
    try:
        report = json.loads(said or "{}")
        last = (complaint.strip().splitlines() or [""])[-1][:300]
    except ValueError as e:
        code, report, last = None, {}, f"{type(e).__name__}"
    row = {"name": case.name, "exit": code, "seconds": round(time.monotonic() - began, 1), "last": last}
    row |= {k: report.get(k) for k in ("outcome", "summary")}
    row["skills"] = skills_of(report)
    kind, _ = classify(code, complaint, report or None)
    row |= {"kind": kind, "attempts": attempts_of(report)}
    if code == 0:
        keep(case, folder / "job" / report["artifacts"]["patched_file"], folder)
    done.write_text(json.dumps(row))
    return row


LARGE_SUITE = """import torch
import {module} as program

if __name__ == "__main__":
    torch.manual_seed(1)
    program.{entry}(*program.{call})
"""
LARGE_EXTERNAL = """{harness}

if __name__ == "__main__":
    torch.manual_seed(1)
    run(*make_large())
"""


def harness_of(case: Case, folder: Path, large: bool) -> tuple[str, ...]:
    """The harness as options of `wavesmith optimize`; `large` writes one that runs what is timed, unchecked."""
    if not large:
        return ("--harness", str(case.harness)) if case.harness else ()
    path = folder / f"large_{case.name}.py"
    if case.harness is not None:
        own = case.harness.read_text().split("\nif __name__")[0].rstrip()
        path.write_text(LARGE_EXTERNAL.format(harness=own))
    else:
        call = "make_large()" if case.large is None else f"make_inputs(**{case.large!r})"
        path.write_text(LARGE_SUITE.format(module=case.kernel.stem, entry=case.entry, call=call))
    return ("--harness", str(path))


def skills_of(report: dict[str, Any]) -> dict[str, bool]:
    """The skills of the edits that are in the patch, and whether what they use exists on NVIDIA too."""
    library = load_library()
    parts = {a["origin"] for a in report.get("attempts", ()) if a["fate"] == "kept"}
    known = {s.id: any(t.startswith("sm_") for t in s.data.targets) for s in library}
    return {p: known.get(p, True) for p in sorted(parts)}


def keep(case: Case, patched: Path, folder: Path) -> None:
    """The patched file into `folder`, ready to be timed: an external one with all that it imports."""
    if case.harness is not None:
        shutil.copytree(case.kernel.parent, folder, dirs_exist_ok=True)
    shutil.copytree(patched.parent, folder, dirs_exist_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", default="gfx950")
    parser.add_argument("--out", type=Path, default=Path("wavesmith-out/suite"))
    parser.add_argument("--budget-s", type=float, default=120.0)
    parser.add_argument("--external", type=Path, help="what `benchmarks/external.py fetch` made; its cases too")
    parser.add_argument("--large", action="store_true", help="optimize for the sizes that are timed; needs a GPU")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="names of cases; `suite` or `external` for all of it")
    parser.add_argument("extra", nargs="*", help="further options of `wavesmith optimize`, after --")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    cases = load_cases(options.external, options.only)
    rows = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda c: patch(c, options), cases):
            rows.append(row)
            print(
                f"{row['name']:28} exit {row['exit']}  {row['seconds']:6} s  {row['summary'] or row['last']}",
                flush=True,
            )
    known = [{**row, "file": row["name"]} for row in rows]
    (options.out / "summary.md").write_text("\n".join(page(known)) + "\n")


if __name__ == "__main__":
    main()
