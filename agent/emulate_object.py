"""A kernel of a compiled code object run in the emulator with arguments from words, without any host program."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from sandbox.emulator import CodeObject, EmulationResult, KernelInfo, Memory, emulate, load_code_object
from sandbox.emulator.run import Schedule
from sandbox.errors import InputError
from sandbox.target import Target

SUFFIXES = frozenset({".hsaco", ".co", ".o", ".elf", ".so", ".out"})
_MAGIC = (b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")
_TYPES: dict[str, np.dtype[Any]] = {
    "f16": np.dtype("f2"), "f32": np.dtype("f4"), "f64": np.dtype("f8"), "bf16": np.dtype("u2"), "fp8": np.dtype("u1"),
    **{f"{kind}{8 * size}": np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)},
}  # fmt: skip
_BUFFER = re.compile(r"(\w+):(\d+)(?::(.+))?$")
_MAX_BUFFER_BYTES = 1 << 32
_FILLS = ("random", "zeros", "ones", "arange")


@dataclass(frozen=True, slots=True)
class ObjectLaunch:
    """What to run: names and sizes as given; `kernel` and `block` may be left to the code object."""

    kernel: str | None = None
    grid: tuple[int, ...] = (1,)
    block: tuple[int, ...] | None = None
    arguments: tuple[str, ...] = ()
    dynamic_lds_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ObjectRun:
    """One run under one schedule. `buffers` are the pointer arguments' contents afterwards, by argument name."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    result: EmulationResult
    buffers: dict[str, npt.NDArray[np.generic]]
    changed: dict[str, int]
    """Elements of each buffer that the run changed."""


