"""Jagged x dense batched matrix product and its gradients (FBGEMM)."""

import torch
from triton_jagged_bmm import jagged_dense_bmm


def run(x, y, offsets, max_len, grad):
    x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
    z = jagged_dense_bmm(x, y, offsets, max_len, allow_tf32=True, use_fbgemm_kernel=False)
    return z.detach(), *torch.autograd.grad(z, (x, y), grad)


def reference(x, y, offsets, max_len, grad):
    spans = list(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
    z = torch.cat([x[b:e] @ y[i] for i, (b, e) in enumerate(spans)])
    dx = torch.cat([grad[b:e] @ y[i].T for i, (b, e) in enumerate(spans)])
    return z, dx, torch.stack([x[b:e].T @ grad[b:e] for b, e in spans])


def make_inputs(lengths=(40, 17, 64), k=48, n=80):
    offsets = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], device="cuda")
    x, grad = torch.randn((sum(lengths), k), device="cuda"), torch.randn((sum(lengths), n), device="cuda")
    return x, torch.randn((len(lengths), k, n), device="cuda"), offsets, max(lengths), grad


def make_large():
    return make_inputs([(i * 613) % 512 + 1 for i in range(256)], k=256, n=256)


if __name__ == "__main__":
    torch.manual_seed(6)
    args = make_inputs()
    for got, expected in zip(run(*args), reference(*args), strict=True):
        torch.testing.assert_close(got, expected, atol=5e-2, rtol=2e-2)
