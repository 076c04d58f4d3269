"""HSTU-style jagged attention, backward with respect to K and V: SiLU weights, causal, packed sequences."""

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
        for start_m in range(start_n, length, BLOCK_M):
            offs_m = start_m + tl.arange(0, BLOCK_M)
            q_offs = base + offs_m[:, None] * stride_t + offs_d[None, :]
            q = tl.load(q_ptr + q_offs, mask=offs_m[:, None] < length, other=0.0)
            do = tl.load(do_ptr + q_offs, mask=offs_m[:, None] < length, other=0.0)
            s = tl.dot(q, tl.trans(k), input_precision="tf32") * alpha
            sig = 1.0 / (1.0 + tl.exp(-s))
            keep = (offs_m[:, None] >= offs_n[None, :]) & (offs_m[:, None] < length)
            p = tl.where(keep, s * sig / max_len, 0.0)
            dp = tl.dot(do, tl.trans(v), input_precision="tf32")
            ds = tl.where(keep, dp * sig * (1.0 + s * (1.0 - sig)) * alpha / max_len, 0.0)
            dv = tl.dot(tl.trans(p.to(do.dtype)), do, dv, input_precision="tf32")
            dk = tl.dot(tl.trans(ds.to(q.dtype)), q, dk, input_precision="tf32")
        tl.store(dk_ptr + kv_offs, dk.to(dk_ptr.dtype.element_ty), mask=live)
        tl.store(dv_ptr + kv_offs, dv.to(dv_ptr.dtype.element_ty), mask=live)


def run(q, k, v, do, offsets, max_len, alpha):
    """q, k, v, do: (total tokens, heads, head_dim) fp32; offsets: (sequences + 1,) int32; returns dk, dv."""
    _, heads, head_dim = q.shape
    dk, dv = torch.empty_like(k), torch.empty_like(v)
    block_m, block_n = 64, 64
    hstu_bwd_kv[(triton.cdiv(max_len, block_n), heads, offsets.numel() - 1)](
        q, k, v, do, offsets, dk, dv, alpha, max_len, q.stride(0), q.stride(1),
        BLOCK_M=block_m, BLOCK_N=block_n, HEAD_DIM=head_dim, num_warps=4, num_stages=3,
    )
    return dk, dv


def make_inputs(lengths=(70, 33, 100), heads=2, head_dim=64):
    offsets = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], device="cuda", dtype=torch.int32)
    q, k, v, do = (torch.randn((sum(lengths), heads, head_dim), device="cuda") for _ in range(4))
    return q, k, v, do, offsets, max(lengths), 1.0 / head_dim**0.5


def make_large():
    return make_inputs(tuple(200 + 57 * i % 1800 for i in range(64)), 4, 64)


if __name__ == "__main__":
    torch.manual_seed(1)
    q, k, v, do, offsets, max_len, alpha = make_inputs()
    k32, v32 = k.clone().requires_grad_(), v.clone().requires_grad_()
    out = []
    for b, e in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        p = torch.nn.functional.silu(torch.einsum("mhd,nhd->hmn", q[b:e], k32[b:e]) * alpha).tril()
        out.append(torch.einsum("hmn,nhd->mhd", p, v32[b:e]) / max_len)
    torch.cat(out).backward(do)
    dk, dv = run(q, k, v, do, offsets, max_len, alpha)
    torch.testing.assert_close(dk, k32.grad, atol=5e-3, rtol=2e-2)
    torch.testing.assert_close(dv, v32.grad, atol=5e-3, rtol=2e-2)
    print("hstu backward ok")
