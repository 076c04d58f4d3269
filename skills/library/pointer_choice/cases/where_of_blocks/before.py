import triton
import triton.language as tl


@triton.jit
def pick_kernel(bank_ptr, prefix_ptr, out_ptr, banks, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    bank = tl.program_id(1)
    offs = tl.arange(0, BLOCK)
    ahead = bank < banks
    at = tl.where(ahead, bank_ptr + row * stride + bank * n + offs, tl.where(row > 0, prefix_ptr + row * n + offs, prefix_ptr + offs))
    x = tl.load(at, mask=offs < n)
    tl.store(out_ptr + (row * (banks + 1) + bank) * n + offs, x, mask=offs < n)


def pick(bank, prefix):
    rows, banks, n = bank.shape
    out = bank.new_empty(rows, banks + 1, n)
    pick_kernel[(rows, banks + 1)](bank, prefix, out, banks, bank.stride(0), n, BLOCK=256)
    return out
