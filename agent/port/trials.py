"""Launches and inputs to try a kernel with, taken from its launch sites, its arrays and its parameter names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from agent.port.reference_run import Argument, Packed, ParameterInfo
from sandbox.hip_source import HipSource, KernelFunction
from skills.cuda_edit import constant_value, constants
from skills.cuda_launches import Dim, launch_sites

CAPACITY_ELEMENTS = 1 << 14
"""Scalars a generated buffer holds; a launch that needs more faults in the reference and is not used."""
DYNAMIC_BYTES = 48 * 1024
"""Shared memory of a launch whose size is not known: what CUDA grants without an opt-in."""
Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Values = npt.NDArray[Any]
FLOATS = ("float", "half", "bfloat16")


@dataclass(frozen=True, slots=True)
class Shape:
    """One launch: `size` is what integer parameters get."""

    grid: Dim
    block: Dim
    shared_bytes: int
    size: int
    inner: int = 0
    """What integer parameters get that are named like a row's length; 0 gives them `size` too."""

    def __str__(self) -> str:
        grid, block = ("x".join(map(str, d)) for d in (self.grid, self.block))
        return f"grid {grid}, block {block}, size {self.size}" + (f", rows of {self.inner}" if self.inner else "")


_INNER = re.compile(r"dim|width|cols?\b|columns|channels|hidden|embed|stride|^[DK]$")
INNER_LENGTHS = (128, 32)


MOST_ITEMS = 16
"""Items of a thread that a template argument may stand for."""


def shapes(
    around: Sequence[HipSource], function: KernelFunction, template_values: Sequence[int], max_threads: int,
    static_bytes: int = 0, only: Dim | None = None,
) -> Iterator[Shape]:  # fmt: skip
    """Candidate launches, the sources' own first. `around`: the kernel's source and others of its unit,
    `template_values`: integer template arguments, `static_bytes`: the shared memory that the kernel has without a
    launch's, `only`: the block that it takes where that is known."""
    source = around[0]
    body = source.text[function.start : function.body.end]
    dynamic = re.search(r"extern\s+__shared__", source.masked[function.body.start : function.body.end]) is not None
    outer = re.search(r"extern\s+__shared__", source.masked) is not None
    seen: set[Shape] = set()
    inner = (
        [*INNER_LENGTHS, 0] if any(_INNER.search(p.name) and "*" not in p.type for p in function.parameters) else [0]
    )
    own = list(small_launches(around, function))
    for grid, block, shared in [*own, *_derived(source, body, function, template_values, only)]:
        if only is not None and block != only:
            continue
        threads = block[0] * block[1] * block[2]
        if not 1 <= threads <= max_threads:
            continue
        total = threads * grid[0] * grid[1] * grid[2]
        bytes_ = shared if shared is not None else max(DYNAMIC_BYTES - static_bytes, 0) if dynamic or outer else 0
        most = [total - 5 if total > 8 else total, total, max(block[0], 32), *([200] if total > 1024 else [])]
        if only is not None:
            tiled = (total * v for v in template_values if 1 < v <= MOST_ITEMS)
            most = [*(v - 5 for v in tiled if v <= CAPACITY_ELEMENTS), *most]
        for size in dict.fromkeys((*most, 24, 8, 4, 1)):
            for length in inner:
                shape = Shape(grid, block, bytes_, size, length if length < size else 0)
                if shape not in seen:
                    seen.add(shape)
                    yield shape


def lds_is_unknown(source: HipSource, function: KernelFunction) -> bool:
    """Whether the kernel may ask for more LDS than a target has, by a size that only a run would tell.

    Without an opt-in CUDA grants 48 KB of dynamic shared memory, which every target has.
    """
    asking = re.findall(r"cuda(?:Func|KernelSet)\w*\s*\(([^;]*?)MaxDynamicSharedMemorySize", source.masked)
    kernels = [k.name for k in source.kernels]
    if not any(
        re.search(rf"\b{function.name}\b", a) or not any(re.search(rf"\b{k}\b", a) for k in kernels) for a in asking
    ):
        return False
    sizes = [shared for _, _, shared in small_launches([source], function)]
    return not sizes or any(size is None for size in sizes)


