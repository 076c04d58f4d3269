"""What a candidate's launches left, judged against the original on a CPU; the file's own error is the yardstick."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agent.hip.driven import Driven, Run
from agent.port.launches import Launch
from agent.port.reference_run import ParameterInfo
from agent.port.trials import FLOATS, Expected, compare, decode_buffer, same
from sandbox.blocks import FEW
from sandbox.correctness import TensorValue, Yardsticks
from sandbox.correctness import compare as compare_results
from sandbox.emulator.result import Finding
from sandbox.gate import Gate
from sandbox.judging import HARDWARE

CHECKS = ("exact", "tolerance", "precision", "nan-pattern", "inf-pattern", "kernel-not-launched")
FAULTS = tuple(dict.fromkeys(HARDWARE.values()))
"""Checks that the emulator makes at every launch."""


@dataclass(frozen=True, slots=True)
class Compared:
    """How much of a kernel's launches could be compared."""

    launches: int = 0
    elements: int = 0
    free: int = 0
    """Elements that depend on the order of threads in a way that leaves nothing to compare, or on what nothing has
    written."""
    raced: int = 0
    """Launches on which the original's threads race, so that they show nothing."""


def judge_kernel(gate: Gate, driven: Driven, runs: Sequence[Run]) -> Compared:
    """Every launch of one kernel; failures go to the gate, those of a candidate that did not end to the caller."""
    elements = free = compared = raced = 0
    scales = _scales(driven)
    for launch, own, run in zip(driven.launches, driven.runs, runs, strict=True):
        _judge_findings(gate, driven, own, run)
        if not run.completed:
            continue
        found = list(_judge_buffers(driven, launch, own, run, scales))
        wrong = [f for f in found if f.check]
        if wrong and driven.races(launch):
            raced += 1
            continue
        for f in wrong:
            gate.fail(f.check, f"{driven.kernel.name}, {launch.shape}: {f.message}")
        compared += 1
        elements += sum(f.elements for f in found)
        free += sum(f.free for f in found)
    return Compared(compared, elements, free, raced)


def _judge_findings(gate: Gate, driven: Driven, own: Run, run: Run) -> None:
    """Faults of the candidate's code object that the file's own has not."""
    usual = {f.kind for f in own.findings}
    fresh: list[Finding] = [f for f in run.findings if f.kind not in usual]
    for finding in fresh:
        check = next((c for kind, c in HARDWARE.items() if kind in finding.kind), None)
        if check is not None:
            gate.fail(check, f"{driven.kernel.name}, in the emulated code object: {finding}")


@dataclass(frozen=True, slots=True)
class _Buffer:
    """What was found about one buffer; `check` is empty when it agrees."""

    check: str = ""
    message: str = ""
    elements: int = 0
    free: int = 0


def _judge_buffers(driven: Driven, launch: Launch, own: Run, run: Run, scales: dict[str, float]) -> Iterator[_Buffer]:
    for i, (p, name, expected) in enumerate(zip(driven.buffers, driven.names, launch.expected, strict=True)):
        got = run.buffers[i]
        first, *others = (decode_buffer(p, o) for o in (*expected.outcomes, *expected.refilled))
        if all(bool(same(p, first, o).all()) for o in others):
            yield _stable(p, name, expected, own.buffers[i], got, scales.get(name, 0.0))
        else:
            loose = compare(p, expected, got)
            check = "tolerance" if p.element in FLOATS else "exact"
            if loose.difference is not None:
                yield _Buffer(check, f"{name}: {loose.difference}")
            else:
                yield _Buffer(elements=loose.compared, free=loose.free + loose.undefined)


def _stable(p: ParameterInfo, name: str, expected: Expected, own: bytes, got: bytes, scale: float) -> _Buffer:
    """A buffer whose results do not depend on the order of threads: the usual comparison, of what anyone changed."""
    arrays = [_array(p, data) for data in (expected.given, expected.outcomes[0], own, got)]
    changed = np.logical_or.reduce([_differs(arrays[0], a) for a in arrays[1:]])
    if not changed.any():
        return _Buffer()
    o, b, c = ({name: _value(p, a[changed])} for a in arrays[1:])
    agreement = compare_results(c, b, o, Yardsticks({name: scale}))
    first = next(iter(agreement.mismatches), None)
    if first is None:
        return _Buffer(elements=int(changed.sum()))
    return _Buffer(first.check, f"{name}: {first.message} (among the {int(changed.sum())} elements that are written)")


def _scales(driven: Driven) -> dict[str, float]:
    """Largest magnitude of each buffer's few results over all launches, for sums that happen to cancel on one."""
    scales: dict[str, float] = {}
    for launch in driven.launches:
        for p, name, expected in zip(driven.buffers, driven.names, launch.expected, strict=True):
            if p.element not in FLOATS:
                continue
            left = decode_buffer(p, expected.outcomes[0])
            numbers = np.abs(left[left != decode_buffer(p, expected.given)])
            numbers = numbers[np.isfinite(numbers)]
            if 0 < numbers.size < FEW:
                scales[name] = max(scales.get(name, 0.0), float(numbers.max()))
    return scales


_DTYPES = {("float", 4): "float32", ("float", 8): "float64", ("half", 2): "float16", ("bfloat16", 2): "bfloat16"}


def _array(p: ParameterInfo, data: bytes) -> npt.NDArray[np.generic]:
    """The buffer's elements: floating types as they are, bfloat16 as bits, everything else as integers."""
    dtype = _DTYPES.get((p.element, p.element_bytes))
    if dtype is not None and dtype != "bfloat16":
        return np.frombuffer(data, dtype)
    width = p.element_bytes if p.element in ("int", "uint", "bfloat16") and p.element_bytes in (2, 4, 8) else 1
    return np.frombuffer(data, f"{'i' if p.element == 'int' else 'u'}{width}")


def _differs(a: npt.NDArray[np.generic], b: npt.NDArray[np.generic]) -> npt.NDArray[np.bool_]:
    width = a.dtype.itemsize
    left, right = (np.ascontiguousarray(x).view(f"u{width}") for x in (a, b))
    return np.asarray(left != right)


def _value(p: ParameterInfo, data: npt.NDArray[np.generic]) -> TensorValue:
    dtype = _DTYPES.get((p.element, p.element_bytes), str(data.dtype))
    return TensorValue(dtype, data.shape, (1,), data)
