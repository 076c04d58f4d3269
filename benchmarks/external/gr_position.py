"""Timestamp and position embeddings added to jagged sequences, and their gradients (generative-recommenders)."""

import torch
from triton_position import triton_add_timestamp_positional_embeddings


def run(seq, offsets, pos, ts, timestamps, max_len, lengths, grad):
    seq, pos, ts = (x.detach().requires_grad_() for x in (seq, pos, ts))
    out = triton_add_timestamp_positional_embeddings(
        seq, offsets, pos, ts, timestamps, max_len, 0, lengths, None, False, "sqrt"
    )
    return out.detach(), *torch.autograd.grad(out, (pos, ts), grad)


def reference(seq, offsets, pos, ts, timestamps, max_len, lengths, grad):
    rows, times = [], []
    for b, e in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        rows.append((e - b - torch.arange(e - b, device=seq.device)).clamp(max=pos.shape[0] - 1))
        age = (timestamps[e - 1] - timestamps[b:e]).clamp(min=1e-6) / 60.0
        times.append(age.sqrt().int().clamp(0, ts.shape[0] - 1))
    rows, times = torch.cat(rows), torch.cat(times)
    d_pos, d_ts = torch.zeros_like(pos), torch.zeros_like(ts)
    d_pos.index_add_(0, rows, grad.to(pos.dtype))
    d_ts.index_add_(0, times, grad.to(ts.dtype))
    return seq + (pos[rows] + ts[times]).to(seq.dtype), d_pos, d_ts


def make_inputs(lengths=(40, 17, 64), dim=64, positions=50, buckets=30):
    offsets = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], device="cuda")
    total = sum(lengths)
    seq, grad = (torch.randn((total, dim), device="cuda", dtype=torch.bfloat16) for _ in range(2))
    pos, ts = torch.randn((positions, dim), device="cuda"), torch.randn((buckets, dim), device="cuda")
    ages = [(torch.randint(0, 40, (n,)) + 0.5).square().mul(60).long().sort(descending=True).values for n in lengths]
    for age in ages:
        age[-1] = 0  # of the last one, which all are counted from; the others' roots lie in the middle of a bucket
    timestamps = (100_000 - torch.cat(ages)).cuda()
    return seq, offsets, pos, ts, timestamps, max(lengths), offsets[1:] - offsets[:-1], grad


def make_large():
    return make_inputs([(i * 613) % 2048 + 1 for i in range(256)], dim=256, positions=8192, buckets=2048)


if __name__ == "__main__":
    torch.manual_seed(3)
    args = make_inputs()
    for got, expected in zip(run(*args), reference(*args), strict=True):
        torch.testing.assert_close(got, expected, atol=3e-2, rtol=2e-2)
