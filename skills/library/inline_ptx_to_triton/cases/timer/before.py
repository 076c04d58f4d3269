import triton
import triton.language as tl


@triton.jit
def load_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)
    tl.store(y_ptr + i, x, mask=i < n)


def run(x, y):
    n = x.numel()
    load_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
    return y
