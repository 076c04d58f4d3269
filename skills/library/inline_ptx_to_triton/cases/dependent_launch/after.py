import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, OVERLAP: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    # wait for the kernel before
    x = tl.load(x_ptr + i, mask=i < n)
    if OVERLAP:
        pass
    tl.store(y_ptr + i, x, mask=i < n)


def run(x, y):
    n = x.numel()
    copy_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256, OVERLAP=True, num_warps=4)
    return y
