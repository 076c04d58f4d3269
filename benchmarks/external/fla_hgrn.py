"""Gated linear recurrence of HGRN, forward and backward (flash-linear-attention)."""

import torch
from fused_recurrent import fused_recurrent_hgrn


def run(x, gates, grad):
    x, gates = x.detach().requires_grad_(), gates.detach().requires_grad_()
    o, _ = fused_recurrent_hgrn(x, gates)
    return o.detach(), *torch.autograd.grad(o, (x, gates), grad)


def reference(x, gates, grad):
    x, gates = x.detach().requires_grad_(), gates.detach().requires_grad_()
    state, states = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        state = gates[:, t].exp() * state + x[:, t]
        states.append(state)
    o = torch.stack(states, 1)
    return o.detach(), *torch.autograd.grad(o, (x, gates), grad)


def make_inputs(batch=2, length=20, dim=100):
    x, gates, grad = (torch.randn((batch, length, dim), device="cuda") for _ in range(3))
    return x, torch.nn.functional.logsigmoid(gates), grad


def make_large():
    return make_inputs(batch=4, length=1024, dim=2048)


if __name__ == "__main__":
    torch.manual_seed(16)
    args = make_inputs()
    for got, expected in zip(run(*args), reference(*args), strict=True):
        torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-3)
