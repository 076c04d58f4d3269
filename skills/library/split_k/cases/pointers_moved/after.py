import torch
import triton
import triton.language as tl


@triton.jit
def sum_partials(partial_ptr, out_ptr, elements, parts, BLOCK: tl.constexpr):
    """out = the sum of `parts` buffers of `elements` each, in order."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(0, parts):
        total += tl.load(partial_ptr + offs, mask=offs < elements, other=0.0)
        partial_ptr += elements
    tl.store(out_ptr + offs, total.to(out_ptr.dtype.element_ty), mask=offs < elements)


@triton.jit
def product(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, partial_elements,
):
    """C = A B."""
    part = tl.program_id(2)
    c_ptr += part.to(tl.int64) * partial_elements
    rm = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    rn = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rm[:, None] * stride_am + rk[None, :] * stride_ak
    b_ptrs = b_ptr + rk[:, None] * stride_bk + rn[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    part_steps = tl.cdiv(tl.cdiv(K, BLOCK_K), tl.num_programs(2))
    a_ptrs += (part * part_steps).to(tl.int64) * (BLOCK_K * stride_ak)
    b_ptrs += (part * part_steps).to(tl.int64) * (BLOCK_K * stride_bk)
    for k in tl.range(part * part_steps, tl.minimum(tl.cdiv(K, BLOCK_K), (part + 1) * part_steps), num_stages=2):
        a = tl.load(a_ptrs, mask=rk[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=rk[:, None] < K - k * BLOCK_K, other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c = acc
    cm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + cm[:, None] * N + cn[None, :]
    tl.store(c_ptrs, c, mask=(cm[:, None] < M) & (cn[None, :] < N))


def matmul(a, b, block_m=32, block_n=32):
    M, K = a.shape
    K, N = b.shape
    c = a.new_zeros((M, N))
    grid = (triton.cdiv(M, block_m), triton.cdiv(N, block_n))
    units = torch.cuda.get_device_properties(c.device).multi_processor_count
    k_parts = max(1, min(16, 2 * units // (triton.cdiv(M, block_m) * triton.cdiv(N, block_n)), K // (4 * 32)))
    partial = c if k_parts == 1 else torch.zeros((k_parts, c.numel()), device=c.device, dtype=torch.float32)
    product[(*grid, k_parts)](
        a, b, partial, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1),
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=32, partial_elements=c.numel(),
    )
    if k_parts > 1:
        sum_partials[(triton.cdiv(c.numel(), 1024),)](partial, c, c.numel(), k_parts, BLOCK=1024)
    return c
