import triton
import triton.language as tl


@triton.jit
def tickets_kernel(out_ptr, count_ptr, wanted, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ticket = tl.atomic_add(count_ptr + tl.zeros_like(i), 1, mask=wanted > 0)
    tl.store(out_ptr + ticket, i, mask=wanted > 0)


def run(out, count, wanted):
    tickets_kernel[(out.numel() // 256,)](out, count, wanted, BLOCK=256)
