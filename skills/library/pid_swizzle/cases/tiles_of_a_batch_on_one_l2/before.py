import torch
import triton
import triton.language as tl


@triton.jit
def jagged_mm(a_ptr, offsets, b_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    batch = tl.program_id(0)
    pid = tl.program_id(1)
    begin = tl.load(offsets + batch)
    M = tl.load(offsets + batch + 1) - begin
    across = tl.cdiv(N, BN)
    rows = pid // across * BM + tl.arange(0, BM)
    cols = pid % across * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        at = k + tl.arange(0, BK)
        a = tl.load(a_ptr + (begin + rows[:, None]) * K + at[None, :], mask=rows[:, None] < M, other=0.0)
        b = tl.load(b_ptr + batch * K * N + at[:, None] * N + cols[None, :], mask=cols[None, :] < N, other=0.0)
        acc += tl.dot(a, b)
    where = c_ptr + (begin + rows[:, None]) * N + cols[None, :]
    tl.store(where, acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


def run(a, offsets, b, longest):
    batches, K, N = b.shape
    c = torch.empty((a.shape[0], N), dtype=torch.float32, device=a.device)
    grid = (batches, triton.cdiv(longest, 64) * triton.cdiv(N, 64))
    jagged_mm[grid](a, offsets, b, c, N, K, BM=64, BN=64, BK=32)
    return c
