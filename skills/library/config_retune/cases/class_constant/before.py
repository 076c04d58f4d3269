import torch
import triton
import triton.language as tl


@triton.jit
def decay(x_ptr, y_ptr, steps, n, by, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    state = tl.zeros((BLOCK,), tl.float32)
    for t in range(steps):
        state = state * by + tl.load(x_ptr + t * n + offs, mask=offs < n, other=0.0)
        tl.store(y_ptr + t * n + offs, state, mask=offs < n)


class Decay(torch.autograd.Function):
    BLOCK = 256

    @staticmethod
    def forward(ctx, x, by):
        y = torch.empty_like(x)
        steps, n = x.shape
        grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
        decay[grid](x, y, steps, n, by, Decay.BLOCK)
        return y


def run(x, by):
    return Decay.apply(x, by)
