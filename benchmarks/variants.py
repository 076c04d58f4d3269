"""Write the launch numbers that only a clock can choose between, for `benchmarks/run.py --variants DIR` to time.

    python benchmarks/variants.py --patched wavesmith-out/gfx950 --out wavesmith-out/variants [--external DIR]

Without a GPU: each case's patched file (the original, where there is none) is compiled for the target, and the first
variants that `config-retune` and the other skills that wait for a clock propose and that build become one folder each,
`DIR/CASE/1`, `DIR/CASE/2`, ... The check's small inputs stand for the large ones, but for the size of the grid; with
`--large` the large ones are recorded, which takes their memory and is what matrix products need.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agent.baseline import measure, take_baseline
from agent.candidate import Measurement, Proposal
from agent.companions import load_with_companions
from agent.events import Progress
from agent.fix import SkillProposer
from agent.job import JobRequest, Options
from benchmarks.cases import Case, load_cases
from benchmarks.patch_suite import harness_of as large_harness
from sandbox.errors import WavesmithError
from sandbox.target import load_target
from skills.facts import Facts
from skills.skill import load_library

LARGE_GRID = 100_000
"""Programs of a launch on the inputs that are timed, where a variant may not leave compute units idle."""


def start_of(case: Case, patched: Path | None) -> Path:
    """The file that is varied."""
    path = patched / case.name / case.kernel.name if patched is not None else case.kernel
    return path if path.exists() else case.kernel


def enlarged(measured: Measurement) -> Measurement:
    """What was measured, as of large inputs."""
    facts = measured.facts
    kernels = {name: known.with_values({"launch.grid_programs": LARGE_GRID}) for name, known in facts.kernels.items()}
    return replace(measured, facts=Facts(facts.known, facts.missing, kernels))


def harness_of(case: Case, options: argparse.Namespace) -> Path | None:
    """What calls the kernel: with the inputs that are timed, where `--large` asks for them."""
    if not options.large:
        return case.harness
    folder = options.out / case.name
    folder.mkdir(parents=True, exist_ok=True)
    return Path(large_harness(case, folder, True)[1])


def variants_of(case: Case, start: Path, options: argparse.Namespace) -> list[Proposal]:
    """The first proposals that wait for a clock, build for the target, and spill no more than before; of the original
    too, where the patched file has taken a skill's turn that would have come first with a clock."""
    found = _offered(case, start, options, frozenset())
    if start != case.kernel:
        found += _offered(case, case.kernel, options, frozenset(p.origin for p in found))
    return found


def _offered(case: Case, start: Path, options: argparse.Namespace, known: frozenset[str]) -> list[Proposal]:
    """Variants of one file, by other skills than the known ones."""
    target = load_target(options.target)
    path = harness_of(case, options)
    harness = load_with_companions(path) if path is not None else None
    kernel = load_with_companions(start)
    request = JobRequest(kernel, target, start.name, start.read_bytes(), harness, options=Options(executor="none"))
    baseline = take_baseline(request, Progress(lambda _: None))
    measured = baseline.measurement if options.large else enlarged(baseline.measurement)
    offers = SkillProposer(target, load_library(), clock="nvidia").propose(measured, ())
    found: list[Proposal] = []
    for proposal in offers.proposals:
        if len(found) == options.count:
            break
        if proposal.needs_timing and proposal.origin not in known:
            after = measure(proposal.kernel, request, baseline)
            if after.builds and spills(after) <= spills(baseline.measurement):
                found.append(proposal)
    return found


def spills(measured: Measurement) -> float:
    """The most vector registers that a kernel of the file spills."""
    return max((known.number("vgpr_spill_count") or 0.0 for known in measured.facts.kernels.values()), default=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", default="gfx950")
    parser.add_argument("--patched", type=Path, help="what `benchmarks/patch_suite.py` wrote")
    parser.add_argument("--out", type=Path, default=Path("wavesmith-out/variants"))
    parser.add_argument("--external", type=Path, help="what `benchmarks/external.py fetch` made; its cases too")
    parser.add_argument("--only", nargs="*", help="names of cases; `suite` or `external` for all of it")
    parser.add_argument("--large", action="store_true", help="record the inputs that are timed")
    parser.add_argument("--count", type=int, default=5, help="variants of a case (default: %(default)s)")
    options = parser.parse_args()
    for case in load_cases(options.external, options.only):
        start = start_of(case, options.patched)
        try:
            found = variants_of(case, start, options)
        except WavesmithError as e:
            print(f"{case.name:28} {e}", flush=True)
            continue
        for number, proposal in enumerate(found, 1):
            folder = options.out / case.name / str(number)
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(start.parent, folder, ignore=shutil.ignore_patterns("job", "__pycache__"))
            (folder / case.kernel.name).write_text(proposal.kernel.source)
            (folder / "edit.json").write_text(json.dumps({"skill": proposal.origin, "edit": proposal.id}))
        print(f"{case.name:28} {'; '.join(p.id for p in found) or 'nothing waits for a clock'}", flush=True)


if __name__ == "__main__":
    main()
