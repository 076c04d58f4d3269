"""The main path: a kernel file goes in, a validated patch and a report come out.

Start reading here. Three phases, one engine: the user's file is run once and profiled, what was learned is matched
against the skill library, and candidates are composed, judged in the sandbox and kept only when shown right and better.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from pathlib import Path

from agent.baseline import Baseline
from agent.conclusion import conclude
from agent.confirm import Confirmation, Confirmed, with_fresh_inputs
from agent.events import Phase, Progress
from agent.fix import SkillProposer
from agent.job import JobRequest, Meter
from agent.job_record import Ending, store_inputs, store_record
from agent.languages import baseline_of, bench_for, clock_of
from agent.model_work import Helper, Workplace, put_to_work
from agent.remember import remember
from agent.report import Report
from agent.report_build import build_report
from agent.report_folder import write_folder
from agent.search import Proposer, Search
from agent.versions import toolchain_versions
from sandbox.verdict import Speed
from skills.skill import load_library


def optimize(
    request: JobRequest,
    folder: Path,
    progress: Progress,
    helper: Helper | None = None,
    meter: Meter | None = None,
) -> Report:
    """Work on one kernel file and leave patch, report and waterfall in `folder`, and what a replay needs.

    The model of `helper`, if there is one, proposes beside the skills. `meter` is given by a replay. The outcome, good
    or bad, is in the report. Raises `InputError` for input that cannot be used, `SandboxError` and other
    `WavesmithError` for faults that say nothing about the kernel.
    """
    began = time.monotonic()
    seed = request.options.seed if request.options.seed is not None else secrets.randbits(62)
    seeded = replace(request, options=replace(request.options, seed=seed))
    with progress.phase(Phase.BENCHMARK):
        baseline = baseline_of(seeded, progress)
        store_inputs(folder, request)
    with progress.phase(Phase.MATCH):
        library = load_library()
        proposer: Proposer = SkillProposer(request.target, library, clock_of(request))
        offers = proposer.propose(baseline.measurement, ())
        progress.step(f"{len(offers.proposals)} edits apply, {len(offers.refusals)} constructs are refused")
    with progress.phase(Phase.VALIDATE):
        bench, meter = bench_for(seeded, baseline, progress), meter or Meter()
        work = None
        if helper is not None:
            work = put_to_work(helper, seeded, folder, Workplace(bench, library, meter, progress))
            proposer = work.guide(proposer)
        least = min(request.options.require.speed, Speed.STATIC)
        found = Search(
            baseline.measurement, proposer, bench, request.options.budget, progress, meter=meter, least=least,
            tune_repaired=request.options.tune_repaired,
        ).run()  # fmt: skip
        evaluations, confirmed = meter.evaluations, Confirmed(found)
        if work is not None and helper is not None:
            fresh = bench_for(with_fresh_inputs(seeded), baseline, progress)
            confirmed = Confirmation(baseline.measurement, bench, fresh, progress).of(found, work.choice.name)
            found = confirmed.found
            if helper.memory is not None and isinstance(baseline, Baseline):
                progress.step(remember(helper.memory, request, baseline, confirmed, work.choice.name))
    with progress.phase(Phase.REPORT):
        conclusion = conclude(baseline.measurement, found, request.target, request.options.require)
        if work is not None:
            conclusion = work.mention_failure(conclusion)
        report = build_report(request, baseline, found, conclusion, seconds=time.monotonic() - began)
        report = report.model_copy(update={"model": work.part(confirmed) if work else None})
        report = write_folder(folder, request, conclusion, report)
        out_of_time = bool(found.stopped) and evaluations < request.options.budget.evaluations
        patch = (folder / report.artifacts.patch).read_bytes() if report.artifacts.patch else None
        version = toolchain_versions().get("wavesmith", "unknown")
        price = helper.price if helper else None
        store_record(folder, seeded, Ending(evaluations, out_of_time, patch, version, price))
    progress.result(report.summary, outcome=report.outcome, exit_code=report.exit_code, folder=str(folder))
    return report
