"""HSTU attention, backward: dq, dk and dv of SiLU attention over jagged sequences (generative-recommenders)."""

import torch
from triton_hstu_attention import triton_hstu_attention_bwd


def run(dout, q, k, v, offsets, max_len, alpha):
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    return triton_hstu_attention_bwd(
        dout=dout, q=q, k=k, v=v, dq=dq, dk=dk, dv=dv, seq_offsets=offsets, num_targets=None, N=max_len, alpha=alpha,
        max_attn_len=0, contextual_seq_len=0, sort_by_length_indices=None,
    )  # fmt: skip


def reference(dout, q, k, v, offsets, max_len, alpha):
    q, k, v = (x.float().requires_grad_() for x in (q, k, v))
    parts = []
    for b, e in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        s = torch.einsum("mhd,nhd->hmn", q[b:e], k[b:e]) * alpha
        p = torch.nn.functional.silu(s).tril() / max_len
        parts.append(torch.einsum("hmn,nhd->mhd", p, v[b:e]))
    return torch.autograd.grad(torch.cat(parts), (q, k, v), dout.float())


def make_inputs(lengths=(40, 17, 64), heads=2, dim=64):
    offsets = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], device="cuda")
    made = (torch.randn((sum(lengths), heads, dim), device="cuda", dtype=torch.bfloat16) for _ in range(4))
    return *made, offsets, max(lengths), 1.0 / dim**0.5


def make_large():
    return make_inputs([(i * 613) % 2048 + 1 for i in range(64)], heads=4, dim=128)


if __name__ == "__main__":
    torch.manual_seed(2)
    args = make_inputs()
    for got, expected in zip(run(*args), reference(*args), strict=True):
        torch.testing.assert_close(got.float(), expected, atol=5e-3, rtol=3e-2)
