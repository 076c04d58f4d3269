import torch
import triton
import triton.language as tl


@triton.jit
def rotary_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, heads, HALF: tl.constexpr, n_rows, ROWS: tl.constexpr):
    token = tl.program_id(0)
    head = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    in_rows = head < n_rows
    i = tl.arange(0, HALF)[None, :]
    c = tl.load(cos_ptr + token * HALF + i)
    s = tl.load(sin_ptr + token * HALF + i)
    base = (token * heads + head) * (2 * HALF)
    a = tl.load(x_ptr + base + i, mask=in_rows)
    b = tl.load(x_ptr + base + HALF + i, mask=in_rows)
    tl.store(out_ptr + base + i, a * c - b * s, mask=in_rows)
    tl.store(out_ptr + base + HALF + i, b * c + a * s, mask=in_rows)


def rotary(x, cos, sin):
    tokens, heads, width = x.shape
    out = torch.empty_like(x)
    rows_per_program = min(max(1, 1024 // (width // 2)), triton.next_power_of_2(heads))
    rotary_kernel[(tokens, triton.cdiv(heads, rows_per_program))](x, cos, sin, out, heads, HALF=width // 2, n_rows=heads, ROWS=rows_per_program)
    return out
