"""What a corpus kernel is: source, launch, inputs, and how its outputs are judged. Data are torch CPU tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

Value = torch.Tensor | int | float
Values = dict[str, Value]
Check = Callable[[Values, Values], None]  # (inputs as they were, the same values after the run); raises AssertionError
BOTH = ("gfx942", "gfx950")


@dataclass(frozen=True)
class TritonSource:
    """A Triton kernel with its compile-time constants and options."""

    function: Any  # triton.runtime.JITFunction
    constants: dict[str, Any] = field(default_factory=dict)
    num_warps: int = 4
    options: dict[str, Any] = field(default_factory=dict)
    small_pointers: bool = True  # mark tensors as below 2 GiB, which lets the compiler use buffer instructions


@dataclass(frozen=True)
class HipSource:
    """A kernel of a `.hip` file beside this module."""

    path: Path
    kernel: str
    block: tuple[int, int, int] = (64, 1, 1)
    dynamic_lds_bytes: int = 0
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """One kernel launch with a reference. `inputs(arch)` is deterministic and yields arguments in parameter order."""

    name: str
    source: TritonSource | HipSource
    grid: tuple[int, int, int]
    inputs: Callable[[str], Values]
    check: Check
    archs: tuple[str, ...] = BOTH
    slow: bool = False  # run under fewer schedules


def generator(seed: int = 0) -> torch.Generator:
    """A seeded generator, so that inputs are the same in every process."""
    return torch.Generator().manual_seed(seed)


def randn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=generator(seed), dtype=torch.float64).to(dtype)


def randint(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int32, seed: int = 0) -> torch.Tensor:
    return torch.randint(low, high, shape, generator=generator(seed), dtype=torch.int64).to(dtype)


def outputs_match(
    expected: Callable[[Any], Values], *, rtol: float = 0.0, atol: float = 0.0, equal_nan: bool = True
) -> Check:
    """A check against `expected(inputs)`; exact unless tolerances are given. Compared in float64."""

    def check(inputs: Values, outputs: Values) -> None:
        for name, want in expected(inputs).items():
            got = outputs[name]
            assert isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor)
            assert got.shape == want.shape, f"{name}: shape {tuple(got.shape)}, expected {tuple(want.shape)}"
            if rtol == 0.0 and atol == 0.0 and not got.is_floating_point():
                torch.testing.assert_close(got, want.to(got.dtype), rtol=0, atol=0, msg=lambda m, n=name: f"{n}: {m}")
                continue
            torch.testing.assert_close(
                got.to(torch.float64),
                want.to(torch.float64),
                rtol=rtol,
                atol=atol,
                equal_nan=equal_nan,
                msg=lambda m, n=name: f"{n}: {m}",
            )

    return check
