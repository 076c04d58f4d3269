"""`wavesmith optimize` on a seeded sample of a folder of Triton files: what became of each, and how often.

    python benchmarks/optimize_sample.py DIR [--target gfx950] [--count 40] [--seed 0] [--results FILE]
        [--timeout-s 900] [--jobs N] [--executor emulator] [--all KIND] [--page FILE]

Made for TritonBench-G (`data/TritonBench_G_v1` of thunlp/TritonBench), works on any folder. Every success is judged
once more by `wavesmith verify`, with other secret inputs: one that does not hold is a false "validated". One JSON
line per file is appended to the results file; a second run leaves out what is there. Exits with 1 when a file met a
fault of ours or a false "validated", or is not what --all demands. --page writes what became of each file, and of the
edits that were tried on it, as Markdown.

    python benchmarks/optimize_sample.py benchmarks/good --count 99 --all nothing

shows that kernels which are good already (`benchmarks/good`) are left alone.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-P", "-c", "from api.cli import main; main()")
KINDS = (
    "built-now", "measured", "measured-elsewhere", "counted", "static", "nothing", "refused", "inconclusive",
    "bad-input", "timeout", "fault", "false-validated",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="gfx950")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=None)
    parser.add_argument("--timeout-s", type=float, default=900.0)
    parser.add_argument("--jobs", type=int, default=1, help="files at a time")
    parser.add_argument("--executor", default="auto")
    parser.add_argument("--all", choices=KINDS, help="what every file must be; `nothing` for benchmarks/good")
    parser.add_argument("--page", type=Path, help="write the results as Markdown, too")
    options = parser.parse_args()
    results = options.results or Path(f"optimize-sample-{options.target}-{options.seed}.jsonl")
    files = sample(options.folder, options.count, options.seed)
    known = {row["file"]: row for row in map(json.loads, results.read_text().splitlines())} if results.exists() else {}
    words = ["--target", options.target, "--executor", options.executor]
    with ThreadPoolExecutor(options.jobs) as pool:
        new = [pool.submit(work, f, words, options.timeout_s) for f in files if f.name not in known]
        for future in as_completed(new):
            row = future.result()
            known[row["file"]] = row
            with results.open("a") as out:
                out.write(json.dumps(row) + "\n")
            print(f"{row['kind']:16} {row['seconds']:6.0f} s  {row['file']}: {row['summary'][:160]}", flush=True)
    rows = [known[f.name] for f in files]
    print(table(rows))
    if options.page is not None:
        options.page.write_text("\n".join(page(rows)) + "\n")
    wrong = [row for row in rows if row["kind"] in ("fault", "false-validated")]
    wrong += [row for row in rows if options.all and row["kind"] != options.all]
    return 1 if wrong else 0


def sample(folder: Path, count: int, seed: int) -> list[Path]:
    """The same files for the same folder, count and seed, in an order of their own."""
    files = sorted(folder.glob("*.py"))
    return random.Random(seed).sample(files, min(count, len(files)))


def work(file: Path, how: Sequence[str], timeout_s: float) -> dict[str, Any]:
    """One file: optimize it with the options `how`, and verify what came out."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="wavesmith-sample-") as name:
        out = Path(name)
        search = ["--budget-s", f"{0.6 * timeout_s:.0f}"]  # what is found by then is confirmed and reported
        words = ["optimize", str(file.resolve()), *how, *search, "--out", str(out)]
        code, said, complaints = run([*COMMAND, *words], timeout_s, out)
        report = json.loads((out / "report.json").read_text()) if (out / "report.json").is_file() else None
        kind, summary = classify(code, said + complaints, report)
        verified = None
        if code == 0 and report is not None:
            patched = out / report["artifacts"]["patched_file"]
            words = ["verify", str(file.resolve()), str(patched), *how, "--json"]
            verified, said, complaints = run([*COMMAND, *words], timeout_s, out)
            if verified == 4:
                kind, summary = "false-validated", (said + complaints)[-400:]
    levels = [report["correctness"]["level"], report["speed"]["level"]] if report else []
    return {
        "file": file.name,
        "kind": kind,
        "exit_code": code,
        "summary": summary,
        "levels": levels,
        "attempts": attempts_of(report or {}),
        "verify_exit_code": verified,
        "seconds": round(time.monotonic() - began, 1),
    }


def attempts_of(report: Mapping[str, Any]) -> list[list[str]]:
    """Name, fate and reason of each edit that was tried."""
    return [[a["id"], a["fate"], a["reason"][:200]] for a in report.get("attempts", ())]


def run(command: Sequence[str], timeout_s: float, folder: Path | None = None) -> tuple[int | None, str, str]:
    """Exit status (None when the time was up), output and complaints; asked to end, so that its children end too."""
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            said, complaints = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.terminate()
            said, complaints = process.communicate()
            return None, said, complaints
    return process.returncode, said, complaints


def classify(code: int | None, said: str, report: dict[str, Any] | None) -> tuple[str, str]:
    last = said.strip().splitlines()[-1] if said.strip() else ""
    if code is None:
        return "timeout", last
    if report is None or code not in (0, 3, 4, 5):
        return ("bad-input" if code == 2 else "fault"), last
    kind = {3: "nothing", 4: "refused", 5: "inconclusive"}.get(code)
    if kind is None:
        kind = "built-now" if report["outcome"] == "builds-now" else str(report["speed"]["level"])
    return kind, str(report["summary"])


def table(rows: Sequence[dict[str, Any]]) -> str:
    counts = Counter(row["kind"] for row in rows)
    lines = [f"{kind:16} {counts[kind]:4}" for kind in KINDS if counts[kind]]
    return "\n".join([*lines, f"{'files':16} {len(rows):4}"])


def page(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What became of each file and of the edits that were tried, most successful first."""
    counts = Counter(row["kind"] for row in rows)
    yield f"{len(rows)} files: " + ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]) + "."
    yield ""
    yield "| file | outcome | kept | other edits |"
    yield "|---|---|---|---|"
    for row in sorted(rows, key=lambda r: (KINDS.index(r["kind"]), r["file"])):
        kept = [f"{name}: {_first(reason)}" for name, fate, reason in row["attempts"] if fate == "kept"]
        others = Counter(_class_of(reason) for _, fate, reason in row["attempts"] if fate != "kept")
        fates = ", ".join(f"{n} {what}" for what, n in others.most_common())
        yield f"| {row['file']} | {row['kind']} | {'; '.join(kept)} | {fates} |"


def _first(reason: str) -> str:
    return reason.split(";")[0].replace("|", "/")


_CLASSES = (
    (r"no difference above the noise", "no difference"), (r"slower", "slower"),
    (r"rejected by the check (\S+?):", r"\1"),
    (r"crashed", "crashed"), (r"does not build|still does not build", "does not build"),
    (r"the baseline differs from itself", "baseline differs from itself"), (r"the times cannot", "times not believed"),
    (r"the times could not", "not timed"), (r"in a timed call", "wrong in a timed call"),
    (r"no resource of|is worse|no resource moved", "no gain in the code object"),
)  # fmt: skip


def _class_of(reason: str) -> str:
    """The kind of reason, in a few words."""
    for pattern, said in _CLASSES:
        found = re.search(pattern, reason)
        if found is not None:
            return found.expand(said)
    return _first(reason)[:60]


if __name__ == "__main__":
    sys.exit(main())
