import torch
import triton
import triton.language as tl


@triton.jit
def _neighbours_on_one_xcd(pid, programs, XCDS: tl.constexpr):
    """Renumber programs so that each XCD, dealt every XCDS-th, works on consecutive tiles. A bijection for any grid."""
    xcd = pid % XCDS
    longer = programs % XCDS  # that many XCDs get one program more
    share = programs // XCDS
    return xcd * share + tl.minimum(xcd, longer) + pid // XCDS


@triton.jit
def _grouped_tiles(pid, tiles_0, tiles_1, GROUP: tl.constexpr):
    """Tile coordinates in groups of GROUP rows, so that neighbouring programs share operands. A bijection."""
    width = GROUP * tiles_1
    first = (pid // width) * GROUP
    rows = tl.minimum(tiles_0 - first, GROUP)
    return first + (pid % width) % rows, (pid % width) // rows


@triton.jit
def mm_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(axis=1)
    tile = _neighbours_on_one_xcd(pid_m + pid_n * tl.num_programs(0), tl.num_programs(0) * tl.num_programs(1), 8)
    pid_m, pid_n = _grouped_tiles(tile, tl.num_programs(0), tl.num_programs(1), 8)
    row = pid_m * BM + tl.arange(0, BM)
    col = pid_n * BN + tl.arange(0, BN)
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
    mm_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](a, b, c, M, N, K, BM=64, BN=64, BK=32, num_warps=4)
    return c
