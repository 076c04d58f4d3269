import triton
import triton.language as tl


@triton.jit
def largest_kernel(x_ptr, out_ptr, best_ptr, flag_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    best = tl.atomic_max(best_ptr + tl.zeros_like(i), x, mask=i < n)
    flag = tl.atomic_or(flag_ptr + tl.zeros_like(i), x & 1, mask=i < n)
    tl.store(out_ptr + i, best + flag, mask=i < n)


def run(x, out, best, flag):
    largest_kernel[(triton.cdiv(x.numel(), 256),)](x, out, best, flag, x.numel(), BLOCK=256)
