import triton
import triton.language as tl


@triton.jit
def compact_kernel(x_ptr, out_ptr, count_ptr, n, DENSE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    pos = i if DENSE else tl.atomic_add(count_ptr + tl.zeros_like(i), 1, mask=i < n)
    tl.store(out_ptr + pos, x, mask=i < n)


def run(x, out, count):
    compact_kernel[(triton.cdiv(x.numel(), 256),)](x, out, count, x.numel(), DENSE=False, BLOCK=256)
