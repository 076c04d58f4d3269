"""What the bench of a search gives the validator."""

from pathlib import Path

from agent.baseline import take_baseline
from agent.bench import SandboxBench
from agent.companions import load_with_companions
from agent.events import Progress
from agent.job import Budget, JobRequest, Options
from sandbox.target import load_target

SOFTMAX = Path(__file__).parent.parent.parent / "examples" / "softmax" / "kernel.py"


def test_no_run_may_take_longer_than_the_whole_search() -> None:
    """A matrix product of 4096^3 ran for 240 s in the interpreter under `--budget-s 60`."""
    kernel, target, data = load_with_companions(SOFTMAX), load_target("gfx950"), SOFTMAX.read_bytes()
    given = {}
    for wall_s in (5.0, 60.0, 900.0):
        options = Options(executor="none", seed=0, budget=Budget(wall_s=wall_s))
        request = JobRequest(kernel, target, SOFTMAX.name, data, options=options)
        bench = SandboxBench(request, take_baseline(request, Progress()), Progress())
        given[wall_s] = bench.evaluator.options.limits.wall_s
    assert given == {5.0: 30.0, 60.0: 60.0, 900.0: 300.0}
