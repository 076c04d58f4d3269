import triton
import triton.language as tl


@triton.jit
def count_kernel(x_ptr, count_ptr, wanted, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(count_ptr + tl.zeros_like(i), 1, mask=wanted > 0)
    tl.store(x_ptr + i, i)


def run(x, count, wanted):
    count_kernel[(x.numel() // 256,)](x, count, wanted, BLOCK=256)
