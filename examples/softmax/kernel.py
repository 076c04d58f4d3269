"""Row softmax with 32 warps per row: 1,024 threads on NVIDIA, 2,048 on a 64-lane machine, which refuses the launch."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + offs, mask=offs < cols, other=-float("inf")).to(tl.float32)
    x = x - tl.max(x, axis=0)
    e = tl.exp(x)
    tl.store(y_ptr + row * stride + offs, (e / tl.sum(e, axis=0)).to(y_ptr.dtype.element_ty), mask=offs < cols)


def softmax(x):
    """x: (rows, cols), contiguous; softmax over the columns."""
    rows, cols = x.shape
    y = torch.empty_like(x)
    block = triton.next_power_of_2(cols)
    softmax_kernel[(rows,)](x, y, x.stride(0), cols, BLOCK=block, num_warps=32)
    return y


def make_inputs(rows=16, cols=5000):
    return (torch.randn((rows, cols), device="cuda", dtype=torch.float16),)


if __name__ == "__main__":
    torch.manual_seed(6)
    (x,) = make_inputs()
    torch.testing.assert_close(softmax(x).float(), torch.softmax(x.float(), dim=1), atol=1e-3, rtol=1e-2)
    print("softmax ok")
