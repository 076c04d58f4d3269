"""Run `wavesmith optimize` on every case of the suite and keep the patched files for `benchmarks/run.py`.

    python benchmarks/patch_suite.py --target gfx950 --out wavesmith-out/suite

One folder per case with patch, report and, where there is a patch, the patched file. Skips cases that are done;
prints a line per case and a table at the end (summary.md). With a GPU the candidates are executed and timed on it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.cases import Case, load_cases
from skills.skill import load_library


def patch(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    folder = options.out / case.name
    done = folder / "summary.json"
    if done.exists():
        row: dict[str, Any] = json.loads(done.read_text())
        return row
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        *(sys.executable, "-c", "from api.cli import main; main()", "optimize", str(case.kernel)),
        *("--target", options.target, "--out", str(folder / "job"), "--budget-s", str(options.budget_s), "--json"),
        *(("--harness", str(case.harness)) if case.harness else ()),
        *options.extra,
    ]
    began = time.monotonic()
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=options.budget_s + 240, check=False)
        code, report = ended.returncode, json.loads(ended.stdout or "{}")
        last = (ended.stderr.strip().splitlines() or [""])[-1][:300]
    except (subprocess.TimeoutExpired, ValueError) as e:
        code, report, last = None, {}, f"{type(e).__name__}"
    row = {"name": case.name, "exit": code, "seconds": round(time.monotonic() - began, 1), "last": last}
    row |= {k: report.get(k) for k in ("outcome", "summary")}
    row["skills"] = skills_of(report)
    if code == 0:
        keep(case, folder / "job" / report["artifacts"]["patched_file"], folder)
    done.write_text(json.dumps(row))
    return row


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
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("extra", nargs="*", help="further options of `wavesmith optimize`, after --")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    cases = [c for c in load_cases(options.external) if not options.only or c.name in options.only]
    rows = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda c: patch(c, options), cases):
            rows.append(row)
            print(
                f"{row['name']:28} exit {row['exit']}  {row['seconds']:6} s  {row['summary'] or row['last']}",
                flush=True,
            )
    lines = ["| kernel | exit | seconds | summary |", "|---|---|---|---|"]
    lines += [f"| {r['name']} | {r['exit']} | {r['seconds']} | {r['summary'] or r['last']} |" for r in rows]
    (options.out / "summary.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
