"""Softmax over jagged sequences, one per head, and its gradient (FBGEMM)."""

import torch
from triton_jagged_softmax import jagged_softmax


def run(x, offsets, max_len, grad):
    x = x.detach().requires_grad_()
    y = jagged_softmax(x, offsets, max_len, use_fbgemm_kernel=False)
    return y.detach(), *torch.autograd.grad(y, (x,), grad)


def reference(x, offsets, max_len, grad):
    x = x.detach().requires_grad_()
    spans = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    y = torch.cat([x[b:e].softmax(0) for b, e in spans])
    return y.detach(), *torch.autograd.grad(y, (x,), grad)


def make_inputs(lengths=(40, 17, 64), heads=4):
    offsets = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], device="cuda")
    x, grad = (torch.randn((sum(lengths), heads), device="cuda") for _ in range(2))
    return x, offsets, max(lengths), grad


def make_large():
    return make_inputs([(i * 613) % 2048 + 1 for i in range(2048)], heads=16)


if __name__ == "__main__":
    torch.manual_seed(7)
    args = make_inputs()
    for got, expected in zip(run(*args), reference(*args), strict=True):
        torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-4)
