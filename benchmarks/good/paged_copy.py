"""Copy of cached keys by a page table: whole pages, no arithmetic."""

import torch
import triton
import triton.language as tl


@triton.jit
def paged_copy_kernel(cache_ptr, page_ptr, out_ptr, PAGE: tl.constexpr, WIDTH: tl.constexpr):
    block = tl.program_id(0)
    page = tl.load(page_ptr + block).to(tl.int64)
    t = tl.arange(0, PAGE)
    d = tl.arange(0, WIDTH)
    tile = t[:, None] * WIDTH + d[None, :]
    tl.store(out_ptr + block * PAGE * WIDTH + tile, tl.load(cache_ptr + page * PAGE * WIDTH + tile))


def paged_copy(cache, pages):
    out = torch.empty(pages.numel(), *cache.shape[1:], device=cache.device, dtype=cache.dtype)
    paged_copy_kernel[(pages.numel(),)](cache, pages, out, PAGE=cache.shape[1], WIDTH=cache.shape[2])
    return out


if __name__ == "__main__":
    torch.manual_seed(0)
    cache = torch.randn(700, 16, 128, device="cuda", dtype=torch.bfloat16)
    pages = torch.randperm(700, device="cuda")[:640].int()
    torch.testing.assert_close(paged_copy(cache, pages), cache[pages.long()])
