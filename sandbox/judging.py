"""Judge what a candidate's calls did against the references: every dynamic check, each under its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sandbox.cheats.names import COMPUTING_METHODS, INDEXING, SCRATCH_METHODS
from sandbox.correctness import Results, TensorValue, Value, Yardsticks, bitwise_equal, compare
from sandbox.gate import Gate
from sandbox.number_formats import decode, is_float
from sandbox.oracle import Booleans, Reference, unsteady, unwritten
from sandbox.trials import Call, Trial

COMPARED = (
    "output-count", "output-shape", "output-dtype", "output-stride", "nan-pattern", "inf-pattern", "exact",
    "tolerance", "precision", "unwritten-output",
)  # fmt: skip
_LIBRARY = (COMPUTING_METHODS - SCRATCH_METHODS - {"__getitem__"}) | {
    "scaled_dot_product_attention", "rms_norm", "cross_entropy", "mse_loss", "embedding_bag", "adaptive_avg_pool2d",
    "max_pool2d", "avg_pool2d", "glu", "leaky_relu", "elu", "selu", "softplus", "hardtanh", "one_hot", "normalize",
    "multi_head_attention_forward", "__matmul__", "__rmatmul__", "__pow__", "cosine_similarity", "pad", "cat", "stack",
    INDEXING,
}  # fmt: skip
"""torch functions that do a kernel's work; allocation, views, casts and reductions of scratch are not among them."""


def judge_calls(gate: Gate, references: Sequence[Reference], candidate: Trial, baseline: Trial) -> None:
    """Every dynamic check over all calls of the candidate."""
    by_number = {r.number: r for r in references}
    for call in candidate.calls:
        reference = by_number.get(call.request.number)
        if reference is None or call.skipped is not None or call.error is not None:
            continue
        judge = _Judge(gate, call, reference, baseline)
        judge.launches()
        judge.memory()
        if call.executed:
            first = candidate.of(call.request.number)
            if call.request.again and not call.shuffled and first is not None and first is not call:
                judge.repetition(first)
            else:
                judge.results()
    _judge_library(gate, candidate, baseline)
    _judge_later(gate, candidate, baseline)
    gate.ran((*COMPARED, "input-mutation", "out-of-bounds", "kernel-not-launched", "foreign-kernel", "library-call"))
    shaky = unsteady(baseline)
    gate.ran(
        ("determinism",),
        f"not judged where the baseline differs from itself: {'; '.join(shaky.values())}" if shaky else "",
    )
    gate.ran(("call-independence",))
    for check, kinds in (("held-out-shapes", ("sizes",)), ("held-out-arguments", ("scalars",))):
        names = [r.step.variant.name for r in references if r.step.variant.kind in kinds]
        if names:
            gate.ran((check,), ", ".join(names))


_RANK = {"recorded": 0, "seed": 1}


