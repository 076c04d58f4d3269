import triton
import triton.language as tl


@triton.jit
def scores(q_ptr, k_ptr, out_ptr, scale, N: tl.constexpr):
    offs = tl.arange(0, N)
    rows = 2 * 4 * offs[:, None] * (N // 8)
    q = tl.load(q_ptr + rows + offs[None, :])
    k = tl.load(k_ptr + rows + offs[None, :])
    x = tl.dot(q, tl.trans(k)) * scale * 1.44269504
    s = 1.0 / (1.0 + tl.exp2(-x))
    tl.store(out_ptr + rows + offs[None, :], x * x * s + 2.0 * s + 0.5 * x)


def run(q, k, out):
    scores[(1,)](q, k, out, 0.5, N=64)
