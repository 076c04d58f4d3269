"""Histogram of small integers with a global atomic per element; the default ordering fences every one."""

import torch
import triton
import triton.language as tl


@triton.jit
def histogram_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0)
    tl.atomic_add(out_ptr + x, 1, mask=mask)


def run(x, bins):
    """x: (n,) int32 in [0, bins); returns (bins,) int32."""
    out = torch.zeros(bins, device=x.device, dtype=torch.int32)
    histogram_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024, num_warps=4)
    return out


def make_inputs(n=20_000, bins=64):
    return torch.randint(0, bins, (n,), device="cuda", dtype=torch.int32), bins


def make_large():
    return make_inputs(64_000_000, 64)


if __name__ == "__main__":
    torch.manual_seed(15)
    x, bins = make_inputs()
    assert torch.equal(run(x, bins), torch.bincount(x, minlength=bins).int())
    print("histogram ok")
