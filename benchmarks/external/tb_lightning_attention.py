"""Lightning attention without decay (linear, causal), forward and backward (TritonBench-G)."""

import torch
from lightning_attention import lightning_attn2_no_decay


def run(q, k, v, grad):
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    o = lightning_attn2_no_decay(q, k, v)
    return o.detach(), *torch.autograd.grad(o, (q, k, v), grad)


def reference(q, k, v, grad):
    q, k, v = (x.float().requires_grad_() for x in (q, k, v))
    o = (q @ k.transpose(-1, -2)).tril() @ v
    return o.detach(), *torch.autograd.grad(o, (q, k, v), grad.float())


def make_inputs(batch=1, heads=2, seqlen=100, dim=64, dim_v=64):
    shapes = (dim, dim, dim_v, dim_v)
    made = [torch.randn((batch, heads, seqlen, d), device="cuda", dtype=torch.bfloat16) for d in shapes]
    return tuple(x / 4 for x in made)


def make_large():
    return make_inputs(batch=2, heads=32, seqlen=2048, dim=128, dim_v=128)


if __name__ == "__main__":
    torch.manual_seed(14)
    args = make_inputs()
    for got, expected in zip(run(*args), reference(*args), strict=True):
        torch.testing.assert_close(got.float(), expected, atol=5e-2, rtol=3e-2)
