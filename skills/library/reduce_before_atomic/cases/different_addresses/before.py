import triton
import triton.language as tl


@triton.jit
def scatter_kernel(idx_ptr, x_ptr, out_ptr, total_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=0.0)
    tl.atomic_add(out_ptr + tl.load(idx_ptr + i, mask=m, other=0), x, mask=m)
    tl.atomic_add(total_ptr, tl.sum(x))


def run(idx, x, out, total):
    n = x.numel()
    scatter_kernel[(triton.cdiv(n, 256),)](idx, x, out, total, n, BLOCK=256)