def is_code_object(path: Path) -> bool:
    """Whether a file is meant as compiled code: by its first bytes, or by its name."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return path.suffix.lower() in SUFFIXES or file.read(24).startswith(_MAGIC)


def run_object(path: Path, target: Target, launch: ObjectLaunch, schedules: Sequence[str]) -> dict[str, ObjectRun]:
    """Run a kernel once for each schedule on the same inputs, by schedule.

    Raises `InputError` for a file that is no code object of `target`, a kernel it does not hold, arguments that do not
    fit, and launches that hardware would refuse. Schedules are as `agent.emulate.parse_schedules` gives them.
    """
    code = load_code_object(path.read_bytes())
    if code.arch != target.arch:
        raise InputError(
            f"the code object is for {code.arch}, not {target.arch}.", file=path, remedy=f"Use --target {code.arch}."
        )
    kernel = _kernel(code, launch.kernel, path)
    block = launch.block or _block(kernel)
    return {schedule: _run(code, kernel, block, launch, schedule) for schedule in schedules}


def differing(runs: Mapping[str, ObjectRun]) -> list[str]:
    """One sentence for each buffer that does not hold the same bytes as under the first schedule."""
    first, *others = runs
    found = []
    for schedule in others:
        if not (runs[first].result.completed and runs[schedule].result.completed):
            continue
        for name, data in runs[schedule].buffers.items():
            count = int(np.count_nonzero(_bits(data) != _bits(runs[first].buffers[name])))
            if count:
                found.append(f"{name} differs between {first} and {schedule}: {count} of {data.size} elements")
    return found


def _kernel(code: CodeObject, name: str | None, path: Path) -> KernelInfo:
    if name is not None:
        return code.kernel(name)
    if len(code.kernels) == 1:
        return next(iter(code.kernels.values()))
    names = ", ".join(sorted(code.kernels))
    raise InputError(
        f"the code object has {len(code.kernels)} kernels.", file=path,
        remedy=f"Name one with --kernel: {names}." if names else "Give one with a kernel.",
    )  # fmt: skip


def _block(kernel: KernelInfo) -> tuple[int, ...]:
    """The workgroup size a kernel requires, else the largest it was compiled for, else (HIP's default) 256."""
    required = kernel.metadata.get(".reqd_workgroup_size")
    if isinstance(required, list) and all(isinstance(n, int) for n in required):
        return tuple(required)
    return (kernel.max_workgroup_size if kernel.max_workgroup_size < 1024 else 256,)


def _run(
    code: CodeObject, kernel: KernelInfo, block: tuple[int, ...], launch: ObjectLaunch, schedule: str
) -> ObjectRun:
    order, _, seed = schedule.partition(":")
    memory, buffers = Memory(), dict[str, npt.NDArray[np.generic]]()
    values = [_argument(kernel, n, word, buffers) for n, word in enumerate(launch.arguments)]
    _check_count(kernel, len(values))
    before = {name: data.copy() for name, data in buffers.items()}
    given = [memory.allocate(x, buffers[x]) if isinstance(x, str) else x for x in values]
    result = emulate(
        code, kernel.name, launch.grid, block, given, memory, dynamic_lds_bytes=launch.dynamic_lds_bytes,
        schedule=cast("Schedule", order), seed=int(seed or 0),
    )  # fmt: skip
    changed = {n: int(np.count_nonzero(_bits(data) != _bits(before[n]))) for n, data in buffers.items()}
    return ObjectRun(kernel.name, launch.grid, block, result, buffers, changed)


def _bits(data: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    return data.view(f"u{data.dtype.itemsize}")


def _check_count(kernel: KernelInfo, count: int) -> None:
    """The emulator's own rule lets pointers at the end be left out, as Triton's hidden ones are."""
    expected = kernel.explicit_arguments
    missing = expected[count:]
    named = [a for a in expected if not re.fullmatch(r"arg\d+", a.name)]
    hidden = len(missing) <= 2 and all(a.kind == "global_buffer" for a in missing) and not named
    if count > len(expected) or (missing and not hidden):
        listed = ", ".join(
            f"{a.name} ({'pointer' if a.kind == 'global_buffer' else f'{a.size} bytes'})" for a in expected
        )
        raise InputError(
            f"{kernel.name} takes {len(expected)} arguments, {count} were given.",
            remedy=f"Give each with --arg, in order: {listed or 'none'}.",
        )


def _argument(
    kernel: KernelInfo, number: int, word: str, buffers: dict[str, npt.NDArray[np.generic]]
) -> int | float | str:
    """A number, or the name of a buffer added to `buffers`."""
    expected = kernel.explicit_arguments
    name = expected[number].name if number < len(expected) else f"arg{number}"
    if match := _BUFFER.match(word):
        name = name if name not in buffers else f"{name}.{number}"
        buffers[name] = _filled(match[1], int(match[2]), match[3] or "random", number, word)
        return name
    try:
        return int(word, 0)
    except ValueError:
        pass
    try:
        return float(word)
    except ValueError:
        raise InputError(
            f"{word!r} is no argument.",
            remedy=f"Give a number, or TYPE:COUNT[:FILL] for a buffer ({', '.join(_TYPES)}; {', '.join(_FILLS)}).",
        ) from None


def _filled(kind: str, count: int, fill: str, number: int, word: str) -> npt.NDArray[np.generic]:
    dtype = _TYPES.get(kind)
    if dtype is None:
        raise InputError(f"{word!r}: there is no element type {kind!r}.", remedy=f"Use one of {', '.join(_TYPES)}.")
    if count * dtype.itemsize > _MAX_BUFFER_BYTES:
        raise InputError(f"{word!r}: the buffer is larger than 4 GiB.")
    generator = np.random.default_rng(number)
    if fill == "random":
        data: npt.NDArray[Any] = generator.standard_normal(count)
        if dtype.kind != "f":
            data = generator.integers(0, 100, count)
    elif fill == "arange":
        data = np.arange(count)
    elif fill in ("zeros", "ones"):
        data = np.full(count, fill == "ones")
    else:
        try:
            data = np.full(count, float(fill))
        except ValueError:
            raise InputError(
                f"{word!r}: {fill!r} fills no buffer.", remedy=f"Use {', '.join(_FILLS)} or a number."
            ) from None
    with np.errstate(all="ignore"):
        filled: npt.NDArray[np.generic] = data.astype(dtype)
    return filled
