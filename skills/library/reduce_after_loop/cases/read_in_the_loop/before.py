import torch
import triton
import triton.language as tl


@triton.jit
def running(X, Out, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    total = 0.0
    for start in range(0, n, BLOCK):
        x = tl.load(X + start + lanes, mask=start + lanes < n, other=0.0)
        total += tl.sum(x)
        tl.store(Out + start // BLOCK, total)


def run(x):
    out = torch.empty((x.numel() + 1023) // 1024, dtype=torch.float32, device=x.device)
    running[(1,)](x, out, x.numel(), BLOCK=1024)
    return out
