"""On a GPU, launches that Triton times pass unobserved: its clocks are left alone, and hundreds are not recorded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import triton, triton.language as tl, triton.testing
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction
from sandbox import child_hooks
from sandbox.child_launches import Surroundings

native, recorded = [], []


class Recorder:
    now, unobserved = Surroundings(), False

    def launch(self, fn, args, kwargs, grid, native):
        recorded.append((fn.__name__, self.now.benchmark))
        return native()


def timed(fn, *args, **kwargs):
    for _ in range(50):
        fn()
    return [1.0, 1.0, 1.0]


def run(self, *args, **kwargs):
    native.append(self.__name__)


JITFunction.run = run
triton.testing.do_bench = triton.testing.do_bench_cudagraph = timed
child_hooks.install(Recorder(), print, gpu=True)


@triton.jit
def plain(x, BLOCK: tl.constexpr):
    pass


@triton.jit
def tuned(x, BLOCK: tl.constexpr):
    pass


configs = [triton.Config({"BLOCK": n}) for n in (16, 32)]
tuner = Autotuner(tuned, tuned.arg_names, configs, [], None, None, do_bench=lambda fn, quantiles: timed(fn))
tuner[(1,)](1)
assert (len(native), recorded) == (101, [("tuned", False)]), (len(native), recorded)
for bench in (triton.testing.do_bench, triton.testing.do_bench_cudagraph):
    native.clear()
    recorded.clear()
    assert bench(lambda: plain[(1,)](1, BLOCK=16)) == [1.0, 1.0, 1.0]
    assert (len(native), recorded) == (51, [("plain", True)]), (len(native), recorded)
plain[(1,)](1, BLOCK=16)
assert recorded[-1] == ("plain", False)
"""


def test_what_triton_times_is_recorded_once_at_most(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py")]
    root = Path(__file__).parent.parent.parent
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stderr
