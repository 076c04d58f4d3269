"""By hand: default dot precision of the target, exp2 instead of exp, 1 / max_len applied once, shallow pipeline."""

import torch
import triton
import triton.language as tl


@triton.jit
def hstu_bwd_kv(
    q_ptr, k_ptr, v_ptr, do_ptr, offsets_ptr, dk_ptr, dv_ptr, alpha, max_len, stride_t, stride_h,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
):
    start_n = tl.program_id(0) * BLOCK_N
    head = tl.program_id(1)
    seq = tl.program_id(2)
    begin = tl.load(offsets_ptr + seq).to(tl.int64)
    length = (tl.load(offsets_ptr + seq + 1).to(tl.int64) - begin).to(tl.int32)
    if start_n < length:
        offs_n = start_n + tl.arange(0, BLOCK_N)
        offs_d = tl.arange(0, HEAD_DIM)
        base = begin * stride_t + head * stride_h
        live = offs_n[:, None] < length
        kv_offs = base + offs_n[:, None] * stride_t + offs_d[None, :]
        k = tl.load(k_ptr + kv_offs, mask=live, other=0.0)
        v = tl.load(v_ptr + kv_offs, mask=live, other=0.0)
        dk = tl.zeros((BLOCK_N, HEAD_DIM), dtype=tl.float32)
        dv = tl.zeros((BLOCK_N, HEAD_DIM), dtype=tl.float32)
        for start_m in tl.range(start_n, length, BLOCK_M, num_stages=2):
            offs_m = start_m + tl.arange(0, BLOCK_M)
            q_offs = base + offs_m[:, None] * stride_t + offs_d[None, :]
            q = tl.load(q_ptr + q_offs, mask=offs_m[:, None] < length, other=0.0)
            do = tl.load(do_ptr + q_offs, mask=offs_m[:, None] < length, other=0.0)
            s = tl.dot(q, tl.trans(k)) * alpha
            sig = 1.0 / (1.0 + tl.exp2(-1.44269504 * s))
            keep = (offs_m[:, None] >= offs_n[None, :]) & (offs_m[:, None] < length)
            p = tl.where(keep, s * sig, 0.0)
            ds = tl.where(keep, tl.dot(do, tl.trans(v)) * (sig + p * (1.0 - sig)), 0.0)
            dv = tl.dot(tl.trans(p.to(do.dtype)), do, dv)
            dk = tl.dot(tl.trans(ds.to(q.dtype)), q, dk)
        inverse = 1.0 / max_len
        tl.store(dk_ptr + kv_offs, (dk * (alpha * inverse)).to(dk_ptr.dtype.element_ty), mask=live)
        tl.store(dv_ptr + kv_offs, (dv * inverse).to(dv_ptr.dtype.element_ty), mask=live)


def run(q, k, v, do, offsets, max_len, alpha):
    _, heads, head_dim = q.shape
    dk, dv = torch.empty_like(k), torch.empty_like(v)
    block_m, block_n = 32, 64
    hstu_bwd_kv[(triton.cdiv(max_len, block_n), heads, offsets.numel() - 1)](
        q, k, v, do, offsets, dk, dv, alpha, max_len, q.stride(0), q.stride(1),
        BLOCK_M=block_m, BLOCK_N=block_n, HEAD_DIM=head_dim, num_warps=4, num_stages=2,
    )
    return dk, dv
