"""Ask the clock the same question ten times: does it ever see a gain where there is none?

    python benchmarks/repeats.py benchmarks/good [--repeats 10] [--edits 2] [--jobs 4] [--results repeats.jsonl]

Each file of the folder, as recorded, is timed against itself (with a comment added, so that nothing takes it for the
same file) and against the first edits that wait for a clock, `--repeats` times each, every time as `wavesmith optimize`
times a candidate of its search. A line per file; one JSON line per pair is appended to the results file. Exits with 1
when a file was ever faster than itself. Needs a GPU; several processes, each with its own `CUDA_VISIBLE_DEVICES` and
`--part 1/2`, share the work.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agent.baseline import take_baseline
from agent.companions import load_with_companions
from agent.events import Progress
from agent.fix import SkillProposer
from agent.job import JobRequest, Options
from sandbox.capture import gpu_vendor
from sandbox.errors import WavesmithError
from sandbox.kernel import Kernel
from sandbox.target import load_target
from sandbox.timed import CallTimer, RecordedCall, timed_gain
from sandbox.timing_session import TimingError
from sandbox.workload import StoredWorkload
from skills.skill import load_library

ITSELF = "itself"


@dataclass(frozen=True, slots=True)
class Question:
    """One pair to be timed again and again."""

    file: str
    what: str
    baseline: Kernel
    candidate: Kernel
    stored: StoredWorkload


def questions_of(path: Path, arch: str, edits: int) -> Iterator[Question]:
    """The file against itself, and against the first edits that wait for a clock."""
    kernel, target = load_with_companions(path), load_target(arch)
    request = JobRequest(kernel, target, path.name, path.read_bytes(), options=Options(executor="gpu", seed=0))
    baseline = take_baseline(request, Progress(lambda _: None))
    yield Question(path.name, ITSELF, kernel, kernel.with_source(f"{kernel.source}\n# the same\n"), baseline.stored)
    offers = SkillProposer(target, load_library(), gpu_vendor()).propose(baseline.measurement, ())
    for proposal in [p for p in offers.proposals if p.needs_timing][:edits]:
        yield Question(path.name, proposal.id, kernel, proposal.kernel, baseline.stored)


def ask(question: Question, repeats: int) -> dict[str, Any]:
    """What the clock said each time: gain, slower, noise, or why it is not believed; and the ratios."""
    said, ratios = [], []
    timer = CallTimer(question.stored, [RecordedCall(0)])
    for _ in range(repeats):
        try:
            calls = timer.time(question.baseline, question.candidate)
        except TimingError as e:
            said.append(f"fault: {str(e).splitlines()[0][:160]}")
            continue
        found = timed_gain(calls, load_target("gfx950"))
        answer = "slower" if found.slower else "noise" if found.timed_on else f"not believed: {found.reason[:160]}"
        said.append("gain" if found.gain is not None else answer)
        ratios.append(round(calls[0].timing.interval.ratio, 4))
    timer.close()
    return {"file": question.file, "what": question.what, "said": said, "ratios": ratios}


def work(path: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    try:
        return [ask(q, options.repeats) for q in questions_of(path, options.target, options.edits)]
    except WavesmithError as e:
        return [{"file": path.name, "what": ITSELF, "said": [f"fault: {e}"], "ratios": []}]


def line_of(row: dict[str, Any]) -> str:
    counts = {
        word: sum(s.startswith(word) for s in row["said"]) for word in ("gain", "noise", "slower", "not", "fault")
    }
    spread = f"{min(row['ratios']):.3f} to {max(row['ratios']):.3f}" if row["ratios"] else "-"
    return f"{row['file']:28} {spread:16} {', '.join(f'{n} {w}' for w, n in counts.items() if n):30} {row['what']}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="gfx950")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--edits", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=4, help="files at a time")
    parser.add_argument("--part", default="1/1", help="K/N: every N-th file, from the K-th")
    parser.add_argument("--results", type=Path, default=Path("repeats.jsonl"))
    options = parser.parse_args()
    part, parts = (int(n) for n in options.part.split("/"))
    files = sorted(options.folder.glob("*.py"))[part - 1 :: parts]
    wrong = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for rows in pool.map(lambda f: work(f, options), files):
            for row in rows:
                wrong += row["what"] == ITSELF and "gain" in row["said"]
                with options.results.open("a") as out:
                    out.write(json.dumps(row) + "\n")
                print(line_of(row), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
