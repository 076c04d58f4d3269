import triton
import triton.language as tl


@triton.jit
def pick_kernel(bank_ptr, prefix_ptr, out_ptr, banks, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    bank = tl.program_id(1)
    offs = tl.arange(0, BLOCK)
    base = tl.where(bank < banks, bank_ptr + row * stride + bank * n, prefix_ptr + row * n)
    x = tl.load(base + offs, mask=offs < n)
    tl.store(out_ptr + (row * (banks + 1) + bank) * n + offs, x, mask=offs < n)


def pick(bank, prefix):
    rows, banks, n = bank.shape
    out = bank.new_empty(rows, banks + 1, n)
    pick_kernel[(rows, banks + 1)](bank, prefix, out, banks, bank.stride(0), n, BLOCK=256)
    return out
