"""A workload repeated with the baseline and with changed files, from memory and from its folder."""

from __future__ import annotations

import textwrap

import pytest

from sandbox.capture import capture
from sandbox.isolation import Limits
from sandbox.kernel import Kernel, parse_kernel
from sandbox.replay import InputVariant, Replay, replay
from sandbox.target import load_target
from sandbox.workload import StoredWorkload, load_workload, save

FILE = """
import collections
import torch
import triton
import triton.language as tl

Pair = collections.namedtuple("Pair", "a b")


@triton.jit
def axpy_kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(y_ptr + i, tl.load(y_ptr + i, mask=m) + tl.load(x_ptr + i, mask=m) * factor, mask=m)


def axpy(pair, factor=2.0):
    axpy_kernel[(triton.cdiv(pair.a.numel(), 64),)](pair.a, pair.b, pair.a.numel(), factor, BLOCK=64)
    return pair.b.sum()


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = torch.zeros_like(x)
        axpy(Pair((x * x * x).contiguous(), y), 1.0)
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        y = torch.zeros_like(x)
        axpy(Pair((g * x * x).contiguous(), y), 3.0)
        return y


class Layer(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n))

    def forward(self, x):
        return Cube.apply(x * self.weight)


def noise(n):
    y = torch.zeros(n, device="cuda")
    axpy_kernel[(1,)](torch.randn(n, device="cuda"), y, n, 2.0, BLOCK=64)
    return y


def test_all():
    torch.manual_seed(0)
    qk = torch.randn(2, 100, device="cuda", dtype=torch.float16)
    axpy(Pair(qk[0], qk[1]))
    layer = Layer(40).cuda()
    layer(torch.randn(40, device="cuda", requires_grad=True)).backward(torch.randn(40, device="cuda"))
    direct = torch.ones(64, device="cuda")
    axpy_kernel[(1,)](direct, direct, 64, 2.0, BLOCK=64)


TABLE = noise(12)
test_all()
"""
LIMITS = Limits(wall_s=120)
TARGET = load_target("gfx950")


def kernel(*changes: tuple[str, str]) -> Kernel:
    source = textwrap.dedent(FILE)
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    return parse_kernel(source.encode(), "k.py")


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> StoredWorkload:
    taken = capture(kernel(), TARGET, limits=LIMITS, compile=False)
    assert taken.outcome.status == "passed", taken.outcome.traceback
    return load_workload(save(taken.stored, tmp_path_factory.mktemp("workload")))


def again(stored: StoredWorkload, file: Kernel, **options) -> Replay:
    options.setdefault("compile", False)
    done = replay(stored, file, TARGET, limits=LIMITS, **options)
    assert done.failure is None, (done.failure, done.ended.stderr)
    return done


def contents(stored: StoredWorkload | Replay, tensor) -> bytes:
    storages = stored.workload.storages if isinstance(stored, StoredWorkload) else stored.storages
    return bytes(stored.tensors[storages[tensor.storage].key])


def test_the_baseline_repeats_itself(stored):
    kinds = [(e.kind, e.qualname) for e in stored.workload.entries]
    assert kinds == [
        ("program", "noise"), ("function", "axpy"), ("method", "Layer.forward"), ("kernel", "axpy_kernel"),
    ]  # fmt: skip
    done = again(stored, kernel(), want_inputs=True)
    assert [r.status for r in done.results] == ["returned"] * 4, [r.error for r in done.results]
    assert all(r.known for r in done.results)
    for entry, result in zip(stored.workload.entries, done.results, strict=True):
        recorded = [*entry.outputs.tensors(), *(entry.mutated[p] for p in sorted(entry.mutated))]
        repeated = [*result.outputs.tensors(), *(result.mutated[p] for p in sorted(entry.mutated))]
        assert recorded and len(recorded) == len(repeated)
        assert [contents(stored, t) for t in recorded] == [contents(done, t) for t in repeated], entry.qualname
    views = done.results[1].inputs
    assert sorted(views) == ["args.0.0", "args.0.1"] and views["args.0.0"].storage == views["args.0.1"].storage
    backward = done.results[2]
    assert list(backward.input_grads) == ["args.0"] and len(backward.launches) == 2
    assert [done.launches[i].phase for i in backward.launches] == ["forward", "backward"]


def test_inputs_drawn_anew_depend_on_the_seed_alone(stored):
    variants = (
        InputVariant("large", 1),
        InputVariant("large", 1),
        InputVariant("large", 2),
        InputVariant(cast="float32"),
    )
    one, two, three, wide = (again(stored, kernel(), inputs=v, entries=[1], want_inputs=True) for v in variants)
    values = [contents(r, r.results[0].inputs["args.0.0"]) for r in (one, two, three)]
    assert values[0] == values[1] != values[2]
    assert wide.results[0].inputs["args.0.0"].dtype == "float32"
    assert wide.results[0].status == "returned"


def test_changed_host_code_is_what_runs(stored):
    changed = kernel(
        ("def axpy(pair, factor=2.0):\n", "def axpy(pair, factor=2.0):\n    factor = factor + 1\n"),
        ("class Layer(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n",
         "class Layer(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.n = n\n"),
        ("TABLE = noise(12)\n", "TABLE = noise(12)\nprint('imported', TABLE.shape)\n"),
    )  # fmt: skip
    done = again(stored, changed, compile=True)
    assert [r.status for r in done.results] == ["returned"] * 4, [r.error for r in done.results]
    entry, result = stored.workload.entries[1], done.results[1]
    assert contents(stored, entry.mutated["args.0.1"]) != contents(done, result.mutated["args.0.1"])
    assert all(c.ok for launch in done.launches for c in launch.compiles)
    assert len([launch for launch in done.launches if launch.entry is None]) <= 1


@pytest.mark.long
def test_files_that_do_not_fit_are_outcomes(stored):
    done = again(stored, kernel(("def axpy(", "def axpy_renamed("), ("    axpy(Pair(", "    axpy_renamed(Pair(")))
    assert done.results[1].status == "missing" and "axpy" in done.results[1].error
    raising = ("TABLE = noise(12)\n", "raise KeyError('late')\n")
    done = again(stored, kernel(("    return pair.b.sum()", "    raise ValueError('broken')"), raising))
    assert done.results[1].status == "raised" and done.results[1].error == "ValueError: broken"
    assert done.import_error == "KeyError: 'late'" and done.results[3].status == "returned"
    broken = replay(stored, kernel(("import torch\n", "import torch, os\nos._exit(9)\n")), TARGET, limits=LIMITS)
    assert broken.failure == "the process ended with status 9: it printed nothing" and broken.phase == "import"
    slow = kernel(("    return pair.b.sum()", "    while True: pass"), ("TABLE = noise(12)\n", ""))
    stuck = replay(stored, slow, TARGET, limits=Limits(wall_s=40), compile=False)
    assert stuck.failure == "the run did not end within 40 s" and stuck.phase == "run"
