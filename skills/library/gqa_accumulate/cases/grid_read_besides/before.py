import torch
import triton
import triton.language as tl


@triton.jit
def dkdv_kernel(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, T, H, scale, GROUP: tl.constexpr,
                D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    block = tl.program_id(0)
    head = tl.program_id(1)
    kv_head = head // GROUP
    n = block * BN + tl.arange(0, BN)
    d = tl.arange(0, D)
    kv = (kv_head * T + n[:, None]) * D + d[None, :]
    k = tl.load(k_ptr + kv, mask=n[:, None] < T, other=0.0)
    v = tl.load(v_ptr + kv, mask=n[:, None] < T, other=0.0)
    dk = tl.zeros((BN, D), tl.float32)
    dv = tl.zeros((BN, D), tl.float32)
    for start in range(0, T, BM):
        m = start + tl.arange(0, BM)
        rows = (head * T + m[:, None]) * D + d[None, :]
        q = tl.load(q_ptr + rows, mask=m[:, None] < T, other=0.0)
        do = tl.load(do_ptr + rows, mask=m[:, None] < T, other=0.0)
        lse = tl.load(lse_ptr + head * T + m, mask=m < T, other=0.0)
        delta = tl.load(delta_ptr + head * T + m, mask=m < T, other=0.0)
        p = tl.exp(tl.dot(q, tl.trans(k)) * scale - lse[:, None])
        p = tl.where(m[:, None] < T, p, 0.0)
        dv += tl.dot(tl.trans(p.to(do.dtype)), do)
        ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])
        dk += tl.dot(tl.trans(ds.to(q.dtype)), q)
    dk = dk * scale
    # several query heads share one key and value head
    tl.atomic_add(dk_ptr + kv, dk, mask=n[:, None] < T, sem="relaxed")
    tl.atomic_add(dv_ptr + kv, dv, mask=n[:, None] < T, sem="relaxed")


def backward(q, k, v, do, lse, delta, scale):
    H, T, D = q.shape
    HKV = k.shape[0]
    dk = torch.zeros_like(k, dtype=torch.float32)
    dv = torch.zeros_like(v, dtype=torch.float32)
    grid = (triton.cdiv(T, 64), H)
    print(grid[0] * grid[1], "programs")
    dkdv_kernel[grid](q, k, v, do, lse, delta, dk, dv, T, H, scale, GROUP=H // HKV, D=D, BM=64, BN=64)
    return dk, dv
