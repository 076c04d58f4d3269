import torch
import triton
import triton.language as tl

LAUNCH = {"num_warps": 16}  # tuned on H100
WARPS = 16
W = 32


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def warps_for(n):
    return 4 if n < 1024 else 16


def run(x, warps=32):
    y = torch.empty_like(x)
    n = x.numel()
    copy_kernel[(triton.cdiv(n, 4096),)](
        x,
        y,
        n,
        BLOCK=4096,
        num_warps=warps_for(n),
    )
    copy_kernel[(triton.cdiv(n, 4096),)](x, y, n, BLOCK=4096, num_warps=min(16, warps))
    copy_kernel[(triton.cdiv(n, 512),)](x, y, n, BLOCK=512, **LAUNCH)
    copy_kernel[(triton.cdiv(n, 512),)](x, y, n, BLOCK=512, num_warps=16)
    copy_kernel[(triton.cdiv(n, 512),)](x, y, n, BLOCK=512, num_warps=WARPS)
    copy_kernel[(triton.cdiv(n, 64 * W),)](x, y, n, BLOCK=64 * W, num_warps=min(16, W))
    copy_kernel[(triton.cdiv(n, 512),)](x, y, n, BLOCK=512, num_warps=min(max(n // 256, 1), 16))
    return y
