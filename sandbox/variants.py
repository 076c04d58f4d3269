"""Inputs a recorded workload is widened with: other seeds, distributions, sizes and scalars. Drawn by a child process.

Sizes are changed at the host call: every tensor dimension and every integer argument of one size becomes another, for
all at once. Whether the changed call still means something is decided by the baseline: a variant that it refuses, or
where it reaches outside its tensors, is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from sandbox.workload import EntryCall, Value, Workload

Kind = Literal["recorded", "seed", "distribution", "sizes", "scalars"]

DISTRIBUTIONS = ("zeros", "large", "denormal", "tails", "uniform")
MIN_SEEDS = 5
_SMALL_ELEMENTS = 1 << 16
"""About as many elements as an interpreter looks through in seconds, whatever the kernel."""
DEAR_S = 6.0
"""A large call that costs more seconds is made as it was recorded, and redrawn in much smaller sizes only."""
DEAR_BYTES = 96 << 20
"""So is one with more bytes of tensors: they are drawn, hashed, fetched and compared on the host, at some 60 MB/s."""
MAX_ELEMENTS = 1 << 22
"""Tensor elements of one call beyond which its sizes are not enlarged."""


@dataclass(frozen=True, slots=True)
class InputVariant:
    """One set of inputs for an entry call. `name` appears in messages.

    `sizes` maps a dimension to what it becomes; `scalars` turns on changed float arguments; `flip` is the path of a
    boolean argument to negate. Integer tensors keep their values, brought into range where a size shrank, or permuted
    along their first dimension when `permute` is set and they are not sorted.
    """

    name: str
    kind: Kind
    seed: int = 0
    distribution: str = "recorded"
    sizes: Mapping[int, int] = field(default_factory=dict)
    scalars: bool = False
    flip: str | None = None
    permute: bool = False
    reduced: bool = False
    """Far smaller than the recorded inputs, which are large: what an interpreter can answer in time."""

    @property
    def large(self) -> bool:
        """Whether its values are, so that other block sizes lead to other overflows and underflows."""
        return self.distribution == "large"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "seed": self.seed,
            "distribution": self.distribution,
            "sizes": [[k, v] for k, v in self.sizes.items()],
            "scalars": self.scalars,
            "flip": self.flip,
            "permute": self.permute,
        }


RECORDED = InputVariant("the recorded inputs", "recorded")


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a trial: which entry on which inputs."""

    entry: int
    variant: InputVariant


def plan_steps(
    workload: Workload, rng: np.random.Generator, *, budget_s: float = 60.0, reduce: bool = False
) -> list[Step]:
    """The calls that judge a candidate, cheapest way to cover everything: every distinct entry on its recorded inputs;
    seeds, distributions, sizes and scalars on the cheapest entry of each function, as far as `budget_s` seconds reach.

    Entries whose results were unknown are called once, on their recorded inputs, for what they compile to; where all
    are and the inputs are large, on much smaller ones too; with `reduce` (on a GPU) any large inputs are. `rng` makes
    the seeds secret. At least `MIN_SEEDS` redrawn inputs are planned whatever they cost, and large ones, where other
    block sizes lead to other overflows and underflows; those of dear calls in smaller sizes, and with `reduce` one of
    each in their own size.
    """
    entries = _distinct(workload.entries)
    steps = [Step(e.index, RECORDED) for e in entries]
    left_s = budget_s - sum(_cost_s(workload, e) for e in entries)
    for entry in _one_per_function(workload, [e for e in entries if e.known]):
        cost = _cost_s(workload, entry)
        if is_dear(workload, entry):
            redrawn = variants_of(entry, rng)
            own_size = redrawn[:1] + [v for v in redrawn if v.large]
            steps += [Step(entry.index, v) for v in own_size] if reduce else []
            steps += [*_reduced_steps(entry, rng), *_reduced_steps(entry, rng), *_reduced_large(entry, rng)]
            continue
        for variant in variants_of(entry, rng):
            needed = variant.kind == "seed" or variant.large
            if needed or cost <= left_s:
                steps.append(Step(entry.index, variant))
                left_s -= cost
    if reduce or not any(e.known for e in entries):
        for entry in _one_per_function(workload, [e for e in entries if e.kind != "program"]):
            if not is_dear(workload, entry):
                steps += [*_reduced_steps(entry, rng), *_reduced_large(entry, rng)]
    return steps


def _reduced_steps(entry: EntryCall, rng: np.random.Generator) -> list[Step]:
    return [
        Step(entry.index, InputVariant(_words(m), "sizes", _seed(rng), "normal", sizes=m, reduced=True))
        for m in reductions(entry)
    ]


def _reduced_large(entry: EntryCall, rng: np.random.Generator) -> list[Step]:
    """Large values on the largest of the smaller sizes: a GPU is asked on inputs that an interpreter answers, too."""
    return [
        Step(entry.index, InputVariant(f"large, {_words(m)}", "distribution", _seed(rng), "large", m, reduced=True))
        for m in reductions(entry)[-1:]
    ]


def is_dear(workload: Workload, entry: EntryCall) -> bool:
    """Whether a call of known results cost so much where it was recorded that it is not repeated without need."""
    if not entry.known or entry.kind == "program" or not reductions(entry):
        return False
    return _cost_s(workload, entry) > DEAR_S or _bytes(workload, entry) > DEAR_BYTES


