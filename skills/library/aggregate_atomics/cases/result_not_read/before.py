import triton
import triton.language as tl


@triton.jit
def count_kernel(x_ptr, count_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.atomic_add(count_ptr + tl.zeros_like(i), 1, mask=x > 0)


def run(x, count):
    count_kernel[(triton.cdiv(x.numel(), 256),)](x, count, x.numel(), BLOCK=256)