def small_launches(around: Sequence[HipSource], function: KernelFunction) -> Iterator[tuple[Dim, Dim, int | None]]:
    """Grid, block and shared memory of the sources' own launches of known blocks, with few blocks of each. The first
    source defines the kernel."""
    known = {name: value for source in reversed(around) for name, value in constants(source).items()}
    for site in (s for source in around for s in launch_sites(source, function.name, known)):
        if site.block is None:
            continue
        grid = site.grid
        small = (min(grid[0], 4), min(grid[1], 3), min(grid[2], 2)) if grid else _grid(around[0].slice(function.body))
        yield small, site.block, site.shared_bytes


def _derived(
    source: HipSource, body: str, function: KernelFunction, template_values: Sequence[int], only: Dim | None
) -> Iterator[tuple[Dim, Dim, int | None]]:
    known = constants(source)
    grid = _grid(body)
    if only is not None:
        yield from ((grid, only, None), ((1, 1, 1), only, None))
        return
    two = "threadIdx.y" in body
    widths: list[int] = [v for v in template_values if v % 32 == 0 and 32 <= v <= 1024]
    if function.launch_bounds:
        bound = constant_value(function.launch_bounds[0], known)
        widths += [bound] if bound else []
    for array in re.findall(r"__shared__[^;\[]*\[([^\]]+)\]", body):
        value = constant_value(array, known)
        widths += [value] if value and 32 <= value <= 1024 and value % 32 == 0 else []
    for value in known.values():
        widths += [value] if value in (32, 64, 128, 256, 512, 1024) else []
    if two:
        for block in ((16, 16, 1), (32, 8, 1), (32, 32, 1), (8, 8, 1), (32, 4, 1)):
            yield grid, block, None
    for width in dict.fromkeys([*widths, 256, 128, 64, 32, 96]):
        yield grid, (width, 1, 1), None
    if grid[0] != 1:
        for width in dict.fromkeys([*widths, 256, 64, 32]):
            yield (1, 1, 1), (width, 1, 1), None


def _grid(body: str) -> Dim:
    if "blockIdx.z" in body:
        return (2, 2, 2)
    if "blockIdx.y" in body:
        return (2, 3, 1)
    return (3, 1, 1) if "blockIdx" in body else (1, 1, 1)


def make_arguments(
    parameters: Sequence[ParameterInfo], names: Sequence[str], shape: Shape, rng: np.random.Generator, *, wide: bool
) -> list[Argument] | None:
    """Values and buffers for one launch; None when a parameter cannot be made up. `wide` draws from whole ranges."""
    made: list[Argument] = []
    for parameter, name in zip(parameters, names, strict=True):
        if parameter.kind == "pointer":
            made.append((_buffer(parameter, name, shape, rng, wide=wide),))
        elif parameter.kind == "structure":
            made.append(_structure(parameter, shape, rng, wide=wide))
        elif parameter.kind == "value":
            made.append(_scalar(parameter, name, shape, rng))
        else:
            return None
    return made


