import torch
import triton
import triton.language as tl


@triton.jit
def tile_total(X, Out, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    total = 0.0
    for start in range(0, n, BLOCK):
        x = tl.load(X + (start + lanes)[:, None] * BLOCK + lanes[None, :], mask=(start + lanes)[:, None] < n, other=0.0)
        total += tl.sum(x)
    tl.store(Out, total)


def run(x):
    out = torch.empty(1, dtype=torch.float32, device=x.device)
    tile_total[(1,)](x, out, x.shape[0], BLOCK=64)
    return out
