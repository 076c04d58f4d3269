"""The main path: a kernel file goes in, a validated patch and a report come out.

Start reading here. Three phases, one engine: the user's file is run once and profiled, what was learned is matched
against the skill library, and candidates are composed, judged in the sandbox and kept only when shown right and better.
"""

from __future__ import annotations

import time
from pathlib import Path

from agent.baseline import take_baseline
from agent.bench import SandboxBench
from agent.conclusion import conclude
from agent.events import Phase, Progress
from agent.fix import SkillProposer
from agent.job import JobRequest
from agent.report import Report
from agent.report_build import build_report
from agent.report_folder import write_folder
from agent.search import Search
from sandbox.capture import choose_executor
from skills.skill import load_library


def optimize(request: JobRequest, folder: Path, progress: Progress) -> Report:
    """Work on one kernel file and leave patch, report and waterfall in `folder`.

    The outcome, good or bad, is in the report. Raises `InputError` for input that cannot be used, `SandboxError` and
    other `WavesmithError` for faults that say nothing about the kernel.
    """
    began = time.monotonic()
    with progress.phase(Phase.BENCHMARK):
        baseline = take_baseline(request, progress)
    with progress.phase(Phase.MATCH):
        has_clock = choose_executor(request.options.executor) == "gpu"
        proposer = SkillProposer(request.target, load_library(), has_clock)
        offers = proposer.propose(baseline.measurement, ())
        progress.step(f"{len(offers.proposals)} edits apply, {len(offers.refusals)} constructs are refused")
    with progress.phase(Phase.VALIDATE):
        bench = SandboxBench(request, baseline, progress)
        found = Search(baseline.measurement, proposer, bench, request.options.budget, progress).run()
    with progress.phase(Phase.REPORT):
        conclusion = conclude(baseline.measurement, found, request.target, request.options.require)
        report = build_report(request, baseline, found, conclusion, seconds=time.monotonic() - began)
        report = write_folder(folder, request, conclusion, report)
    progress.result(report.summary, outcome=report.outcome, exit_code=report.exit_code, folder=str(folder))
    return report
