"""Where the right answer comes from: independent of the candidate, and of higher precision where that can be had.

In this order: the baseline's own definition computed in float64 throughout; what the harness's reference expected, when
that is float32 or better; the baseline's results themselves. The first two also say how far off the baseline is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from sandbox.correctness import Results, TensorValue, Yardsticks, compare, largest_noise, noise_between, typical_scales
from sandbox.trials import POISON_BYTE, Call, Trial
from sandbox.variants import Step
from sandbox.workload import StoredWorkload, TensorRecord

Booleans = npt.NDArray[np.bool_]
_PRECISE = ("float32", "float64")
_DRAWS = frozenset(
    ("rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm", "normal", "normal_", "uniform_",
     "random_", "bernoulli", "bernoulli_", "multinomial", "poisson", "exponential_", "cauchy_", "geometric_",
     "log_normal_", "dropout", "dropout_", "alpha_dropout", "feature_alpha_dropout", "native_dropout", "rrelu",
     "rrelu_", "gumbel_softmax", "scaled_dot_product_attention")
)  # fmt: skip
"""torch functions that draw random numbers, which differ between a GPU's generator and the host's."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What a step should give. `results` are the baseline's; `oracle` None where nothing better exists."""

    step: Step
    number: int
    call: Call
    oracle: Results | None
    kind: str
    """`float64`, `harness` or `baseline`."""
    yardsticks: Yardsticks

    @property
    def results(self) -> Results:
        return self.call.results


def references(stored: StoredWorkload, steps: Sequence[Step], baseline: Trial) -> list[Reference]:
    """References of the steps the baseline can answer; the others are left out.

    A step counts when the baseline raised nothing, every launch was executed, and on inputs of other sizes, where
    nobody vouches for it, it also stayed inside its tensors; and when it gives the same from run to run.
    """
    shaky = unsteady(baseline)
    usable = [
        (i, s, c)
        for i, s in enumerate(steps)
        if s.entry not in shaky and (c := baseline.of(i)) is not None and _usable(s, c)
    ]
    repeated = list(_repeated(baseline))

    @cache
    def apart(entry: int, unanswered: bool, large: bool) -> dict[str, float]:
        return _apart([*repeated, *_answered_precisely(baseline, large)] if unanswered else repeated, entry)

    found = []
    for number, step, call in usable:
        wide = baseline.of(number, wide=True)
        oracle: Results | None = None
        kind = "baseline"
        if wide is not None and wide.executed and _same_question(wide, call):
            oracle, kind = wide.results, "float64"
        elif step.variant.kind == "recorded":
            expected = _expected_by_harness(stored, step.entry)
            oracle, kind = (expected, "harness") if expected else (None, "baseline")
        alike = [c.results for _, s, c in usable if s.entry == step.entry and s.variant.kind in ("recorded", "seed")]
        yardsticks = Yardsticks(typical_scales(alike), apart(step.entry, oracle is None, step.variant.large))
        found.append(Reference(step, number, call, oracle, kind, yardsticks))
    return found


def _repeated(baseline: Trial) -> Iterator[tuple[Call, Call]]:
    """Calls of the baseline that were made twice: the first and the other."""
    for call in baseline.calls:
        first = baseline.of(call.request.number)
        if call.request.again and first is not None and first.executed and call.executed and first.error is None:
            yield first, call


def _answered_precisely(baseline: Trial, large: bool) -> Iterator[tuple[Call, Call]]:
    """Calls of the baseline beside the same in higher precision, those on `large` values too where one is judged.

    On inputs too large for that, nobody can be asked to err less than here; where the baseline's products are TF32, a
    candidate that computes them exactly differs from it by just that.
    """
    for call in baseline.calls:
        wide = baseline.of(call.request.number, wide=True)
        variant = call.request.step.variant
        usual = variant.kind in ("recorded", "seed", "sizes") or (large and variant.large)
        answered = usual and not call.request.wide and call.executed and call.error is None
        if answered and wide is not None and wide.executed and _same_question(wide, call):
            yield call, wide


def _apart(pairs: Iterable[tuple[Call, Call]], entry: int) -> dict[str, float]:
    """By place, how far calls of one entry are apart; places that were the same each time are left out."""
    own = ((one.results, other.results) for one, other in pairs if one.request.step.entry == entry)
    return {place: noise for place, noise in largest_noise(own).items() if noise > 0}


