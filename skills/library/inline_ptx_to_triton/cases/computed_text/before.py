import triton
import triton.language as tl


@triton.jit
def load_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.inline_asm_elementwise(make_asm("add", 2), "=r,r", [i], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(y_ptr + i, x, mask=i < n)


def run(x, y):
    n = x.numel()
    load_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
    return y
