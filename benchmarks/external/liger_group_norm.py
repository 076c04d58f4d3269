"""Group norm, forward and backward (Liger-Kernel)."""

import torch
from group_norm import LigerGroupNormFunction


def run(x, weight, bias, groups, grad):
    x, weight, bias = (t.detach().requires_grad_() for t in (x, weight, bias))
    y = LigerGroupNormFunction.apply(x, weight, bias, x.shape[1], groups, 1e-6)
    return y.detach(), *torch.autograd.grad(y, (x, weight, bias), grad)


def reference(x, weight, bias, groups, grad):
    x, weight, bias = (t.detach().requires_grad_() for t in (x, weight, bias))
    y = torch.nn.functional.group_norm(x, groups, weight, bias, 1e-6)
    return y.detach(), *torch.autograd.grad(y, (x, weight, bias), grad)


def make_inputs(batch=6, channels=16, hidden=96, groups=4):
    x, grad = (torch.randn((batch, channels, hidden), device="cuda") for _ in range(2))
    weight, bias = torch.randn(channels, device="cuda"), torch.randn(channels, device="cuda")
    return x, weight, bias, groups, grad


def make_large():
    return make_inputs(64, 512, 1024, 32)


if __name__ == "__main__":
    torch.manual_seed(12)
    args = make_inputs()
    for got, expected in zip(run(*args), reference(*args), strict=True):
        torch.testing.assert_close(got, expected, atol=1e-3, rtol=1e-3)
