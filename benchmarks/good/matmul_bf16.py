"""bf16 product with grouped programs."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_bf16_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr
):
    pid = tl.program_id(0)
    rows, cols = tl.cdiv(M, BM), tl.cdiv(N, BN)
    width = GROUP * cols
    first = pid // width * GROUP
    size = min(rows - first, GROUP)
    pid_m = first + pid % width % size
    pid_n = pid % width // size
    m = pid_m * BM + tl.arange(0, BM)
    n = pid_n * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = a_ptr + m[:, None] * K + k[None, :]
    b = b_ptr + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(a), tl.load(b), acc)
        a += BK
        b += BK * N
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16))


def matmul_bf16(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty(M, N, device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(M, 64) * triton.cdiv(N, 64),)
    matmul_bf16_kernel[grid](a, b, c, M, N, K, BM=64, BN=64, BK=64, GROUP=8, num_warps=4, num_stages=2)
    return c


if __name__ == "__main__":
    torch.manual_seed(0)
    a = torch.randn(512, 256, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(256, 512, device="cuda", dtype=torch.bfloat16)
    torch.testing.assert_close(matmul_bf16(a, b), a @ b, rtol=2e-2, atol=2e-2)
