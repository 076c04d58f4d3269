"""Child side: values for widened workloads. One distribution per name; integers and indices are never redrawn."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

DISTRIBUTIONS = ("normal", "uniform", "zeros", "large", "denormal", "tails", "ones")

_LARGE = {torch.float16: 200.0, torch.float8_e4m3fn: 16.0, torch.float8_e5m2: 64.0}
_LARGE_DEFAULT = 1.0e3
_LOOKED_AT = 1 << 20
"""Of a recorded tensor's values, for their mean and spread."""


def draw(shape: tuple[int, ...], dtype: Any, distribution: str, generator: Any) -> Any:
    """A float32 tensor of `shape` for `dtype`, on the device of the generator.

    `normal`: N(0, 1). `uniform`: [-1, 1). `zeros`. `large`: N(0, 1) x 1000 (x 200 in fp16, x 16 in fp8 e4m3).
    `denormal`: N(0, 1) x the smallest normal number of the dtype, much of it below. `tails`: N(0, 1) where one element
    in a hundred is a hundred times larger. `ones`: all 1.
    """
    device = generator.device
    if distribution == "zeros":
        return torch.zeros(shape, device=device)
    if distribution == "ones":
        return torch.ones(shape, device=device)
    if distribution == "uniform":
        return torch.rand(shape, generator=generator, device=device) * 2 - 1
    values = torch.randn(shape, generator=generator, device=device)
    if distribution == "large":
        return values * _LARGE.get(dtype, _LARGE_DEFAULT)
    if distribution == "denormal":
        return values * max(float(torch.finfo(dtype).tiny), 2.0**-126)
    if distribution == "tails":
        return torch.where(torch.rand(shape, generator=generator, device=device) < 0.01, values * 100.0, values)
    return values


def redraw_(tensor: Any, distribution: str, generator: Any) -> None:
    """Overwrite a floating-point tensor's elements in place, in its own dtype."""
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return
    values = draw(tuple(tensor.shape), tensor.dtype, distribution, generator)
    with torch.no_grad():
        if tensor.element_size() == 1:
            limit = float(torch.finfo(tensor.dtype).max)
            values = values.clamp(-limit, limit)
        tensor.copy_(values.to(tensor.dtype))


@dataclasses.dataclass(frozen=True, slots=True)
class Spread:
    """What is kept of a recorded tensor's values when others are drawn. `scaled`: `std` and `mean` mean something."""

    scaled: bool = False
    std: float = 1.0
    mean: float = 0.0
    lowest: float = -1.0
    highest: float = 1.0

    @classmethod
    def of(cls, tensor: Any) -> Spread:
        flat = tensor.detach().reshape(-1)
        flat = flat[:: max(1, flat.numel() // _LOOKED_AT)]
        known = flat.cpu().to(torch.float32)  # the same numbers wherever the call is made
        known = known[torch.isfinite(known)]
        if known.numel() < 2 or not bool((known != 0).any()):
            return cls()
        return cls(True, float(known.std()) or 1.0, float(known.mean()), float(known.min()), float(known.max()))

    def values(self, shape: tuple[int, ...], dtype: Any, distribution: str, generator: Any) -> Any:
        """New ones of `dtype`; what was never negative there stays so, and never positive too.

        The plain distributions have the recorded values' own mean and spread: a scale of 0.01 keeps its meaning.
        """
        values = draw(shape, dtype, distribution, generator)
        if self.scaled and distribution in ("normal", "uniform", "tails"):
            values = values * self.std + self.mean
        if self.lowest >= 0:
            values = values.abs()
        elif self.highest <= 0:
            values = -values.abs()
        if dtype.itemsize == 1:
            limit = float(torch.finfo(dtype).max)
            values = values.clamp(-limit, limit)
        return values.to(dtype)
