"""Jagged x dense batched matrix product plus bias (generative-recommenders)."""

import torch
from triton_jagged import triton_jagged_dense_bmm_broadcast_add


def run(max_len, offsets, jagged, dense, bias):
    return triton_jagged_dense_bmm_broadcast_add(max_len, offsets, jagged, dense, bias)


def reference(max_len, offsets, jagged, dense, bias):
    parts = []
    for i, (b, e) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        parts.append(jagged[b:e].float() @ dense[i].float() + bias[i].float())
    return torch.cat(parts)


def make_inputs(lengths=(70, 33, 100), k=96, n=80):
    offsets = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], device="cuda")
    jagged = torch.randn((sum(lengths), k), device="cuda", dtype=torch.bfloat16)
    dense = torch.randn((len(lengths), k, n), device="cuda", dtype=torch.bfloat16)
    bias = torch.randn((len(lengths), n), device="cuda", dtype=torch.bfloat16)
    return max(lengths), offsets, jagged, dense, bias


def make_large():
    return make_inputs([(i * 613) % 1024 + 1 for i in range(256)], k=512, n=512)


if __name__ == "__main__":
    torch.manual_seed(4)
    args = make_inputs()
    torch.testing.assert_close(run(*args).float(), reference(*args), atol=5e-2, rtol=2e-2)