def _buffer(p: ParameterInfo, name: str, shape: Shape, rng: np.random.Generator, *, wide: bool) -> bytes:
    lanes = max(1, p.whole_bytes // max(1, p.element_bytes))
    return _elements(p, name, CAPACITY_ELEMENTS * lanes, shape, rng, wide=wide).tobytes()


def _structure(p: ParameterInfo, shape: Shape, rng: np.random.Generator, *, wide: bool) -> Packed:
    """Each scalar as a parameter of its name would be, each pointer with a buffer of its own."""
    data = bytearray(p.size_bytes)
    scalars = [leaf for leaf in p.leaves if leaf.pointee_bytes is None]
    for number, leaf in enumerate(scalars):
        as_value = ParameterInfo("value", leaf.size_bytes, leaf.element, leaf.element_bytes)
        value = _scalar(as_value, leaf.name, shape, rng)
        if re.search(r"stride", leaf.name, re.I) and leaf.element in ("int", "uint"):
            inner = sum(other.name == leaf.name for other in scalars[number + 1 :])
            value = (shape.size**inner & 0x7FFFFFFF).to_bytes(8, "little")[: leaf.size_bytes]
        data[leaf.offset : leaf.offset + leaf.size_bytes] = value
    held = [leaf for leaf in p.leaves if leaf.pointee_bytes is not None]
    contents = [_buffer(q, leaf.name, shape, rng, wide=wide) for leaf, q in zip(held, p.pointers, strict=True)]
    return Packed(bytes(data), tuple(zip([leaf.offset for leaf in held], contents, strict=True)))


_ASCENDING = re.compile(r"sorted|segment_?ids|seg_?ids", re.I)
_BOUNDS = re.compile(r"offsets|indptr|row_?ptr|row_?starts|cu_?seq_?lens", re.I)
MEAN_SEGMENT = 4


def _elements(
    p: ParameterInfo, name: str, count: int, shape: Shape, rng: np.random.Generator, *, wide: bool
) -> Bytes:  # fmt: skip
    if (
        p.element in ("int", "uint")
        and p.element_bytes >= 4
        and (ordered := _ordered(name, count, shape, rng)) is not None
    ):
        return ordered.astype(np.dtype(f"{'i' if p.element == 'int' else 'u'}{p.element_bytes}")).view(np.uint8)
    if p.element in ("float", "half", "bfloat16"):
        values = rng.standard_normal(count) * (np.exp2(rng.integers(-6, 7, count)) if wide else 1.0)
        values[rng.random(count) < 0.02] = 0.0
        return _encode_floats(values, p)
    if p.element == "bool":
        return rng.integers(0, 2, count, dtype=np.uint8)
    if p.element == "raw":
        words = (
            rng.standard_normal(count).astype(np.float32) if p.element_bytes % 4 == 0 else rng.integers(0, 100, count)
        )
        raw = words.astype(np.float32).view(np.uint8) if p.element_bytes % 4 == 0 else words.astype(np.uint8)
        return raw[: count * p.element_bytes]
    dtype = np.dtype(f"{'i' if p.element == 'int' else 'u'}{p.element_bytes}")
    if wide or p.element_bytes == 1:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True).view(np.uint8)
    return rng.integers(0, max(2, min(shape.size, 64)), count, dtype=dtype).view(np.uint8)


