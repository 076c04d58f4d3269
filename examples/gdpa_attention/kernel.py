"""GDPA-style attention, forward: the softmax of attention is replaced by a tanh GELU. Written for Hopper."""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice


@triton.jit
def gelu_tanh(x):
    # 0.7978845608 = sqrt(2 / pi)
    return 0.5 * x * (1.0 + libdevice.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


@triton.jit
def gdpa_fwd(
    q_ptr, k_ptr, v_ptr, o_ptr, seqlen, heads, scale,
    stride_b, stride_s, stride_h,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
):
    start_m = tl.program_id(0)
    batch_head = tl.program_id(1)
    base = (batch_head // heads) * stride_b + (batch_head % heads) * stride_h
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, HEAD_DIM)
    q_mask = offs_m[:, None] < seqlen
    q = tl.load(q_ptr + base + offs_m[:, None] * stride_s + offs_d[None, :], mask=q_mask, other=0.0)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    for start_n in range(0, seqlen, BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        kv_mask = offs_n[:, None] < seqlen
        kv_offs = base + offs_n[:, None] * stride_s + offs_d[None, :]
        k = tl.load(k_ptr + kv_offs, mask=kv_mask, other=0.0)
        v = tl.load(v_ptr + kv_offs, mask=kv_mask, other=0.0)
        # gelu(0) = 0, so the masked keys add nothing
        p = gelu_tanh(tl.dot(q, tl.trans(k)) * scale)
        acc = tl.dot(p.to(v.dtype), v, acc)
    tl.store(o_ptr + base + offs_m[:, None] * stride_s + offs_d[None, :], acc.to(o_ptr.dtype.element_ty), mask=q_mask)


def gdpa(q, k, v, scale):
    """q, k, v: (batch, seqlen, heads, head_dim), contiguous; returns the same shape."""
    batch, seqlen, heads, head_dim = q.shape
    o = torch.empty_like(q)
    block_m, block_n = 128, 64
    grid = (triton.cdiv(seqlen, block_m), batch * heads)
    gdpa_fwd[grid](
        q, k, v, o, seqlen, heads, scale, q.stride(0), q.stride(1), q.stride(2),
        BLOCK_M=block_m, BLOCK_N=block_n, HEAD_DIM=head_dim, num_warps=4, num_stages=4,
    )
    return o


def reference(q, k, v, scale):
    scores = torch.einsum("bmhd,bnhd->bhmn", q.float(), k.float()) * scale
    weights = torch.nn.functional.gelu(scores, approximate="tanh")
    return torch.einsum("bhmn,bnhd->bmhd", weights, v.float())


def make_inputs(batch=1, seqlen=200, heads=2, head_dim=64):
    shape = (batch, seqlen, heads, head_dim)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, 1.0 / head_dim**0.5


if __name__ == "__main__":
    torch.manual_seed(0)
    q, k, v, scale = make_inputs()
    out = gdpa(q, k, v, scale)
    torch.testing.assert_close(out.float(), reference(q, k, v, scale), atol=0.25, rtol=2e-2)
    print("gdpa ok")
