import torch
import triton
import triton.language as tl


def settings(n):
    block = triton.next_power_of_2(n)
    num_warps: int = 4
    if block >= 32768:
        num_warps = 16
    elif block >= 8192:
        num_warps = 16
    return block, num_warps


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


class Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        n = x.shape[-1]
        block, num_warps = settings(n)
        y = torch.empty_like(x)
        copy_kernel[(1,)](x, y, n, BLOCK=block, num_warps=num_warps)
        ctx.block, ctx.num_warps = block, num_warps
        ctx.num_warps = num_warps
        return y

    @staticmethod
    def backward(ctx, dy):
        return back(dy, ctx.block, ctx.num_warps)


def back(dy, block, num_warps):
    dx = torch.empty_like(dy)
    copy_kernel[(1,)](dy, dx, dy.shape[-1], BLOCK=block, num_warps=num_warps)
    return dx
