"""Softmax cross-entropy over a large vocabulary; the mean loss is summed with one atomic per row on one address."""

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(logits_ptr, target_ptr, loss_ptr, rows, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    peak = -float("inf")
    total = 0.0
    for start in range(0, cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * cols + offs, mask=offs < cols, other=-float("inf")).to(tl.float32)
        new_peak = tl.maximum(peak, tl.max(x, axis=0))
        total = total * tl.exp(peak - new_peak) + tl.sum(tl.exp(x - new_peak), axis=0)
        peak = new_peak
    target = tl.load(target_ptr + row)
    picked = tl.load(logits_ptr + row * cols + target).to(tl.float32)
    tl.atomic_add(loss_ptr, (peak + tl.log(total) - picked) / rows)


def run(logits, target):
    """logits: (rows, cols); target: (rows,) int64; returns the mean loss."""
    rows, cols = logits.shape
    loss = torch.zeros(1, device=logits.device, dtype=torch.float32)
    cross_entropy_kernel[(rows,)](logits, target, loss, rows, cols, BLOCK=4096, num_warps=32)
    return loss


def make_inputs(rows=16, cols=9000):
    return torch.randn((rows, cols), device="cuda", dtype=torch.bfloat16), torch.randint(0, cols, (rows,), device="cuda")


def make_large():
    return make_inputs(8192, 50304)


if __name__ == "__main__":
    torch.manual_seed(12)
    logits, target = make_inputs()
    expected = torch.nn.functional.cross_entropy(logits.float(), target)
    torch.testing.assert_close(run(logits, target)[0], expected, atol=1e-3, rtol=1e-3)
    print("cross entropy ok")
