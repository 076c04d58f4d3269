"""y = max(gate, 0) up in bf16 with fp32 arithmetic."""

import torch
import triton
import triton.language as tl


@triton.jit
def gated_relu_kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    gate = tl.load(gate_ptr + offsets, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, (tl.maximum(gate, 0.0) * up).to(tl.bfloat16), mask=mask)


def gated_relu(gate, up):
    out = torch.empty_like(gate)
    n = gate.numel()
    gated_relu_kernel[(triton.cdiv(n, 1024),)](gate, up, out, n, BLOCK=1024)
    return out


if __name__ == "__main__":
    torch.manual_seed(0)
    gate = torch.randn(256, 1024, device="cuda", dtype=torch.bfloat16)
    up = torch.randn(256, 1024, device="cuda", dtype=torch.bfloat16)
    torch.testing.assert_close(gated_relu(gate, up), (torch.relu(gate.float()) * up).bfloat16())
