"""int8 product with int32 sums."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_int8_kernel(
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
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(a), tl.load(b), acc, out_dtype=tl.int32)
        a += BK
        b += BK * N
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


def matmul_int8(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty(M, N, device=a.device, dtype=torch.int32)
    grid = (triton.cdiv(M, 64) * triton.cdiv(N, 64),)
    matmul_int8_kernel[grid](a, b, c, M, N, K, BM=64, BN=64, BK=64, GROUP=8, num_warps=2, num_stages=2)
    return c


if __name__ == "__main__":
    torch.manual_seed(0)
    a = torch.randint(-128, 128, (512, 256), device="cuda", dtype=torch.int8)
    b = torch.randint(-128, 128, (256, 512), device="cuda", dtype=torch.int8)
    torch.testing.assert_close(matmul_int8(a, b), a.int() @ b.int())
