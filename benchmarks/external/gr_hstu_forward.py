"""HSTU attention, forward: SiLU attention over sequences of different lengths (generative-recommenders)."""

import torch
from triton_hstu_attention import triton_hstu_mha


def run(q, k, v, offsets, max_len, alpha):
    return triton_hstu_mha(N=max_len, alpha=alpha, q=q, k=k, v=v, seq_offsets=offsets)


def reference(q, k, v, offsets, max_len, alpha):
    out = torch.zeros(v.shape, device=q.device, dtype=torch.float32)
    for b, e in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        s = torch.einsum("mhd,nhd->hmn", q[b:e].float(), k[b:e].float()) * alpha
        p = torch.nn.functional.silu(s).tril() / max_len
        out[b:e] = torch.einsum("hmn,nhd->mhd", p, v[b:e].float())
    return out


def make_inputs(lengths=(70, 33, 100), heads=2, dim=64):
    offsets = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], device="cuda")
    q, k, v = (torch.randn((sum(lengths), heads, dim), device="cuda", dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, offsets, max(lengths), 1.0 / dim**0.5


def make_large():
    return make_inputs([(i * 613) % 2048 + 1 for i in range(64)], heads=4, dim=128)


if __name__ == "__main__":
    torch.manual_seed(1)
    args = make_inputs()
    torch.testing.assert_close(run(*args).float(), reference(*args), atol=2e-3, rtol=2e-2)
