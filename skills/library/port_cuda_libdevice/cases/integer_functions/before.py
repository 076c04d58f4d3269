import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def bits_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=0)
    y = libdevice.popc(x) + libdevice.clz(x) + libdevice.ffs(x) + libdevice.mulhi(x, x + 3)
    y = y ^ libdevice.byte_perm(x, y, 0x5140) ^ libdevice.brev(x)
    tl.store(y_ptr + i, y, mask=m)


def run(x, y):
    n = x.numel()
    bits_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
    return y
