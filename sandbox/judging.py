"""Judge what a candidate's calls did against the references: every dynamic check, each under its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from sandbox.cheats.names import COMPUTING_METHODS, SCRATCH_METHODS
from sandbox.correctness import Mismatch, Results, TensorValue, bitwise_equal, compare
from sandbox.gate import Gate
from sandbox.oracle import Reference, unwritten
from sandbox.trials import Call, Trial
from sandbox.variants import Step

COMPARED = (
    "output-count", "output-shape", "output-dtype", "output-stride", "nan-pattern", "inf-pattern", "exact",
    "tolerance", "precision", "unwritten-output",
)  # fmt: skip
_LIBRARY = (COMPUTING_METHODS - SCRATCH_METHODS) | {
    "scaled_dot_product_attention", "rms_norm", "cross_entropy", "mse_loss", "embedding_bag", "adaptive_avg_pool2d",
    "max_pool2d", "avg_pool2d", "glu", "leaky_relu", "elu", "selu", "softplus", "hardtanh", "one_hot", "normalize",
    "multi_head_attention_forward", "__matmul__", "__rmatmul__", "__pow__", "cosine_similarity", "pad", "cat", "stack",
}  # fmt: skip
"""torch functions that do a kernel's work; allocation, views, casts and reductions of scratch are not among them."""


def judge_calls(gate: Gate, references: Sequence[Reference], candidate: Trial, baseline: Trial) -> None:
    """Every dynamic check over all calls of the candidate."""
    by_number = {r.number: r for r in references}
    for call in candidate.calls:
        reference = by_number.get(call.request.number)
        if reference is None or call.skipped is not None or call.error is not None:
            continue
        _judge_launches(gate, call, reference)
        _judge_memory(gate, call, reference)
        if call.executed:
            _judge_results(gate, call, reference, candidate, baseline)
    _judge_library(gate, references, candidate)
    _judge_later(gate, candidate, baseline)
    gate.ran((*COMPARED, "input-mutation", "out-of-bounds", "kernel-not-launched", "foreign-kernel", "library-call"))
    gate.ran(("call-independence", "determinism"))
    for check, kinds in (("held-out-shapes", ("sizes",)), ("held-out-arguments", ("scalars",))):
        names = [r.step.variant.name for r in references if r.step.variant.kind in kinds]
        if names:
            gate.ran((check,), ", ".join(names))


def _where(step: Step) -> str:
    return step.variant.name


def _judge_launches(gate: Gate, call: Call, reference: Reference) -> None:
    if not call.launches:
        gate.fail("kernel-not-launched", f"on {_where(call.request.step)}: the call launched no kernel")
    for launch in call.launches:
        if not launch.own:
            gate.fail("foreign-kernel", f"kernel {launch.kernel} is not text of the candidate's file")


def _judge_memory(gate: Gate, call: Call, reference: Reference) -> None:
    where = _where(call.request.step)
    known = {_without_numbers(f) for f in reference.call.findings}
    for finding in call.findings:
        promise = "promise" in finding
        if _without_numbers(finding) not in known and not (reference.call.findings and not promise):
            gate.fail("unproven-promise" if promise else "out-of-bounds", f"on {where}: {finding}")
    if call.broken_guards and not reference.call.broken_guards:
        gate.fail("out-of-bounds", f"on {where}: {call.broken_guards} bytes beside the inputs were overwritten")
    fresh = sorted(set(call.changed) - set(reference.call.changed))
    if fresh:
        gate.fail("input-mutation", f"on {where}: the call changes its argument {', '.join(fresh)}")


def _without_numbers(finding: str) -> str:
    return "".join(c for c in finding if not c.isdigit())


def _judge_results(gate: Gate, call: Call, reference: Reference, candidate: Trial, baseline: Trial) -> None:
    first = candidate.of(call.request.number)
    if call.request.again and first is not None and first is not call:
        _judge_repetition(gate, call, first)
        return
    results = _without_fresh_arguments(call, reference)
    _judge_unwritten(gate, call, results, reference)
    expected = _blanked(reference.results, reference.results, results)
    got = _blanked(results, reference.results, results)
    agreement = compare(got, expected, reference.oracle, reference.scales)
    for mismatch in agreement.mismatches:
        _fail_mismatch(gate, call, mismatch, baseline)


