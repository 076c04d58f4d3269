import torch
import triton
import triton.language as tl


@triton.jit
def gather_kernel(table_ptr, index_ptr, out_ptr, D, BLOCK: tl.constexpr):
    # One row of the table.
    row = tl.program_id(0)
    source = tl.load(index_ptr + row)
    cols = tl.arange(0, BLOCK)
    x = tl.load(table_ptr + source * D + cols, mask=cols < D, other=0.0)
    tl.store(out_ptr + row * D + cols, x, mask=cols < D)


def gather(table, index):
    d = table.shape[1]
    out = torch.empty((index.numel(), d), device=table.device, dtype=table.dtype)
    gather_kernel[(index.numel(),)](table, index, out, d, BLOCK=triton.next_power_of_2(d), num_warps=4)
    return out
