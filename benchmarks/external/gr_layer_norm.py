"""Layer norm with weights, forward and backward (generative-recommenders)."""

import torch
from triton_layer_norm import triton_layer_norm


def run(x, weight, bias, grad):
    x, weight, bias = (t.detach().requires_grad_() for t in (x, weight, bias))
    y = triton_layer_norm(x, weight, bias, 1e-5)
    return y.detach(), *torch.autograd.grad(y, (x, weight, bias), grad)


def reference(x, weight, bias, grad):
    x, weight, bias = (t.float().requires_grad_() for t in (x, weight, bias))
    y = torch.nn.functional.layer_norm(x, x.shape[1:], weight, bias, 1e-5)
    return y.detach(), *torch.autograd.grad(y, (x, weight, bias), grad.float())


def make_inputs(rows=60, cols=200):
    x, grad = (torch.randn((rows, cols), device="cuda", dtype=torch.bfloat16) for _ in range(2))
    weight, bias = (torch.randn(cols, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return x, weight, bias, grad


def make_large():
    return make_inputs(65536, 512)


if __name__ == "__main__":
    torch.manual_seed(5)
    args = make_inputs()
    for got, expected in zip(run(*args), reference(*args), strict=True):
        torch.testing.assert_close(got.float(), expected, atol=0.15, rtol=3e-2)
