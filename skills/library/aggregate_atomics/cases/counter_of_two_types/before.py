import triton
import triton.language as tl


@triton.jit
def tickets_kernel(out_ptr, count_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ticket = tl.atomic_add(count_ptr + tl.zeros_like(i), 1, mask=i < n)
    tl.store(out_ptr + i, ticket, mask=i < n)


def run(out, count):
    tickets_kernel[(triton.cdiv(out.numel(), 256),)](out, count, out.numel(), BLOCK=256)
