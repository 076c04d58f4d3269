"""Write the edits that only a clock can choose between, for `benchmarks/run.py --variants DIR` to time.

    python benchmarks/variants.py --patched wavesmith-out/gfx950 --out wavesmith-out/variants [--external DIR]

Without a GPU: each case's patched file (the original, where there is none) is compiled for the target, and what the
skills propose and builds becomes one folder each, `DIR/CASE/1`, `DIR/CASE/2`, ... The first half of the variants holds
the edits of all kernels at once: what changes more than launch numbers, then the same with the first numbers proposed
for each kernel, with the second ones, and so on. The other half are single edits, the kernels in turns. The check's
small inputs stand for the large ones, but for the size of grid and tensors; with `--large` the large ones are
recorded, which takes their memory and is what tiles and rows need to be sized by.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agent.baseline import Baseline, measure, take_baseline
from agent.candidate import Measurement, Proposal
from agent.companions import load_with_companions
from agent.events import Progress
from agent.fix import SkillProposer
from agent.job import JobRequest, Options
from benchmarks.cases import Case, load_cases
from benchmarks.patch_suite import harness_of as large_harness
from sandbox.errors import WavesmithError
from sandbox.kernel import Kernel
from sandbox.target import load_target
from skills.facts import Facts
from skills.skill import load_library

NUMBERS = ("config-retune", "pipeline-loop", "spill-relief", "occupancy-and-mfma-options")
"""Skills that offer many sets of launch numbers, of which one is taken at a time."""
LARGE = {"launch.grid_programs": 100_000, "launch.max_tensor_bytes": 2**27}
"""Launches on the inputs that are timed: a variant may not leave compute units idle, and no cache holds the tensors."""


def start_of(case: Case, patched: Path | None) -> Path:
    """The file that is varied."""
    path = patched / case.name / case.kernel.name if patched is not None else case.kernel
    return path if path.exists() else case.kernel


def enlarged(measured: Measurement) -> Measurement:
    """What was measured, as of large inputs."""
    facts = measured.facts
    kernels = {name: known.with_values(LARGE) for name, known in facts.kernels.items()}
    return replace(measured, facts=Facts(facts.known, facts.missing, kernels))


def harness_of(case: Case, options: argparse.Namespace) -> Path | None:
    """What calls the kernel: with the inputs that are timed, where `--large` asks for them."""
    if not options.large:
        return case.harness
    folder = options.out / case.name
    folder.mkdir(parents=True, exist_ok=True)
    return Path(large_harness(case, folder, True)[1])


@dataclass(frozen=True, slots=True)
class Bench:
    """One file with what is known about it, and who proposes edits of it."""

    request: JobRequest
    baseline: Baseline
    measured: Measurement
    proposer: SkillProposer
    clock: str
    """Architecture of the GPU that will time the variants: skills that are not for it are left out."""

    def offers(self, kernel: Kernel) -> list[Proposal]:
        """Edits of the file as it is by now that make it faster, rather than build."""
        offered = self.proposer.propose(replace(self.measured, kernel=kernel), ()).proposals
        known = self.proposer.library.skills
        return [p for p in offered if not p.repair and self.clock in known[p.origin].data.targets]

    def fits(self, proposal: Proposal) -> bool:
        """Whether the edited file builds and spills no more than before."""
        after = measure(proposal.kernel, self.request, self.baseline)
        return after.builds and spills(after) <= spills(self.baseline.measurement)

    def together(self, chosen: Sequence[Proposal]) -> Proposal | None:
        """Several edits in one; those that are not offered any more once others are made stay out."""
        made: list[Proposal] = []
        for wanted in chosen:
            kernel = made[-1].kernel if made else self.measured.kernel
            made += [p for p in self.offers(kernel) if p.id == wanted.id][:1]
        if not made:
            return None
        names = [list(dict.fromkeys(getattr(p, part) for p in made)) for part in ("id", "origin")]
        return replace(made[-1], id="; ".join(names[0]), origin=", ".join(names[1]))


def variants_of(case: Case, start: Path, options: argparse.Namespace) -> list[Proposal]:
    """The first proposals that fit, of all kernels at once and of each; of the original too, where the patched file has
    taken a skill's turn that would have come first with a clock."""
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
    proposer = SkillProposer(target, load_library(), load_target(options.clock).vendor)
    bench = Bench(request, baseline, measured, proposer, options.clock)
    offered = [p for p in bench.offers(measured.kernel) if p.origin not in known]
    basis: list[Proposal] = []
    for proposal in firsts([p for p in offered if p.origin not in NUMBERS]):
        grown = bench.together([*basis, proposal])
        if grown is not None and bench.fits(grown):
            basis.append(proposal)
    numbers = by_kernel([p for p in offered if p.origin in NUMBERS])
    several = ([*basis, *chosen] for chosen in ([], *turns(numbers)))
    together = (p for p in map(bench.together, several) if p is not None and ";" in p.id and bench.fits(p))
    found = list(islice(together, options.count // 2))
    singles = (p for chosen in turns(by_kernel(offered)) for p in chosen if bench.fits(p))
    return [*found, *islice(singles, options.count - len(found))]


def firsts(proposals: Sequence[Proposal]) -> list[Proposal]:
    """The first site of each skill in each kernel."""
    return list({p.id.partition(":")[0]: p for p in reversed(proposals)}.values())[::-1]


def by_kernel(proposals: Sequence[Proposal]) -> list[list[Proposal]]:
    """Proposals by the kernel they edit; of each the skills take turns."""
    queues: dict[str, dict[str, list[Proposal]]] = {}
    for proposal in proposals:
        kernel = proposal.id.partition(":")[0].partition("@")[2]
        queues.setdefault(kernel, {}).setdefault(proposal.origin, []).append(proposal)
    return [[p for chosen in turns(list(skills.values())) for p in chosen] for skills in queues.values()]


def turns(queues: Sequence[Sequence[Proposal]]) -> Iterator[list[Proposal]]:
    """The first of every queue, the second of every queue, and so on."""
    for chosen in zip_longest(*queues):
        yield [p for p in chosen if p is not None]


def spills(measured: Measurement) -> float:
    """The most vector registers that a kernel of the file spills."""
    return max((known.number("vgpr_spill_count") or 0.0 for known in measured.facts.kernels.values()), default=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", default="gfx950")
    parser.add_argument("--clock", default="sm_90", help="what the variants will be timed on (default: %(default)s)")
    parser.add_argument("--patched", type=Path, help="what `benchmarks/patch_suite.py` wrote")
    parser.add_argument("--out", type=Path, default=Path("wavesmith-out/variants"))
    parser.add_argument("--external", type=Path, help="what `benchmarks/external.py fetch` made; its cases too")
    parser.add_argument("--only", nargs="*", help="names of cases; `suite` or `external` for all of it")
    parser.add_argument("--large", action="store_true", help="record the inputs that are timed")
    parser.add_argument("--count", type=int, default=6, help="variants of a case (default: %(default)s)")
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
        print(f"{case.name:28} {'; '.join(p.id for p in found) or 'nothing is proposed'}", flush=True)


if __name__ == "__main__":
    main()
