"""By hand: the sigmoid form of the tanh GELU needs one exp2 and one division; shallow pipeline."""

import torch
import triton
import triton.language as tl


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
    for start_n in tl.range(0, seqlen, BLOCK_N, num_stages=2):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        kv_offs = base + offs_n[:, None] * stride_s + offs_d[None, :]
        k = tl.load(k_ptr + kv_offs, mask=offs_n[:, None] < seqlen, other=0.0)
        v = tl.load(v_ptr + kv_offs, mask=offs_n[:, None] < seqlen, other=0.0)
        x = tl.dot(q, tl.trans(k)) * scale
        x2 = x * x
        # gelu(x) = x s, s = sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3); 2.302208... = 2 sqrt(2/pi) log2(e)
        s = 1.0 / (1.0 + tl.exp2(-2.302208198 * (x + 0.044715 * x * x2)))
        grad = s + x * s * (1.0 - s) * (1.5957691216 + 0.2140644488 * x2)
        dp = tl.dot(do, tl.trans(v)) * (grad * scale)
        dq = tl.dot(dp.to(k.dtype), k, dq)
    tl.store(dq_ptr + q_offs, dq.to(dq_ptr.dtype.element_ty), mask=rows)


def run(q, k, v, do, scale):
    batch, seqlen, heads, head_dim = q.shape
    dq = torch.empty_like(q)
    block_m, block_n = 128, 64
    gdpa_bwd_dq[(triton.cdiv(seqlen, block_m), batch * heads)](
        q, k, v, do, dq, seqlen, heads, scale, q.stride(0), q.stride(1), q.stride(2),
        BLOCK_M=block_m, BLOCK_N=block_n, HEAD_DIM=head_dim, num_warps=8, num_stages=2,
    )
    return dq
