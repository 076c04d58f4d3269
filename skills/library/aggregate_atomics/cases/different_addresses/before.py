import triton
import triton.language as tl


@triton.jit
def ranks_kernel(bin_ptr, rank_ptr, count_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bins = tl.load(bin_ptr + i, mask=i < n, other=0)
    rank = tl.atomic_add(count_ptr + bins, 1, mask=i < n)
    tl.store(rank_ptr + rank, i, mask=i < n)


def run(bins, ranks, counts):
    ranks_kernel[(triton.cdiv(bins.numel(), 256),)](bins, ranks, counts, bins.numel(), BLOCK=256)
