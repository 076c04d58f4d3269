import triton
import triton.language as tl
from triton.language.extra.cuda import globaltimer
from triton.language.extra.hip import memrealtime


@triton.jit
def _global_timer():
    """Nanoseconds of a clock that all programs share (on HIP a 100 MHz counter)."""
    if tl.target_info.is_hip():
        now = memrealtime() * 10
    else:
        now = globaltimer()
    return now


@triton.jit
def load_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = _global_timer()
    tl.store(y_ptr + i, x, mask=i < n)


def run(x, y):
    n = x.numel()
    load_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
    return y
