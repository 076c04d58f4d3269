"""Diagonal state space model, a scan over time, forward and backward (TritonBench-G)."""

import torch
from diag_ssm_triton import diag_ssm_forward_triton


def run(s, x, decay, grad):
    s, x, decay = (t.detach().requires_grad_() for t in (s, x, decay))
    y = diag_ssm_forward_triton(s, x, decay)
    return y.detach(), *torch.autograd.grad(y, (s, x, decay), grad)


def reference(s, x, decay, grad):
    s, x, decay = (t.detach().requires_grad_() for t in (s, x, decay))
    state, states = s, []
    for step in x:
        state = state * decay + step
        states.append(state)
    y = torch.stack(states)
    return y.detach(), *torch.autograd.grad(y, (s, x, decay), grad)


def make_inputs(batch=3, dim=100, length=20):
    x, grad = (torch.randn((length, batch, dim), device="cuda") for _ in range(2))
    return torch.randn((batch, dim), device="cuda"), x, torch.rand(dim, device="cuda"), grad


def make_large():
    return make_inputs(batch=16, dim=2048, length=512)


if __name__ == "__main__":
    torch.manual_seed(15)
    args = make_inputs()
    for got, expected in zip(run(*args), reference(*args), strict=True):
        torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-3)
