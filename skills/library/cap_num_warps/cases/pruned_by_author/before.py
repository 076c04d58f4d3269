import torch
import triton
import triton.language as tl

LANES = 64 if torch.version.hip else 32


def fitting(configs, named_args, **kwargs):
    return [c for c in configs if c.num_warps * LANES <= 1024]


@triton.autotune(
    configs=[triton.Config({}, num_warps=w) for w in [4, 8, 16, 32] if w * LANES <= 1024],
    key=["n"],
)
@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.autotune(
    configs=[triton.Config({}, num_warps=4), triton.Config({}, num_warps=32)],
    key=["n"],
    prune_configs_by={"early_config_prune": fitting},
)
@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2.0, mask=i < n)


def run(x):
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    scale_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
