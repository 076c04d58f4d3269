import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(x_ptr, y_ptr, loss_ptr, count_ptr, n, CHUNKS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    target = loss_ptr + tl.zeros((BLOCK,), tl.int32)
    for c in range(CHUNKS):
        i = (pid * CHUNKS + c) * BLOCK + tl.arange(0, BLOCK)
        m = i < n
        d = tl.load(x_ptr + i, mask=m, other=0.0) - tl.load(y_ptr + i, mask=m, other=0.0)
        tl.atomic_add(target, (d * d).to(tl.float32), mask=m)
        tl.atomic_add(count_ptr + (i - i), 1, m & (d > 1.0))


def run(x, y):
    loss = torch.zeros(1, device=x.device)
    count = torch.zeros(1, device=x.device, dtype=torch.int32)
    n = x.numel()
    loss_kernel[(triton.cdiv(n, 4096),)](x, y, loss, count, n, CHUNKS=4, BLOCK=1024)
    return loss, count
