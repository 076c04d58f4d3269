import triton
import triton.language as tl


@triton.jit
def partial_sum_kernel(x_ptr, out_ptr, counter_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
    tl.atomic_add(counter_ptr, 1)
    if tl.program_id(0) == 0:
        while tl.atomic_add(counter_ptr, 0) < tl.num_programs(0):
            pass
        tl.atomic_add(out_ptr, 1.0)


def run(x, out, counter):
    n = x.numel()
    partial_sum_kernel[(triton.cdiv(n, 256),)](x, out, counter, n, BLOCK=256)
