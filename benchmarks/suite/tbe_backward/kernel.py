"""Table-batched embedding backward: the gradient of a bag goes to every row it looked up; indices follow a Zipf law."""

import torch
import triton
import triton.language as tl


@triton.jit
def tbe_bwd(idx_ptr, bag_ptr, grad_ptr, out_ptr, table_rows, D, BLOCK: tl.constexpr):
    lookup = tl.program_id(0)
    table = tl.program_id(1)
    lookups = tl.num_programs(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < D
    index = tl.load(idx_ptr + table * lookups + lookup)
    bag = tl.load(bag_ptr + table * lookups + lookup)
    grad = tl.load(grad_ptr + bag * D + cols, mask=mask, other=0.0).to(tl.float32)
    tl.atomic_add(out_ptr + (table * table_rows + index) * D + cols, grad, mask=mask)


def run(idx, bag, grad, table_rows):
    """idx, bag: (tables, lookups) int64; grad: (bags, d); returns (tables, table_rows, d) fp32."""
    tables, lookups = idx.shape
    d = grad.shape[1]
    out = torch.zeros((tables, table_rows, d), device=grad.device, dtype=torch.float32)
    tbe_bwd[(lookups, tables)](idx, bag, grad, out, table_rows, d, BLOCK=triton.next_power_of_2(d), num_warps=8)
    return out


def make_inputs(batch=12, tables=2, lookups=5, d=64, table_rows=50, alpha=1.15, dtype=torch.float32):
    weights = 1.0 / torch.arange(1, table_rows + 1, device="cuda").float() ** alpha
    idx = torch.multinomial(weights.expand(tables, -1), batch * lookups, replacement=True)
    bag = torch.arange(batch, device="cuda").repeat_interleave(lookups).expand(tables, -1).contiguous()
    grad = (torch.randint(-8, 9, (batch, d), device="cuda").float() / 8).to(dtype)
    return idx, bag, grad, table_rows


def make_large():
    return make_inputs(65536, 3, 20, 256, 100_000, 1.15, torch.float16)


if __name__ == "__main__":
    torch.manual_seed(4)
    idx, bag, grad, table_rows = make_inputs()
    expected = torch.stack([
        torch.zeros((table_rows, grad.shape[1]), device="cuda").index_add_(0, i, grad[b].float()) for i, b in zip(idx, bag)
    ])
    torch.testing.assert_close(run(idx, bag, grad, table_rows), expected, atol=1e-3, rtol=1e-3)
    print("tbe backward ok")
