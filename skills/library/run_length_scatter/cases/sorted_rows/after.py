import torch
import triton
import triton.language as tl


@triton.jit
def scatter_kernel(idx_ptr, g_ptr, w_ptr, D, BLOCK: tl.constexpr, t_total):
    first_t = tl.program_id(0) * 16
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    m = c < D
    t = first_t
    row = tl.load(idx_ptr + t)  # sorted: neighbours often hit the same row
    g = tl.load(g_ptr + t * D + c, mask=m, other=0.0)
    run_row = row
    run_ptrs = w_ptr + row * D + c
    run_sum = g.to(tl.float32)
    for member in range(1, 16):
        t = first_t + member
        if t < t_total:
            row = tl.load(idx_ptr + t)  # sorted: neighbours often hit the same row
            g = tl.load(g_ptr + t * D + c, mask=m, other=0.0)
            if row == run_row:
                run_sum += g.to(tl.float32)
            else:
                tl.atomic_add(run_ptrs, run_sum, mask=m, sem="relaxed")
                run_row = row
                run_ptrs = w_ptr + row * D + c
                run_sum = g.to(tl.float32)
    tl.atomic_add(run_ptrs, run_sum, mask=m, sem="relaxed")


def scatter_add(idx, g, rows):
    T, D = g.shape
    w = torch.zeros((rows, D), device=g.device, dtype=torch.float32)
    scatter_kernel[(triton.cdiv(T, 16), triton.cdiv(D, 256))](idx, g, w, D, BLOCK=256, num_warps=4, t_total=T)
    return w
