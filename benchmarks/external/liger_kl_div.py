"""Kullback-Leibler divergence over a vocabulary, forward and backward (Liger-Kernel)."""

import torch
from kl_div import LigerKLDivLossFunction


def run(log_probs, target):
    log_probs = log_probs.detach().requires_grad_()
    loss = LigerKLDivLossFunction.apply(log_probs, target, "batchmean", False, 1e-10)
    return loss.detach(), *torch.autograd.grad(loss, (log_probs,))


def reference(log_probs, target):
    log_probs = log_probs.detach().requires_grad_()
    loss = torch.nn.functional.kl_div(log_probs, target, reduction="batchmean")
    return loss.detach(), *torch.autograd.grad(loss, (log_probs,))


def make_inputs(rows=8, cols=5000):
    first, second = (torch.randn((rows, cols), device="cuda") for _ in range(2))
    return first.log_softmax(-1), second.softmax(-1)


def make_large():
    return make_inputs(1024, 32768)


if __name__ == "__main__":
    torch.manual_seed(13)
    args = make_inputs()
    for got, expected in zip(run(*args), reference(*args), strict=True):
        torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-3)
