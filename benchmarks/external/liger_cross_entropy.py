"""Cross-entropy over a vocabulary: loss and, in place, the gradient of the logits (Liger-Kernel)."""

import torch
from cross_entropy import cross_entropy_forward


def run(logits, target):
    logits = logits.detach().requires_grad_()
    loss, *_, grad = cross_entropy_forward(logits, target, None, -100, 0.0, 0.0, "mean", None, False)
    return loss, grad.detach()


def reference(logits, target):
    logits = logits.detach().float().requires_grad_()
    loss = torch.nn.functional.cross_entropy(logits, target)
    return loss.detach(), *torch.autograd.grad(loss, (logits,))


def make_inputs(rows=8, cols=5000):
    return torch.randn((rows, cols), device="cuda", dtype=torch.bfloat16), torch.randint(
        0, cols, (rows,), device="cuda"
    )


def make_large():
    return make_inputs(1024, 128256)


if __name__ == "__main__":
    torch.manual_seed(10)
    logits, target = make_inputs()
    expected = reference(logits, target)
    for got, right in zip(run(logits, target), expected, strict=True):
        torch.testing.assert_close(got.detach().float(), right, atol=5e-2, rtol=2e-2)
