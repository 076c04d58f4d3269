import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, y_ptr, desc, n, WITH_TMA: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    if start < n:
        offs = start + tl.arange(0, BLOCK)
        if WITH_TMA:
            x = tl.static_assert(False, "this Triton has no triton.language._experimental_descriptor_load")
        else:
            x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
        tl.store(y_ptr + offs, 2.0 * x, mask=offs < n)


def run(x):
    y = torch.empty_like(x)
    scale[(triton.cdiv(x.numel(), 128),)](x, y, None, x.numel(), WITH_TMA=False, BLOCK=128)
    return y


if __name__ == "__main__":
    x = torch.randn(1000, device="cuda")
    torch.testing.assert_close(run(x), 2.0 * x)
