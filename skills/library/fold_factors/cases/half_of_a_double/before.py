import triton
import triton.language as tl


@triton.jit
def scores(q_ptr, k_ptr, n_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    q = tl.load(q_ptr + offs[:, None] * N + offs[None, :])
    k = tl.load(k_ptr + offs[:, None] * N + offs[None, :])
    count = tl.load(n_ptr + offs)
    x = tl.dot(q, k)
    half = (0.5 * (2.0 * count))[:, None]
    tiny = x * 1e-20 * 1e-20
    third = x * (-3.0) / 9.0
    tl.store(out_ptr + offs[:, None] * N + offs[None, :], (x * 0.25 * -2.0 + half) * 4 * 0.5 + tiny + third)


def run(q, k, n, out):
    scores[(1,)](q, k, n, out, N=32)
