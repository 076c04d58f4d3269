"""Two-simplicial attention, forward: every query looks at pairs of keys in two windows (FBGEMM, experimental)."""

import torch
from fwd import triton_fwd


def run(q, k1, k2, v1, v2, w1, w2):
    return triton_fwd(q, k1, k2, v1, v2, w1, w2)


def make_inputs(batch=1, seqlen=48, heads=16, head_dim=64, w1=8, w2=32):
    q = torch.randn((batch, seqlen, heads, head_dim), device="cuda", dtype=torch.bfloat16)
    kv = (torch.randn((batch, seqlen, 1, head_dim), device="cuda", dtype=torch.bfloat16) for _ in range(4))
    return q, *kv, w1, w2


def make_large():
    return make_inputs(batch=4, seqlen=4096, heads=64, head_dim=128, w1=32, w2=256)


def reference(q, k1, k2, v1, v2, w1, w2):
    n, dim = q.shape[1], q.shape[3]
    k2, v2 = k2.float() + 1.0 / dim, v2.float() + 1.0
    logits = torch.einsum("bihd,bjd,bkd->bhijk", q.float(), k1.float()[:, :, 0], k2[:, :, 0]) * dim**-0.5
    i, j = torch.arange(n, device=q.device)[:, None], torch.arange(n, device=q.device)[None]
    near1, near2 = (i >= j) & (i - j < w1), (i >= j) & (i - j < w2)
    logits = logits.masked_fill(~(near1[:, :, None] & near2[:, None, :]), -torch.inf)
    p = logits.flatten(3).softmax(-1).view_as(logits)
    return torch.einsum("bhijk,bjd,bkd->bihd", p, v1.float()[:, :, 0], v2[:, :, 0])


if __name__ == "__main__":
    torch.manual_seed(9)
    args = make_inputs()
    torch.testing.assert_close(run(*args)[0].float(), reference(*args), atol=5e-2, rtol=5e-2)