def _ordered(name: str, count: int, shape: Shape, rng: np.random.Generator) -> npt.NDArray[np.int64] | None:
    """Integers that never fall, where the name promises that: sorted rows, some of them met often as in a Zipf
    distribution, or where segments begin; None for any other name."""
    if _ASCENDING.search(name):
        lengths = np.minimum(rng.zipf(1.7, count), 64)
        rows = np.repeat(np.arange(count), lengths)[:count]
        return np.asarray(np.minimum(rows, max(1, min(shape.size, 64) - 1)), np.int64)
    if _BOUNDS.search(name):
        starts = np.concatenate([[0], np.cumsum(rng.integers(0, 2 * MEAN_SEGMENT + 1, count - 1))])
        return np.asarray(np.minimum(starts, CAPACITY_ELEMENTS // 4), np.int64)
    return None


def _encode_floats(values: Floats, p: ParameterInfo) -> Bytes:
    if p.element == "half":
        return values.astype(np.float16).view(np.uint8)
    if p.element == "bfloat16":
        bits = values.astype(np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16).view(np.uint8)
    scalar = min(p.element_bytes, 8)
    return values.astype(np.float64 if scalar == 8 else np.float32).view(np.uint8)


def _scalar(p: ParameterInfo, name: str, shape: Shape, rng: np.random.Generator) -> bytes:
    if p.element in ("float", "half", "bfloat16"):
        lanes = max(1, p.size_bytes // max(1, p.element_bytes))
        return _encode_floats(rng.uniform(0.5, 2.0, lanes), p).tobytes()[: p.size_bytes]
    if p.element == "bool":
        return bytes([int(rng.integers(0, 2))])
    value = shape.inner if shape.inner and _INNER.search(name) else shape.size
    if re.search(r"seed|offset|start|begin|shift|base", name, re.I):
        value = int(rng.integers(0, 4))
    data = value.to_bytes(8, "little")[: min(p.element_bytes, 8)]
    return (data * max(1, p.size_bytes // len(data)))[: p.size_bytes]


TOLERANCES = {("float", 4): 2e-5, ("float", 8): 1e-11, ("half", 2): 4e-3, ("bfloat16", 2): 2e-2}
"""Relative; functions and fused operations round differently on every machine."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """`difference` is None when all that can be compared agrees; `unordered` counts elements that depend on the order
    of the original's threads and were compared as a set or as a range, `free` those that could not be compared."""

    difference: str | None
    unordered: int = 0
    free: int = 0
    compared: int = 0
    """Elements that the original changed and that were compared, one way or the other."""
    undefined: int = 0
    """Elements that follow from what nothing has written or from results that CUDA leaves undefined: not compared."""
    sensitive: int = 0
    """Elements that the original itself moves as far when its inputs are rounded otherwise."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What the original makes of a buffer that holds `given`."""

    given: bytes
    outcomes: Sequence[bytes]
    """Under several schedules of its threads."""
    refilled: Sequence[bytes] = ()
    """As the first, but with other contents of what nothing has written."""
    nudged: Sequence[bytes] = ()
    """As the first, but with inputs that differ by their rounding."""


def compare(p: ParameterInfo, expected: Expected, got: bytes) -> Comparison:
    """The port's buffer against the original's.

    Integers by bits, floating point by relative tolerance; where the schedules disagree about a floating-point number,
    the port's must lie near what they give. Raises nothing; lengths are equal by construction.
    """
    before, z, x = (decode_buffer(p, data) for data in (expected.given, got, expected.outcomes[0]))
    others = [decode_buffer(p, data) for data in expected.outcomes[1:]]
    nudged = [decode_buffer(p, data) for data in expected.nudged]
    defined = np.ones(len(x), np.bool_)
    for data in expected.refilled:
        defined &= same(p, x, decode_buffer(p, data))
    if bool(defined.all()):
        return _compare(p, before, x, others, nudged, z)
    others, nudged = ([v[defined] for v in many] for many in (others, nudged))
    found = _compare(p, before[defined], x[defined], others, nudged, z[defined])
    return replace(found, undefined=int((~defined).sum()))


def _compare(
    p: ParameterInfo, before: Values, x: Values, others: Sequence[Values], nudged: Sequence[Values], z: Values
) -> Comparison:
    stable = np.logical_and.reduce([same(p, x, y) for y in others]) if others else np.ones(len(x), np.bool_)
    changed = ~same(p, before, x) | ~stable
    wrong = stable & ~same(p, x, z)
    if bool(wrong.any()) and not bool(stable.all()):  # places that came out alike by chance, among permuted ones
        mixed = np.flatnonzero(~stable | wrong)
        sorted_ = [np.sort(v[mixed]) for v in (x, *others, z)]
        if all(bool(same(p, sorted_[0], s).all()) for s in sorted_[1:]):
            return Comparison(None, unordered=int(mixed.size), compared=int((changed | wrong).sum()))
    moved = wrong & _as_rounded(p, x, nudged, z) if nudged else np.zeros_like(wrong)
    wrong &= ~moved
    if bool(wrong.any()):
        at = int(np.flatnonzero(wrong)[0])
        return Comparison(
            f"element {at} is {z[at]!r}, the original gives {x[at]!r} ({int(wrong.sum())} elements differ)"
        )
    loose = np.flatnonzero(~stable)
    sure = int((changed & stable & ~moved).sum())
    sensitive = int(moved.sum())
    if not loose.size:
        return Comparison(None, compared=sure, sensitive=sensitive)
    sets = [np.sort(v[loose]) for v in (x, *others, z)]
    if all(bool(same(p, sets[0], s).all()) for s in sets[1:-1]):
        if bool(same(p, sets[0], sets[-1]).all()):
            return Comparison(None, unordered=loose.size, compared=sure + loose.size, sensitive=sensitive)
        return Comparison(f"{loose.size} elements hold other values than the original's, in whatever order")
    near = int(_between(np.stack([v[loose] for v in (x, *others)]), z[loose]).sum()) if p.element in FLOATS else 0
    return Comparison(None, near, int(loose.size) - near, sure + near, sensitive=sensitive)


def _as_rounded(p: ParameterInfo, x: Values, nudged: Sequence[Values], got: Values) -> npt.NDArray[np.bool_]:
    """Per element, whether `got` is what the original gives on nearly these inputs: that is all that can be asked of an
    algorithm in floating point (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 1.5)."""
    seen = np.stack([x, *nudged])
    return _between(seen, got) if p.element in FLOATS else np.asarray((seen == got).any(axis=0), np.bool_)


NUDGE_ULPS = 4
"""What CUDA's manual grants `powf`, the widest of its functions that are meant to be exact."""


def nudge_arguments(
    parameters: Sequence[ParameterInfo], arguments: Sequence[Argument], rng: np.random.Generator
) -> list[Argument]:
    """The arguments with single- and double-precision inputs moved by up to `NUDGE_ULPS` units in the last place of
    the arithmetic; those of half precision stay, as a unit of theirs is no rounding of what is computed from them."""
    moved: list[Argument] = []
    for p, argument in zip(parameters, arguments, strict=True):
        if isinstance(argument, Packed):
            held = zip(argument.pointers, p.pointers, strict=True)
            moved.append(Packed(argument.data, tuple((at, _nudged(q, data, rng)) for (at, data), q in held)))
        elif isinstance(argument, tuple):
            moved.append((_nudged(p, argument[0], rng),))
        else:
            moved.append(_nudged(p, argument, rng))
    return moved


def _nudged(p: ParameterInfo, data: bytes, rng: np.random.Generator) -> bytes:
    if p.element != "float" or p.element_bytes not in (4, 8):
        return data
    dtype = np.dtype(f"f{p.element_bytes}")
    values: Floats = np.frombuffer(data, dtype).astype(np.float64)
    unit = 2.0**-23 if p.single or p.element_bytes == 4 else 2.0**-52
    with np.errstate(all="ignore"):
        moved: Floats = values * (1.0 + unit * rng.integers(-NUDGE_ULPS, NUDGE_ULPS + 1, len(values)))
        return moved.astype(dtype).tobytes()


def _between(seen: Values, got: Values) -> npt.NDArray[np.bool_]:
    """Per element, whether `got` lies within the range of what was `seen` (a row a run), widened by itself."""
    low, high = seen.min(axis=0), seen.max(axis=0)
    with np.errstate(all="ignore"):
        spread = high - low
        inside: npt.NDArray[np.bool_] = (got >= low - spread) & (got <= high + spread)
    return inside


def same(p: ParameterInfo, a: Values, b: Values) -> npt.NDArray[np.bool_]:
    """Per element, whether two results are equal but for rounding."""
    if p.element not in FLOATS:
        return np.equal(a, b)
    with np.errstate(all="ignore"):
        close = np.abs(a - b) <= _bound(p, a, b)
        equal: npt.NDArray[np.bool_] = close | (a == b) | (np.isnan(a) & np.isnan(b))
    return equal


def _bound(p: ParameterInfo, a: Values, b: Values) -> Floats:
    """Per element, how far rounding may part two results, by the format that they are computed in."""
    width = min(p.element_bytes, 4 if p.single else 8) if p.element == "float" else 2
    finite = a[np.isfinite(a)]
    scale = float(np.sqrt(np.mean(np.square(np.clip(finite, -1e100, 1e100))))) if finite.size else 1.0
    bound: Floats = TOLERANCES[p.element, width] * (np.maximum(np.abs(a), np.abs(b)) + min(scale, 1.0))
    return bound


def decode_buffer(p: ParameterInfo, data: bytes) -> Values:
    """What a buffer holds, by element: floating types as float64."""
    if p.element == "half":
        return np.frombuffer(data, np.float16).astype(np.float64)
    if p.element == "bfloat16":
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if p.element == "float":
        return np.frombuffer(data, np.float64 if p.element_bytes == 8 else np.float32).astype(np.float64)
    width = p.element_bytes if p.element in ("int", "uint") and p.element_bytes in (2, 4, 8) else 1
    return np.frombuffer(data, np.dtype(f"{'i' if p.element == 'int' else 'u'}{width}"))
