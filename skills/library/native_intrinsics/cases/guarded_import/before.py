import torch
import triton
import triton.language as tl

if hasattr(tl, "dot"):
    try:
        from triton.language.extra.libdevice import rsqrt
    except ModuleNotFoundError:
        from triton.language.extra.cuda.libdevice import rsqrt
else:
    from triton.language.math import rsqrt


@triton.jit
def norm(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(y_ptr + offs, x * rsqrt(tl.sum(x * x, axis=0) / n + 1e-6), mask=offs < n)


def run(x):
    y = torch.empty_like(x)
    norm[(1,)](x, y, x.numel(), BLOCK=1024)
    return y


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(1000, device="cuda")
    torch.testing.assert_close(run(x), x * torch.rsqrt((x * x).mean() + 1e-6))
