"""A file that asks every question about its GPU gets the board's answers, and cuda tensors without a GPU."""

from __future__ import annotations

import textwrap

import pytest
import torch

from sandbox.capture import Capture, capture
from sandbox.isolation import Limits
from sandbox.kernel import parse_kernel
from sandbox.target import load_target

KERNEL = """
import threading
import torch
import triton
import triton.language as tl
from triton.runtime import driver


@triton.jit
def twice(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


def run(x):
    y = torch.empty_like(x)
    twice[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y
"""

DEVICES = """
x = torch.randn(100, device="cuda")
assert x.is_cuda and x.device.type == "cuda" and x.get_device() == 0 and x.device == torch.device("cuda", 0)
h = torch.randn(100)
assert not h.is_cuda and h.device.type == "cpu" and h.get_device() == -1 and h.is_cpu
c = h.cuda()
assert c.is_cuda and c is not h and torch.equal(c.cpu(), h)
c.zero_()
assert h.abs().sum() > 0                                     # a move is a copy
k = x.cpu()
x2 = x.clone()
x.zero_()
assert torch.equal(k, x2.cpu()) and not torch.equal(k, x.cpu())
assert x.to("cuda") is x and h.to("cpu") is h and h.to("cuda", torch.float16).dtype == torch.float16
assert h.to(x).is_cuda and h.to(device="cuda:0").is_cuda and x.to(torch.float16).is_cuda
assert torch.zeros_like(x).is_cuda and not torch.zeros_like(h).is_cuda and x.new_ones(3).is_cuda
assert (x + 1).is_cuda and (h * 2).is_cpu and torch.cat([x, x]).is_cuda and x[:3].is_cuda
assert torch.empty(2, pin_memory=True).is_pinned() and h.pin_memory().is_cpu
assert torch.rand(2, generator=torch.Generator("cuda").manual_seed(1), device="cuda").is_cuda
assert torch.cuda.FloatTensor(3).shape == (3,) and x.type() == "torch.cuda.FloatTensor"
assert h.type("torch.cuda.HalfTensor").dtype == torch.float16
layer = torch.nn.Linear(100, 4).cuda().half()
assert layer.weight.is_cuda and layer(x.half()).is_cuda
with torch.device("cuda"):
    assert torch.ones(2).is_cuda
torch.set_default_device("cuda")
assert torch.ones(2).is_cuda
torch.set_default_device("cpu")
s, e = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
with torch.cuda.stream(torch.cuda.Stream()), torch.cuda.device(0):
    s.record(); e.record(); torch.cuda.synchronize()
assert s.elapsed_time(e) > 0
with torch.autocast("cuda", dtype=torch.float16):
    assert (torch.ones(4, 4, device="cuda") @ torch.ones(4, 4, device="cuda")).dtype == torch.float16
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        pass
    raise SystemExit("a graph was captured")
except RuntimeError as error:
    assert "graph" in str(error)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return run(a)

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        assert g.is_cuda and a.is_cuda and torch.empty(2, device="cuda").is_cuda
        return run(g.contiguous())


leaf = torch.randn(100, device="cuda", requires_grad=True)
Double.apply(leaf).sum().backward()
assert torch.equal(leaf.grad, torch.full_like(leaf, 2.0))
(grad,) = torch.autograd.grad(Double.apply(leaf).sum(), leaf)
assert grad.is_cuda
found = []
thread = threading.Thread(target=lambda: found.append(torch.empty(2, device="cuda").is_cuda))
thread.start(); thread.join()
assert found == [True]
assert triton.testing.do_bench(lambda: run(x)) > 0
assert len(triton.testing.do_bench(lambda: run(x), quantiles=[0.5, 0.2, 0.8])) == 3
"""

ANSWERS = """
properties = torch.cuda.get_device_properties(0)
target = driver.active.get_current_target()
print(torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.current_device())
print(torch.cuda.get_device_name(), torch.cuda.get_device_capability(), properties.multi_processor_count)
print(torch.version.hip is not None, torch.version.cuda is not None, target.backend, target.arch, target.warp_size)
print(driver.active.utils.get_device_properties(0)["max_shared_mem"], properties.gcnArchName.split(":")[0])
kernel = twice.warmup(torch.float32, torch.float32, 100, BLOCK=64, grid=(1,))
kernel._init_handles()
if properties.gcnArchName:
    assert kernel.n_regs > 0 and kernel.n_spills == 0 and kernel.metadata.num_warps == 4 and "amdgcn" in kernel.asm
x = torch.ones(100, device="cuda")
y = torch.empty_like(x)
kernel[(2, 1, 1)](x, y, 100)
assert torch.equal(y, x * 2)
"""


def of(harness: str, target: str = "gfx950") -> Capture:
    source = KERNEL + textwrap.dedent(harness)
    return capture(parse_kernel(source.encode(), "k.py"), load_target(target), limits=Limits(wall_s=120))


def test_holes_of_the_pretence_are_closed():
    taken = of(DEVICES)
    assert taken.outcome.status == "passed", taken.outcome.traceback
    assert len(taken.launches) == 6
    assert all(launch.execution.status == "executed" for launch in taken.launches)
    assert [launch.benchmark for launch in taken.launches] == [False] * 4 + [True] * 2
    assert any("do_bench" in note for note in taken.notes)
    assert any("events" in note for note in taken.notes)


@pytest.mark.parametrize(
    ("target", "lines"),
    [
        ("MI300X", ["True 1 0", "(9, 4) 304", "True False hip gfx942 64", "65536 gfx942"]),
        ("MI355X", ["True 1 0", "(9, 5) 256", "True False hip gfx950 64", "163840 gfx950"]),
        ("H200", ["True 1 0", "(9, 0) 132", "False True cuda 90 32", "232448 "]),
    ],
)
def test_answers_are_the_boards(target, lines):
    taken = of(ANSWERS, target)
    assert taken.outcome.status == "passed", taken.outcome.traceback
    said = taken.ended.stdout.splitlines()
    assert said[0] == lines[0]
    assert said[1] == f"{load_target(target).board.device_name} {lines[1]}"
    assert said[2:4] == lines[2:]
    assert len(taken.launches) == 1


def test_what_is_read_of_a_device_outlives_the_hosts_copy_of_it(monkeypatch):
    """A recorded value is sent some time after it was read; by then the copy's memory belongs to others."""
    from sandbox import child_values

    copies = []

    def cpu(storage):
        copies.append(torch.UntypedStorage.clone(storage))
        return copies[-1]

    monkeypatch.setattr(child_values, "_is_cuda", lambda tensor: True)
    monkeypatch.setattr(child_values, "_storage_cpu", cpu)
    tensor = torch.arange(4096, dtype=torch.int64)
    memory = child_values.read_memory(tensor, 1 << 30)
    copies[0].fill_(0xEE)
    assert bytes(memory.dense) == tensor.numpy().tobytes()
