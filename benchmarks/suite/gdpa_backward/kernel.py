"""GDPA-style attention, backward with respect to the queries: tanh GELU and its derivative inside the loop."""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice


@triton.jit
def gdpa_bwd_dq(
    q_ptr, k_ptr, v_ptr, do_ptr, dq_ptr, seqlen, heads, scale, stride_b, stride_s, stride_h,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
):
    start_m = tl.program_id(0) * BLOCK_M
    batch_head = tl.program_id(1)
    base = (batch_head // heads) * stride_b + (batch_head % heads) * stride_h
    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, HEAD_DIM)
    rows = offs_m[:, None] < seqlen
    q_offs = base + offs_m[:, None] * stride_s + offs_d[None, :]
    q = tl.load(q_ptr + q_offs, mask=rows, other=0.0)
    do = tl.load(do_ptr + q_offs, mask=rows, other=0.0)
    dq = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    for start_n in range(0, seqlen, BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        kv_offs = base + offs_n[:, None] * stride_s + offs_d[None, :]
        k = tl.load(k_ptr + kv_offs, mask=offs_n[:, None] < seqlen, other=0.0)
        v = tl.load(v_ptr + kv_offs, mask=offs_n[:, None] < seqlen, other=0.0)
        x = tl.dot(q, tl.trans(k)) * scale
        t = libdevice.tanh(0.7978845608 * (x + 0.044715 * x * x * x))
        dt = (1.0 - t * t) * 0.7978845608 * (1.0 + 3.0 * 0.044715 * x * x)
        grad = 0.5 * (1.0 + t) + 0.5 * x * dt
        dp = tl.dot(do, tl.trans(v)) * grad * scale
        dq = tl.dot(dp.to(k.dtype), k, dq)
    tl.store(dq_ptr + q_offs, dq.to(dq_ptr.dtype.element_ty), mask=rows)


def run(q, k, v, do, scale):
    """q, k, v, do: (batch, seqlen, heads, head_dim), contiguous; returns dq."""
    batch, seqlen, heads, head_dim = q.shape
    dq = torch.empty_like(q)
    block_m, block_n = 128, 64
    gdpa_bwd_dq[(triton.cdiv(seqlen, block_m), batch * heads)](
        q, k, v, do, dq, seqlen, heads, scale, q.stride(0), q.stride(1), q.stride(2),
        BLOCK_M=block_m, BLOCK_N=block_n, HEAD_DIM=head_dim, num_warps=8, num_stages=3,
    )
    return dq


def make_inputs(batch=1, seqlen=150, heads=2, head_dim=64):
    q, k, v, do = (torch.randn((batch, seqlen, heads, head_dim), device="cuda", dtype=torch.bfloat16) for _ in range(4))
    return q, k, v, do, 1.0 / head_dim**0.5


def make_large():
    return make_inputs(8, 2048, 8, 64)


if __name__ == "__main__":
    torch.manual_seed(0)
    q, k, v, do, scale = make_inputs()
    q32 = q.float().requires_grad_()
    weights = torch.nn.functional.gelu(torch.einsum("bmhd,bnhd->bhmn", q32, k.float()) * scale, approximate="tanh")
    torch.einsum("bhmn,bnhd->bmhd", weights, v.float()).backward(do.float())
    torch.testing.assert_close(run(q, k, v, do, scale).float(), q32.grad, atol=0.3, rtol=3e-2)
    print("gdpa backward ok")
