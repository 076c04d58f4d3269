import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def run(x, y):
    n = x.numel()
    warps = 4 if n < 32 else 8
    copy_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024, num_warps=warps, num_stages=2, num_ctas=1)
    return y