def unsteady(baseline: Trial) -> dict[int, str]:
    """Entries on which the baseline differs from itself by more than the order of its sums explains, and where.

    That is a matter of the program, the harness or the hardware (`wavesmith doctor --sdc` tells), and no candidate's
    fault.
    """
    found: dict[int, str] = {}
    for first, again in _repeated(baseline):
        noise = Yardsticks(noise=noise_between(first.results, again.results))
        for mismatch in compare(again.results, first.results, yardsticks=noise).mismatches[:1]:
            found[first.request.step.entry] = f"{mismatch.place}: {mismatch.message}"
    return found


def _same_question(wide: Call, call: Call) -> bool:
    """Whether the wider arithmetic answered, on the same inputs and with the same results; kernels on a GPU and in the
    interpreter are given theirs by different processes, and what host code draws on a GPU is drawn by no host."""
    apart = {launch.by == "gpu" for x in (wide, call) for launch in x.launches} == {True, False}
    if apart and _DRAWS & call.torch_functions.keys():
        return False
    return wide.error is None and wide.inputs_digest == call.inputs_digest and list(wide.results) == list(call.results)


def unanswered(baseline: Trial) -> str:
    """Why the baseline gives nothing to compare with."""
    if shaky := unsteady(baseline):
        entry, where = next(iter(shaky.items()))
        strays = [f for c in baseline.calls if c.request.step.entry == entry for f in c.findings if "promise" not in f]
        why = f"; it leaves its tensors: {strays[0]}" if strays else ""
        return f"the baseline differs from itself when it is repeated ({where}){why}"
    for call in baseline.calls:
        if call.error is not None:
            return f"the baseline itself raises {call.error}"
        for launch in call.launches:
            if not launch.executed:
                return f"the baseline's results are unknown: {launch.reason}"
        if call.skipped is not None:
            return f"the recorded inputs cannot be made again: {call.skipped}"
    return baseline.failure or "the workload has no call to repeat"


def other_inputs(expected: Sequence[Reference]) -> str | None:
    """What is to be said where only other inputs than the recorded ones could be compared."""
    if not expected or any(r.step.variant.kind == "recorded" for r in expected):
        return None
    names = "; ".join(dict.fromkeys(r.step.variant.name for r in expected[:3]))
    return f"the results on the recorded inputs are unknown; compared on smaller ones: {names}"


def _usable(step: Step, call: Call) -> bool:
    if call.skipped is not None or call.error is not None or not call.executed or not call.launches:
        return False
    return not (step.variant.sizes or step.variant.kind == "scalars") or not call.findings


def _expected_by_harness(stored: StoredWorkload, entry: int) -> dict[str, TensorValue]:
    """What the harness compared this entry's outputs with, by place; only results that bear being an oracle."""
    workload = stored.workload
    outputs = workload.entries[entry].outputs
    single = outputs is not None and outputs.kind == "tensor"
    found: dict[str, TensorValue] = {}
    for check in workload.outcome.checks:
        known = check.entry == entry and check.known and check.passed and check.output is not None
        if known and check.expected is not None and check.expected.dtype in _PRECISE:
            value = read_tensor(stored, check.expected)
            if value is not None:
                found["output" if single else f"output[{check.output}]"] = value
    return found


def read_tensor(stored: StoredWorkload, record: TensorRecord) -> TensorValue | None:
    """A recorded tensor's values; None when they were not kept whole."""
    storage = stored.workload.storages[record.storage]
    if storage.key is None or storage.page_key is not None:
        return None
    dtype = np.dtype(record.dtype)
    flat = np.frombuffer(stored.tensors[storage.key], dtype=np.uint8)
    flat = flat[: flat.size // dtype.itemsize * dtype.itemsize].view(dtype)[record.offset :]
    steps = tuple(s * dtype.itemsize for s in record.stride)
    values = np.lib.stride_tricks.as_strided(flat, record.shape, steps, writeable=False)
    return TensorValue(record.dtype, record.shape, record.stride, values)


def unwritten(value: TensorValue) -> Booleans:
    """Which elements still hold the pattern that memory without a value was filled with."""
    raw = np.asarray(value.data, order="C")  # a scalar stays one
    if raw.size == 0 or raw.dtype == np.bool_:
        return np.zeros(raw.shape, np.bool_)
    size = raw.dtype.itemsize
    if size in (1, 2, 4, 8):
        return np.asarray(raw.view(f"u{size}") == int.from_bytes(bytes([POISON_BYTE]) * size, "little"))
    parts = raw.reshape(-1).view(np.uint8).reshape(-1, size)
    return np.asarray((parts == POISON_BYTE).all(axis=1).reshape(raw.shape))