class _Judge:
    """The checks of one call against its reference."""

    def __init__(self, gate: Gate, call: Call, reference: Reference, baseline: Trial) -> None:
        self.gate, self.call, self.reference, self.baseline = gate, call, reference, baseline
        self.variant = call.request.step.variant
        self.reversed = call.request.order == "reversed"

    def fail(self, check: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        how = f" with autotuner config {self.call.config}" if self.call.config else ""
        how += " with programs in another order" if self.reversed else ""
        how += " with a random order in the place of the one that the host code finds" if self.call.shuffled else ""
        rank = _RANK.get(self.variant.kind, 2)
        self.gate.fail(check, f"on {self.variant.name}{how}: {message}", details, rank)

    def launches(self) -> None:
        if not self.call.launches:
            self.fail("kernel-not-launched", "the call launched no kernel")
        made = Counter(launch.kernel for launch in self.reference.call.launches)
        for kernel, count in self.call.fed.items():
            if self.call.orderings and count > made[kernel]:
                self.fail(
                    "library-call", f"ordered integers are given to {count} launches of {kernel}, not {made[kernel]}"
                )
        for launch in self.call.launches:
            if not launch.own:
                self.fail("foreign-kernel", f"kernel {launch.kernel} is not text of the candidate's file")

    def memory(self) -> None:
        known = {_without_numbers(f) for f in self.reference.call.findings}
        strays = any("promise" not in f for f in self.reference.call.findings)
        for finding in self.call.findings:
            promise = "promise" in finding
            if _without_numbers(finding) not in known and (promise or not strays):
                self.fail("unproven-promise" if promise else "out-of-bounds", finding)
        if self.call.broken_guards and not self.reference.call.broken_guards:
            self.fail("out-of-bounds", f"{self.call.broken_guards} bytes beside the inputs were overwritten")
        kept = [f"{x.kernel}({name})" for x in self.call.launches for name in x.persistent]
        if kept and not any(x.persistent for x in self.reference.call.launches):
            self.fail("hidden-state", f"{kept[0]} is memory that outlives the call, and the kernel changes it")
        fresh = sorted(set(self.call.changed) - set(self.reference.call.changed))
        if fresh:
            self.fail("input-mutation", f"the call changes its argument {', '.join(fresh)}")

    def repetition(self, first: Call) -> None:
        """The same inputs once more, at another time and place, must give the same within rounding."""
        if bitwise_equal(self.call.results, first.results):
            return
        # A candidate's own order of sums may vary where the baseline's does not, in the last digits.
        noise = dict.fromkeys(first.results, 0.0) | dict(self.reference.yardsticks.noise)
        for mismatch in compare(self.call.results, first.results, yardsticks=Yardsticks(noise=noise)).mismatches[:1]:
            self.fail("determinism", f"repeated later, {mismatch.place}: {mismatch.message}", mismatch.details)

    def results(self) -> None:
        # Arguments that only the candidate changed are a failure of their own, not one more output.
        known = self.reference.results
        results = {p: v for p, v in self.call.results.items() if p in known or p.startswith("output")}
        if self.reversed and not _agrees_reversed(self.baseline, self.call.request.number):
            return
        self._unwritten(results)
        expected, got = (_blanked(values, self.reference, results) for values in (known, results))
        for mismatch in compare(got, expected, self.reference.oracle, self.reference.yardsticks).mismatches:
            details = {**mismatch.details, "found": mismatch.check, "place": mismatch.place}
            check = self._named(mismatch.check)
            self.fail(check, f"{mismatch.place}: {mismatch.message}", {**details, "inputs": self.variant.name})

    def _named(self, check: str) -> str:
        """Under which name a wrong result counts: what was special about the call says more than how it is wrong."""
        if self.call.shuffled:
            return "library-call"
        if self.call.config > 0:
            return "autotune-config"
        if self.reversed:
            return "data-race"
        return {"sizes": "held-out-shapes", "scalars": "held-out-arguments"}.get(self.variant.kind, check)

    def _unwritten(self, results: Results) -> None:
        for place, value in results.items():
            expected = self.reference.results.get(place)
            if not isinstance(value, TensorValue) or not isinstance(expected, TensorValue):
                continue
            if value.shape != expected.shape or value.dtype != expected.dtype:
                continue
            missing = unwritten(value) & ~unwritten(expected)
            if missing.any():
                at = [int(i) for i in np.argwhere(missing)[0]]
                text = f"{int(missing.sum())} of {missing.size} elements of {place} were never written, first at {at}"
                self.fail(self._named("unwritten-output"), text)


def _without_numbers(finding: str) -> str:
    return "".join(c for c in finding if not c.isdigit())


def _agrees_reversed(baseline: Trial, number: int) -> bool:
    """Whether the baseline gives the same when its programs run in another order; else the order is no reproach."""
    plain = baseline.of(number)
    for call in baseline.calls:
        if call.request.number == number and call.request.order == "reversed" and plain is not None:
            return call.executed and not compare(call.results, plain.results).mismatches
    return False


def _blanked(values: Results, reference: Reference, got: Results) -> Results:
    """Elements that cannot be compared become zero on both sides.

    Those the baseline itself leaves unwritten; those the candidate does, reported already; and, on inputs far from the
    recorded ones, those where the baseline and its oracle are NaN: a rewrite may well be defined there.
    """
    blanked = dict(values)
    for place, expected in reference.results.items():
        value, other = values.get(place), got.get(place)
        if not isinstance(expected, TensorValue) or not isinstance(value, TensorValue):
            continue
        if not isinstance(other, TensorValue) or other.shape != expected.shape or other.dtype != expected.dtype:
            continue
        hole = unwritten(expected) | unwritten(other)
        if reference.step.variant.kind == "distribution":
            hole = hole | (_nan(expected) & _nan((reference.oracle or {}).get(place, expected)))
        if hole.any():
            data = np.array(value.data)
            data[hole] = 0
            blanked[place] = replace(value, data=data)
    return blanked


def _nan(value: Value) -> Booleans:
    if not isinstance(value, TensorValue):
        return np.zeros((), np.bool_)
    return np.asarray(
        np.isnan(decode(value.dtype, value.data)) if is_float(value.dtype) else np.zeros(value.shape, bool)
    )


def _judge_library(gate: Gate, candidate: Trial, baseline: Trial) -> None:
    """torch functions the candidate's calls use and the baseline's do not, and orders that serve for more than that."""
    usual = {name for call in baseline.calls for name in (*call.torch_functions, *call.orderings)}
    ordered = any(call.orderings for call in baseline.calls)
    for call in candidate.calls:
        used = {*call.torch_functions, *(call.orderings if ordered else ())}
        fresh = sorted((used & _LIBRARY) - usual)
        said = [f"the host code calls torch's {', '.join(fresh)}"] if fresh else []
        if not ordered:
            said += call.misordered
        if said:
            gate.fail("library-call", f"on {call.request.step.variant.name}: {said[0]}")
            return


def _judge_later(gate: Gate, candidate: Trial, baseline: Trial) -> None:
    if candidate.changed_later and not baseline.changed_later:
        count = len(candidate.changed_later)
        gate.fail("call-independence", f"the results of {count} calls were overwritten by later calls")


def errors_of(references: Sequence[Reference], trial: Trial) -> Mapping[int, Call]:
    """Calls that raised although the baseline answers them, by request number."""
    known = {r.number for r in references}
    return {c.request.number: c for c in trial.calls if c.error is not None and c.request.number in known}


HARDWARE = {
    "lds_race": "data-race",
    "uninitialised_lds": "uninitialised-memory",
    "out_of_bounds": "out-of-bounds",
    "write_to_read_only": "out-of-bounds",
    "misaligned": "unproven-promise",
    "trap_instruction": "tolerance",
}
"""What the emulator finds in a code object, by the check it belongs to. What is not here says nothing on its own."""


def hardware_faults(trial: Trial) -> dict[str, str]:
    """Check to what the emulator said, for findings and for launches it had to end."""
    said = [f for c in trial.calls for f in c.findings]
    said += [
        x.reason for c in trial.calls for x in c.launches if x.reason is not None and x.reason.startswith("trapped")
    ]
    return {check: text for kind, check in HARDWARE.items() for text in said if kind in text}


def judge_hardware(gate: Gate, candidate: Trial, baseline: Trial) -> None:
    """Faults in the candidate's code objects that the baseline's do not have."""
    usual = hardware_faults(baseline)
    for check, text in hardware_faults(candidate).items():
        if check not in usual:
            gate.fail(check, f"in the emulated code object: {text}")


def without_findings(trial: Trial) -> Trial:
    """The trial with the emulator's own findings taken out: they are judged against the baseline's, by kind."""
    calls = tuple(replace(c, launches=tuple(replace(x, findings=()) for x in c.launches)) for c in trial.calls)
    return replace(trial, calls=calls)