def _judge_repetition(gate: Gate, call: Call, first: Call) -> None:
    """The same inputs once more, at another time and place, must give the same within rounding."""
    if bitwise_equal(call.results, first.results):
        return
    for mismatch in compare(call.results, first.results).mismatches[:1]:
        where = f"{_where(call.request.step)}, repeated later"
        gate.fail("determinism", f"on {where}: {mismatch.place}: {mismatch.message}", mismatch.details)


def _fail_mismatch(gate: Gate, call: Call, mismatch: Mismatch, baseline: Trial) -> None:
    variant = call.request.step.variant
    check = mismatch.check
    if call.config > 0:
        check = "autotune-config"
    elif call.request.order == "reversed":
        if not _agrees_reversed(baseline, call.request.number):
            return
        check = "data-race"
    elif variant.kind == "sizes":
        check = "held-out-shapes"
    elif variant.kind == "scalars":
        check = "held-out-arguments"
    extra = f" with autotuner config {call.config}" if call.config else ""
    extra += " with programs in another order" if call.request.order == "reversed" else ""
    details = {**mismatch.details, "found": mismatch.check, "place": mismatch.place, "inputs": variant.name}
    gate.fail(check, f"on {variant.name}{extra}: {mismatch.place}: {mismatch.message}", details)


def _agrees_reversed(baseline: Trial, number: int) -> bool:
    """Whether the baseline gives the same when its programs run in another order; else the order is no reproach."""
    plain = baseline.of(number)
    for call in baseline.calls:
        if call.request.number == number and call.request.order == "reversed" and plain is not None:
            return call.executed and not compare(call.results, plain.results).mismatches
    return False


def _without_fresh_arguments(call: Call, reference: Reference) -> Results:
    """Arguments that only the candidate changed are a failure of their own, not one more output."""
    return {p: v for p, v in call.results.items() if p in reference.results or p.startswith("output")}


def _judge_unwritten(gate: Gate, call: Call, results: Results, reference: Reference) -> None:
    for place, value in results.items():
        expected = reference.results.get(place)
        if isinstance(value, TensorValue) and isinstance(expected, TensorValue) and value.shape == expected.shape:
            if value.dtype != expected.dtype:
                continue
            missing = unwritten(value) & ~unwritten(expected)
            if missing.any():
                at = [int(i) for i in np.argwhere(missing)[0]]
                text = f"{int(missing.sum())} of {missing.size} elements of {place} were never written, first at {at}"
                gate.fail("unwritten-output", f"on {_where(call.request.step)}: {text}")


def _blanked(values: Results, expected: Results, got: Results) -> Results:
    """Elements the baseline itself leaves unwritten, or the candidate (reported already), become zero on both sides."""
    blanked = dict(values)
    for place, reference in expected.items():
        value, other = values.get(place), got.get(place)
        if not isinstance(reference, TensorValue) or not isinstance(value, TensorValue):
            continue
        if not isinstance(other, TensorValue) or other.shape != reference.shape or other.dtype != reference.dtype:
            continue
        hole = unwritten(reference) | unwritten(other)
        if hole.any():
            data = np.array(value.data)
            data[hole] = 0
            blanked[place] = replace(value, data=data)
    return blanked


def _judge_library(gate: Gate, references: Sequence[Reference], candidate: Trial) -> None:
    """torch functions the candidate's calls use and the baseline's do not."""
    usual = {name for r in references for name in r.call.torch_functions}
    for call in candidate.calls:
        fresh = sorted((set(call.torch_functions) & _LIBRARY) - usual)
        if fresh:
            where = _where(call.request.step)
            gate.fail("library-call", f"on {where}: the host code calls torch's {', '.join(fresh)}")
            return


def _judge_later(gate: Gate, candidate: Trial, baseline: Trial) -> None:
    if candidate.changed_later and not baseline.changed_later:
        count = len(candidate.changed_later)
        gate.fail("call-independence", f"the results of {count} calls were overwritten by later calls")


def errors_of(references: Sequence[Reference], trial: Trial) -> Mapping[int, Call]:
    """Calls that raised although the baseline answers them, by request number."""
    known = {r.number for r in references}
    return {c.request.number: c for c in trial.calls if c.error is not None and c.request.number in known}
