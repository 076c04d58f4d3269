"""`workload.yaml`: inputs for a file that has no harness, described instead of programmed.

```yaml
calls:
  - entry: run                     # a function of the file, or Class.method with `init` for the constructor
    seed: 0
    arguments:
      x: {shape: [512, 4096], dtype: float16}                      # N(0, 1) unless said otherwise
      w: {shape: [4096], dtype: float16, distribution: ones}
      rows: {shape: [512], dtype: int32, low: 0, high: 100}        # integers: low <= value < high
      eps: 1.0e-6
    backward: false                # true: also run backward of the sum of the outputs
  - kernel: rms_fwd                # or a kernel itself, with its grid, constants and options
    grid: [512]
    arguments: {x_ptr: {shape: [512, 4096], dtype: float16}, BLOCK: 4096}
    options: {num_warps: 4}
```
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError, model_validator

from sandbox.errors import InputError
from sandbox.yaml_text import line_of

MAX_BYTES = 1024 * 1024
TensorDtype = Literal[
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
    "int64", "int32", "int16", "int8", "uint8", "bool",
]  # fmt: skip
Distribution = Literal[
    "normal", "uniform", "zeros", "ones", "large", "denormal", "tails", "arange", "integers", "empty"
]


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TensorSpec(_Data):
    """A tensor on the device. Floating types are drawn from `distribution`; integers uniformly from [`low`, `high`)."""

    shape: list[Annotated[int, Field(ge=0)]]
    dtype: TensorDtype = "float32"
    distribution: Distribution | None = None
    low: int = 0
    high: int | None = None
    scale: float = 1.0
    """Factor on floating values."""
    stride: list[int] | None = None
    """In elements; contiguous unless given."""
    requires_grad: bool = False
    values: list[Any] | None = None
    """Explicit values, flat or nested, instead of a distribution."""

    @model_validator(mode="after")
    def _fits(self) -> TensorSpec:
        if self.stride is not None and len(self.stride) != len(self.shape):
            raise ValueError("stride needs one number per dimension of shape")
        if self.high is not None and self.high <= self.low:
            raise ValueError("high must be more than low")
        return self


Scalar = bool | int | float | str | None
ArgumentSpec = TensorSpec | Scalar | list[Scalar]


class CallSpec(_Data):
    """One call of a host function (`entry`) or one launch of a kernel (`kernel` and `grid`)."""

    entry: str | None = None
    kernel: str | None = None
    arguments: dict[str, ArgumentSpec] = {}
    init: dict[str, ArgumentSpec] = {}
    grid: Annotated[list[PositiveInt], Field(min_length=1, max_length=3)] | None = None
    options: dict[str, Scalar] = {}
    seed: int = 0
    backward: bool = False

    @model_validator(mode="after")
    def _one_form(self) -> CallSpec:
        if (self.entry is None) == (self.kernel is None):
            raise ValueError("give either entry or kernel")
        if self.kernel is not None and self.grid is None:
            raise ValueError("a kernel needs a grid")
        if self.entry is not None and (self.grid is not None or self.options):
            raise ValueError("grid and options belong to a kernel")
        return self


class WorkloadFile(_Data):
    """The whole file."""

    calls: Annotated[list[CallSpec], Field(min_length=1)]


def load_workload_file(path: Path) -> WorkloadFile:
    """Read and check the file; raises `InputError` with the line."""
    if not path.is_file():
        raise InputError("there is no such file.", file=path, remedy="Check the path.")
    if path.stat().st_size > MAX_BYTES:
        raise InputError("the file is larger than 1 MiB.", file=path, remedy="Describe tensors by shape, not by value.")
    try:
        text = path.read_text(encoding="utf-8")
        data = yaml.safe_load(text)
    except UnicodeDecodeError:
        raise InputError("the file is not UTF-8 text.", file=path, remedy="Save it as UTF-8.") from None
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        problem = getattr(e, "problem", None) or "it cannot be read"
        raise InputError(f"not valid YAML: {problem}.", file=path, line=line, remedy="Correct the syntax.") from None
    try:
        return WorkloadFile.model_validate(data)
    except ValidationError as e:
        first = e.errors(include_url=False)[0]
        keys = [k for k in first["loc"] if not _is_union_member(k)]
        place = ".".join(map(str, keys)) or "the file"
        remedy = "See the format in sandbox/workload_file.py."
        raise InputError(f"{place}: {first['msg']}.", file=path, line=_line(text, keys), remedy=remedy) from None


def _is_union_member(key: int | str) -> bool:
    """Pydantic names the member of a union it tried; that is no place in the file."""
    return isinstance(key, str) and (key in ("TensorSpec", "bool", "int", "float", "str", "none") or "[" in key)


def _line(text: str, keys: Sequence[int | str]) -> int | None:
    """The line of the innermost key that exists."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    return line_of(node, keys) if node is not None else None
