"""Row scatter-add, the backward of an embedding lookup, with bf16 atomics."""

import torch
import triton
import triton.language as tl


@triton.jit
def scatter_add_rows(idx_ptr, grad_ptr, out_ptr, D, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < D
    target = tl.load(idx_ptr + row)
    grad = tl.load(grad_ptr + row * D + cols, mask=mask, other=0.0)
    tl.atomic_add(out_ptr + target * D + cols, grad, mask=mask)


def scatter_add(idx, grad, rows):
    """idx: (n,) int32; grad: (n, d) bf16; returns (rows, d) bf16 with grad summed by index."""
    n, d = grad.shape
    out = torch.zeros((rows, d), device=grad.device, dtype=torch.bfloat16)
    block = 256
    scatter_add_rows[(n, triton.cdiv(d, block))](idx, grad, out, d, BLOCK=block, num_warps=4)
    return out


def make_inputs(n=128, d=300, rows=64):
    idx = torch.randint(0, rows, (n,), device="cuda", dtype=torch.int32)
    # multiples of 1/4 in a small range: their sums are exact in bf16, whatever the order
    grad = (torch.randint(-4, 5, (n, d), device="cuda").float() / 4).to(torch.bfloat16)
    return idx, grad, rows


if __name__ == "__main__":
    torch.manual_seed(4)
    idx, grad, rows = make_inputs()
    expected = torch.zeros((rows, grad.shape[1]), device="cuda").index_add_(0, idx.long(), grad.float())
    torch.testing.assert_close(scatter_add(idx, grad, rows).float(), expected, atol=0.1, rtol=2e-2)
    print("scatter add ok")