def variants_of(entry: EntryCall, rng: np.random.Generator) -> list[InputVariant]:
    """Every variant of one entry, most telling first."""
    found = [
        InputVariant(f"inputs drawn anew ({i + 1})", "seed", _seed(rng), "normal", permute=i % 2 == 1)
        for i in range(MIN_SEEDS)
    ]
    if entry.kind == "program":
        return found
    found += [InputVariant(f"{_words(m)}", "sizes", _seed(rng), "normal", sizes=m) for m in size_changes(entry)]
    found += [InputVariant(f"{d} inputs", "distribution", _seed(rng), d) for d in DISTRIBUTIONS]
    if any(v.kind == "float" for _, v in _leaves(entry)):
        found.append(InputVariant("other scalar arguments", "scalars", _seed(rng), "normal", scalars=True))
    for path, value in _leaves(entry):
        if value.kind == "bool":
            found.append(InputVariant(f"{path} negated", "scalars", _seed(rng), "normal", flip=path))
    return found


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(1, 2**31))


def _words(sizes: Mapping[int, int]) -> str:
    return "size " + ", ".join(f"{old} -> {new}" for old, new in sizes.items())


def size_changes(entry: EntryCall) -> list[dict[int, int]]:
    """Which sizes to change into what: each size alone to an odd smaller one, to its half and to its double; then all.

    Odd sizes show missing masks, halves still suit kernels that need powers of two, doubles show loops that stop where
    the recorded data ended. At most four sizes, the largest first, are taken alone.
    """
    sizes = sorted({n for t in _tensors(entry) for n in t if n > 2}, reverse=True)
    if not sizes:
        return []
    elements = sum(int(np.prod(t, dtype=np.int64)) for t in _tensors(entry))
    changes: list[dict[int, int]] = [{n: _odd_below(n)} for n in sizes[:4]]
    if 2 * elements <= MAX_ELEMENTS:
        changes += [{n: 2 * n} for n in sizes[:4]]
    changes += [{n: n // 2} for n in sizes[:4] if n % 2 == 0]
    if len(sizes) > 1:
        changes.append({n: _odd_below(n) for n in sizes})
    return [c for i, c in enumerate(changes) if c not in changes[:i]]


def reductions(entry: EntryCall) -> list[dict[int, int]]:
    """Sizes that bring an entry of more than `_SMALL_ELEMENTS` elements far below that; empty for a small one.

    Some odd and some even, so that missing masks show.
    """
    elements = sum(int(np.prod(t, dtype=np.int64)) for t in _tensors(entry))
    if elements <= _SMALL_ELEMENTS:
        return []
    sizes = {n for t in _tensors(entry) for n in t if n > 256}
    rank = max(sum(n > 256 for n in t) for t in _tensors(entry))
    found = []
    for share in (1, 4, 16):
        factor = (share * elements / _SMALL_ELEMENTS) ** (1 / max(1, rank))
        smaller = {n: max(128, int(n / factor)) for n in sizes}
        found.append({n: m + (share == 1 and m % 2 == 0) for n, m in smaller.items()})
    return found


def _odd_below(n: int) -> int:
    smaller = n - max(1, n // 5)
    return max(1, smaller - 1 if smaller % 2 == 0 and smaller > 1 else smaller)


def _tensors(entry: EntryCall) -> Iterator[tuple[int, ...]]:
    for value in (*entry.args, *entry.kwargs.values()):
        for tensor in value.tensors():
            yield tensor.shape


def _leaves(entry: EntryCall) -> Iterator[tuple[str, Value]]:
    """Scalar arguments with their paths: `args.2`, `kwargs.eps`."""
    for i, value in enumerate(entry.args):
        yield from _below(f"args.{i}", value)
    for name, value in entry.kwargs.items():
        yield from _below(f"kwargs.{name}", value)


def _below(path: str, value: Value) -> Iterator[tuple[str, Value]]:
    if not value.items:
        yield path, value
    elif value.kind in ("list", "tuple"):
        for i, item in enumerate(value.items):
            yield from _below(f"{path}.{i}", item)


def _distinct(entries: Sequence[EntryCall]) -> list[EntryCall]:
    """One entry per function and kinds of arguments; the first of each."""
    seen: set[Any] = set()
    kept = []
    for entry in entries:
        key = (entry.kind, entry.qualname, *(_shape_of(v) for v in (*entry.args, *entry.kwargs.values())))
        if key not in seen:
            seen.add(key)
            kept.append(entry)
    return kept


def _shape_of(value: Value) -> tuple[Any, ...]:
    tensor = value.tensor
    own = (tensor.dtype, tensor.shape, tensor.stride) if tensor is not None else (value.value,)
    return (value.kind, own, *(_shape_of(item) for item in value.items))


def _one_per_function(workload: Workload, entries: Sequence[EntryCall]) -> list[EntryCall]:
    cheapest: dict[tuple[str, str], EntryCall] = {}
    for entry in sorted(entries, key=lambda e: _cost_s(workload, e)):
        cheapest.setdefault((entry.kind, entry.qualname), entry)
    return sorted(cheapest.values(), key=lambda e: e.index)


def _bytes(workload: Workload, entry: EntryCall) -> int:
    """Memory of the tensors that a call is given."""
    values = (*entry.args, *entry.kwargs.values(), *([entry.receiver] if entry.receiver is not None else ()))
    return sum(workload.storages[n].nbytes for n in {t.storage for v in values for t in v.tensors()})


def _cost_s(workload: Workload, entry: EntryCall) -> float:
    """Seconds of one call, from what its launches took when they were recorded, twice for the wider arithmetic too."""
    known = [workload.launches[i].execution.elapsed_s or 0.0 for i in entry.launches]
    return 0.02 + 3.0 * sum(known)
