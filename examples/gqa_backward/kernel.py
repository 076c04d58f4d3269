"""Grouped-query attention, backward to K and V: the query heads of one group add into the same rows with atomics."""

import torch
import triton
import triton.language as tl


@triton.jit
def gqa_bwd_kv(
    q_ptr, k_ptr, v_ptr, do_ptr, dk_ptr, dv_ptr, seqlen_q, seqlen_k, scale, group,
    stride_qh, stride_kh,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
):
    start_n = tl.program_id(0)
    q_head = tl.program_id(1)
    kv_head = q_head // group
    offs_n = start_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    n_mask = offs_n[:, None] < seqlen_k
    kv_offs = kv_head * stride_kh + offs_n[:, None] * HEAD_DIM + offs_d[None, :]
    k = tl.load(k_ptr + kv_offs, mask=n_mask, other=0.0)
    v = tl.load(v_ptr + kv_offs, mask=n_mask, other=0.0)
    dk = tl.zeros((BLOCK_N, HEAD_DIM), dtype=tl.float32)
    dv = tl.zeros((BLOCK_N, HEAD_DIM), dtype=tl.float32)
    for start_m in range(0, seqlen_q, BLOCK_M):
        offs_m = start_m + tl.arange(0, BLOCK_M)
        m_mask = offs_m[:, None] < seqlen_q
        q_offs = q_head * stride_qh + offs_m[:, None] * HEAD_DIM + offs_d[None, :]
        q = tl.load(q_ptr + q_offs, mask=m_mask, other=0.0)
        do = tl.load(do_ptr + q_offs, mask=m_mask, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        sig = 1.0 / (1.0 + tl.exp(-s))
        p = s * sig
        dp = tl.dot(do, tl.trans(v))
        ds = dp * (sig + p * (1.0 - sig)) * scale
        dv += tl.dot(tl.trans(p.to(do.dtype)), do)
        dk += tl.dot(tl.trans(ds.to(q.dtype)), q)
    tl.atomic_add(dk_ptr + kv_offs, dk, mask=n_mask)
    tl.atomic_add(dv_ptr + kv_offs, dv, mask=n_mask)


def gqa_backward(q, k, v, do, scale):
    """q, do: (q heads, seqlen_q, head_dim); k, v: (kv heads, seqlen_k, head_dim); returns dk, dv in fp32."""
    q_heads, seqlen_q, head_dim = q.shape
    kv_heads, seqlen_k, _ = k.shape
    dk = torch.zeros(k.shape, device=k.device, dtype=torch.float32)
    dv = torch.zeros(v.shape, device=v.device, dtype=torch.float32)
    block_m, block_n = 32, 64
    grid = (triton.cdiv(seqlen_k, block_n), q_heads)
    gqa_bwd_kv[grid](
        q, k, v, do, dk, dv, seqlen_q, seqlen_k, scale, q_heads // kv_heads, q.stride(0), k.stride(0),
        BLOCK_M=block_m, BLOCK_N=block_n, HEAD_DIM=head_dim, num_warps=4, num_stages=2,
    )
    return dk, dv


def reference(q, k, v, do, scale):
    group = q.shape[0] // k.shape[0]
    kr = k.float().repeat_interleave(group, 0).requires_grad_()
    vr = v.float().repeat_interleave(group, 0).requires_grad_()
    p = torch.nn.functional.silu(q.float() @ kr.transpose(1, 2) * scale)
    (p @ vr).backward(do.float())
    shape = (k.shape[0], group, *k.shape[1:])
    return kr.grad.reshape(shape).sum(1), vr.grad.reshape(shape).sum(1)


def make_inputs(q_heads=8, kv_heads=2, seqlen_q=32, seqlen_k=128, head_dim=64):
    def rand(*shape):
        return torch.randn(shape, device="cuda", dtype=torch.float16)

    return (rand(q_heads, seqlen_q, head_dim), rand(kv_heads, seqlen_k, head_dim), rand(kv_heads, seqlen_k, head_dim),
            rand(q_heads, seqlen_q, head_dim), 1.0 / head_dim**0.5)


if __name__ == "__main__":
    torch.manual_seed(2)
    args = make_inputs()
    dk, dv = gqa_backward(*args)
    ref_dk, ref_dv = reference(*args)
    torch.testing.assert_close(dk, ref_dk, atol=5e-2, rtol=1e-2)
    torch.testing.assert_close(dv, ref_dv, atol=5e-2, rtol=1e-2)
    print("gqa backward ok")
