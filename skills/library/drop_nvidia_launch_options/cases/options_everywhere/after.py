import torch
import triton
import triton.language as tl

LAUNCH = {"num_warps": 32}  # tuned on H100


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 256}, num_warps=4, num_stages=3),
        triton.Config({"BLOCK": 1024}, num_warps=32, num_stages=2),
        triton.Config({"BLOCK": 512}, num_warps=8),
    ],
    key=["n"],
)
@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2.0, mask=i < n)


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def warps_for(n):
    return 4 if n < 1024 else 32


def run(x):
    y = torch.empty_like(x)
    n = x.numel()
    scale_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
    copy_kernel[(triton.cdiv(n, 1024),)](
        x,
        y,
        n,
        BLOCK=1024,
        num_warps=warps_for(n),
    )
    copy_kernel[(triton.cdiv(n, 512),)](x, y, n, BLOCK=512, **LAUNCH)
    copy_kernel[(triton.cdiv(n, 512),)](x, y, n, BLOCK=512, num_ctas=1, num_warps=64)
    return y
