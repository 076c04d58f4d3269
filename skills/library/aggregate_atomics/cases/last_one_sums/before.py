import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, part_ptr, out_ptr, done_ptr, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    i = tl.program_id(0) * BLOCK + lane
    tl.store(part_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0.0) * 2)
    arrived = tl.atomic_add(done_ptr + tl.zeros_like(lane), 1, mask=lane < n)
    last = arrived == PARTS * BLOCK - 1
    tl.store(out_ptr + lane, tl.load(part_ptr + lane, mask=last, other=0.0), mask=last)


def run(x, part, out, done):
    sum_kernel[(triton.cdiv(x.numel(), 256),)](x, part, out, done, x.numel(), PARTS=4, BLOCK=256)
