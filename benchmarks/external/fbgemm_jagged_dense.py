"""Jagged + dense -> jagged, elementwise (FBGEMM)."""

import torch
from triton_jagged_tensor_ops import jagged_dense_elementwise_add_jagged_output


def run(values, offsets, dense):
    return jagged_dense_elementwise_add_jagged_output(values, [offsets], dense)[0]


def reference(values, offsets, dense):
    spans = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    return torch.cat([values[b:e] + dense[i, : e - b] for i, (b, e) in enumerate(spans)])


def make_inputs(lengths=(40, 17, 64), dim=80):
    offsets = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], device="cuda")
    values = torch.randn((sum(lengths), dim), device="cuda")
    return values, offsets, torch.randn((len(lengths), max(lengths), dim), device="cuda")


def make_large():
    return make_inputs([(i * 613) % 512 + 1 for i in range(256)], dim=256)


if __name__ == "__main__":
    torch.manual_seed(8)
    args = make_inputs()
    torch.testing.assert_close(run(*args), reference(*args))
