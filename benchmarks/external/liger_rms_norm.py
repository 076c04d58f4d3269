"""RMS norm, forward and backward (Liger-Kernel)."""

import torch
from rms_norm import LigerRMSNormFunction


def run(x, weight, grad):
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    y = LigerRMSNormFunction.apply(x, weight, 1e-6, 0.0, "llama", False, None)
    return y.detach(), *torch.autograd.grad(y, (x, weight), grad)


def reference(x, weight, grad):
    x, weight = x.float().requires_grad_(), weight.float().requires_grad_()
    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight
    return y.detach(), *torch.autograd.grad(y, (x, weight), grad.float())


def make_inputs(rows=40, cols=600):
    x, grad = (torch.randn((rows, cols), device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return x, torch.randn(cols, device="cuda", dtype=torch.bfloat16), grad


def make_large():
    return make_inputs(8192, 4096)


if __name__ == "__main__":
    torch.manual_seed(11)
    args = make_inputs()
    for got, expected in zip(run(*args), reference(*args), strict=True):
        torch.testing.assert_close(got.float(), expected, atol=0.2, rtol=3e-2)
