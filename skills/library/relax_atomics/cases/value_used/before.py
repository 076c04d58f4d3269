import triton
import triton.language as tl


@triton.jit
def slots_kernel(x_ptr, out_ptr, count_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    slot = tl.atomic_add(count_ptr, 1)
    tl.store(out_ptr + slot * BLOCK + tl.arange(0, BLOCK), tl.load(x_ptr + i, mask=i < n, other=0.0))


def run(x, out, count):
    n = x.numel()
    slots_kernel[(triton.cdiv(n, 256),)](x, out, count, n, BLOCK=256)
