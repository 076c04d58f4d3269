import torch
import triton
import triton.language as tl


CONFIGS = [
    triton.Config({"BM": 64, "BN": 64, "BK": 32}, num_warps=4),
    triton.Config({"BM": 128, "BN": 64, "BK": 32}, num_warps=8),
    triton.Config({"BM": 64, "BN": 64, "BK": 32, "waves_per_eu": 2}, num_warps=4),
    triton.Config({"BM": 128, "BN": 64, "BK": 32, "waves_per_eu": 2}, num_warps=8),
]


@triton.autotune(configs=CONFIGS, key=["M", "N", "K"])
@triton.jit
def mm_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
              waves_per_eu: tl.constexpr = 0):
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(N, BN)
    row = (pid // tiles_n) * BM + tl.arange(0, BM)
    col = (pid % tiles_n) * BN + tl.arange(0, BN)
    kk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + row[:, None] * K + (k + kk)[None, :], mask=row[:, None] < M, other=0.0)
        b = tl.load(b_ptr + (k + kk)[:, None] * N + col[None, :], mask=col[None, :] < N, other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + row[:, None] * N + col[None, :], acc.to(tl.float16), mask=(row[:, None] < M) & (col[None, :] < N))


def run(a, b):
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=torch.float16)
    mm_kernel[lambda meta: (triton.cdiv(M, meta["BM"]) * triton.cdiv(N, meta["BN"]),)](a, b, c, M, N, K)
    return c
