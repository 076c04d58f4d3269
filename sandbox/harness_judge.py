"""The harness's own comparisons as judge, for a baseline whose results nothing here can compute.

Weaker than a comparison with an oracle: the harness's tolerances apply. The static scan has made sure that the
candidate left them alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.capture import Variant, capture
from sandbox.isolation import Limits
from sandbox.kernel import Kernel
from sandbox.target import Target


def judge_by_harness(
    candidate: Kernel, target: Target, harness: Kernel | None, *, executor: str, limits: Limits, seeds: Sequence[int]
) -> tuple[bool | None, str]:
    """Run the harness with the candidate, once as written and once per seed.

    True when every comparison it makes passed on real results, False when one failed or the harness raised, None when
    it compares nothing or a launch could not be executed; with the reason.
    """
    compared = 0
    for seed in (0, *seeds):
        run = capture(
            candidate, target, harness=harness, executor=executor, limits=limits, variant=Variant(seed), compile=False
        )
        where = "as written" if seed == 0 else f"with seed {seed}"
        if run.outcome.status == "unknown" or not run.launches:
            return None, f"the harness {where} did not come to real results"
        failed = [c for c in run.outcome.checks if c.known and not c.passed]
        if failed:
            return False, f"the harness's own comparison in line {failed[0].line} fails {where}"
        if run.outcome.status == "failed":
            return False, f"the harness {where} raises {run.outcome.exception}"
        compared += sum(c.known for c in run.outcome.checks)
    return (True, f"{compared} comparisons of the harness itself passed") if compared else (None, "it compares nothing")
