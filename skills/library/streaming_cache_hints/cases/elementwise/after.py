import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    z = tl.load(x_ptr + i, mask=m, cache_modifier=".cg") + tl.load(y_ptr + i, mask=m, cache_modifier=".cg")
    tl.store(z_ptr + i, z, mask=m, cache_modifier=".cs")


def run(x, y, z):
    n = x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, z, n, BLOCK=1024)
