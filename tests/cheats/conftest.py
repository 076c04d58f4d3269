"""One evaluator per baseline, made once for all test processes: its capture and its own calls are the slow part."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.capture import capture
from sandbox.evaluate import EvaluateOptions, Evaluator
from sandbox.kernel import Kernel, load_kernel
from sandbox.target import load_target
from sandbox.workload import load_workload, save

HERE = Path(__file__).parent
TARGET = load_target("gfx950")


@pytest.fixture(scope="session")
def evaluator_of(tmp_path_factory) -> Callable[[str], Evaluator]:
    own = tmp_path_factory.getbasetemp()
    # Processes of one parallel run have folders beside each other; without them the parent holds other, older runs.
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "evaluators"
    shared.mkdir(exist_ok=True)
    held: dict[str, Evaluator] = {}

    def get(name: str) -> Evaluator:
        if name not in held:
            kernel = load_kernel(HERE / "baselines" / f"{name}.py")
            folder = shared / name
            with (shared / f"{name}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not (folder / "trial.pickle").exists():
                    prepare(kernel, folder)
            held[name] = evaluator(kernel, folder)
            held[name]._baseline_trial = pickle.loads((folder / "trial.pickle").read_bytes())
        return held[name]

    return get


def prepare(kernel: Kernel, folder: Path) -> None:
    recorded = capture(kernel, TARGET, executor="interpreter")
    assert recorded.outcome.status == "passed", recorded.outcome
    save(recorded.stored, folder)
    trial = evaluator(kernel, folder).baseline_trial
    assert trial.failure is None, trial.failure
    (folder / "trial.pickle").write_bytes(pickle.dumps(trial))


def evaluator(kernel: Kernel, folder: Path) -> Evaluator:
    """With a fixed seed, so that every process plans the same steps."""
    return Evaluator(kernel, load_workload(folder), TARGET, EvaluateOptions(executor="interpreter", seed=20_261))
