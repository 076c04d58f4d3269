import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, y_ptr, n, by, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, x * by, mask=offs < n)


def run(x, by):
    y = torch.empty_like(x)
    n = x.numel()
    if n < 4096:
        block = 64
    else:
        block = triton.next_power_of_2(n // 65536)
        block = max(256, min(block, 1024))
    block = min(1024, 4 * block)
    grid = (triton.cdiv(n, block),)
    scale[grid](x, y, n, by, block)
    return y
