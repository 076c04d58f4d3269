"""HSTU-style jagged attention, forward: SiLU instead of softmax, causal, sequences of different lengths packed in one tensor."""

import torch
import triton
import triton.language as tl


@triton.jit
def jagged_attn_fwd(
    q_ptr, k_ptr, v_ptr, offsets_ptr, o_ptr, alpha, max_len, stride_t, stride_h,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
):
    start_m = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1)
    seq = tl.program_id(2)
    begin = tl.load(offsets_ptr + seq).to(tl.int64)
    end = tl.load(offsets_ptr + seq + 1).to(tl.int64)
    length = (end - begin).to(tl.int32)
    if start_m < length:
        offs_m = start_m + tl.arange(0, BLOCK_M)
        offs_d = tl.arange(0, HEAD_DIM)
        base = begin * stride_t + head * stride_h
        q = tl.load(q_ptr + base + offs_m[:, None] * stride_t + offs_d[None, :], mask=offs_m[:, None] < length, other=0.0)
        acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
        for start_n in range(0, start_m + BLOCK_M, BLOCK_N):
            offs_n = start_n + tl.arange(0, BLOCK_N)
            kv_offs = base + offs_n[:, None] * stride_t + offs_d[None, :]
            k = tl.load(k_ptr + kv_offs, mask=offs_n[:, None] < length, other=0.0)
            v = tl.load(v_ptr + kv_offs, mask=offs_n[:, None] < length, other=0.0)
            s = tl.dot(q, tl.trans(k), input_precision="tf32") * alpha
            p = s / (1.0 + tl.exp(-s))
            p = tl.where((offs_m[:, None] >= offs_n[None, :]) & (offs_n[None, :] < length), p, 0.0)
            acc = tl.dot(p.to(v.dtype), v, acc)
        acc = acc / max_len
        tl.store(
            o_ptr + base + offs_m[:, None] * stride_t + offs_d[None, :],
            acc.to(o_ptr.dtype.element_ty), mask=offs_m[:, None] < length,
        )


def jagged_attention(q, k, v, offsets, max_len, alpha):
    """q, k, v: (total tokens, heads, head_dim); offsets: (sequences + 1,) int32."""
    _, heads, head_dim = q.shape
    o = torch.empty_like(q)
    block_m, block_n = 64, 64
    grid = (triton.cdiv(max_len, block_m), heads, offsets.numel() - 1)
    jagged_attn_fwd[grid](
        q, k, v, offsets, o, alpha, max_len, q.stride(0), q.stride(1),
        BLOCK_M=block_m, BLOCK_N=block_n, HEAD_DIM=head_dim, num_warps=4, num_stages=4,
    )
    return o


def reference(q, k, v, offsets, max_len, alpha):
    out = torch.zeros(q.shape, device=q.device, dtype=torch.float32)
    for b, e in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        s = torch.einsum("mhd,nhd->hmn", q[b:e].float(), k[b:e].float()) * alpha
        p = torch.nn.functional.silu(s).tril()
        out[b:e] = torch.einsum("hmn,nhd->mhd", p, v[b:e].float()) / max_len
    return out


def make_inputs(lengths=(70, 33, 100), heads=2, head_dim=64):
    offsets = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], device="cuda", dtype=torch.int32)
    shape = (sum(lengths), heads, head_dim)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.float32) for _ in range(3))
    return q, k, v, offsets, max(lengths), 1.0 / head_dim**0.5


if __name__ == "__main__":
    torch.manual_seed(1)
    args = make_inputs()
    torch.testing.assert_close(jagged_attention(*args).float(), reference(*args), atol=5e-3, rtol=1e-2)
    print("jagged attention ok")
