"""AdamW on flat parameters, in place, every tensor read and written once."""

import torch
import triton
import triton.language as tl


@triton.jit
def adamw_step_kernel(p_ptr, g_ptr, m_ptr, v_ptr, n, lr, beta1, beta2, eps, decay, c1, c2, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    p = tl.load(p_ptr + offsets, mask=mask)
    g = tl.load(g_ptr + offsets, mask=mask)
    m = tl.load(m_ptr + offsets, mask=mask)
    v = tl.load(v_ptr + offsets, mask=mask)
    m = beta1 * m + (1.0 - beta1) * g
    v = beta2 * v + (1.0 - beta2) * g * g
    p = p * (1.0 - lr * decay) - lr * (m * c1) / (tl.sqrt(v * c2) + eps)
    tl.store(m_ptr + offsets, m, mask=mask)
    tl.store(v_ptr + offsets, v, mask=mask)
    tl.store(p_ptr + offsets, p, mask=mask)


def adamw_step(p, g, m, v, step, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.01):
    c1, c2 = 1 / (1 - beta1**step), 1 / (1 - beta2**step)
    grid = (triton.cdiv(p.numel(), 512),)
    adamw_step_kernel[grid](p, g, m, v, p.numel(), lr, beta1, beta2, eps, decay, c1, c2, BLOCK=512)


if __name__ == "__main__":
    torch.manual_seed(0)
    p, g = torch.randn(400_000, device="cuda"), torch.randn(400_000, device="cuda")
    m, v = torch.zeros_like(p), torch.zeros_like(p)
    expected = p * (1 - 1e-5) - 1e-3 * g / (g.abs() + 1e-8)
    adamw_step(p, g, m, v, 1)
    torch.testing.assert_close(p, expected, rtol=1e-4, atol=1e-5)
