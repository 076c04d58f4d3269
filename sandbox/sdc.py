"""Silent data corruption: a workload repeated on every visible device, checksums compared, and a vote on who is wrong.

With three devices or more a device whose checksums differ from the majority's is the culprit, whether it is always
wrong or now and then. With two that disagree nobody can be named, with one only a change from run to run can be seen;
and results that change on most devices are the program's own doing.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from sandbox.correctness import Results, TensorValue
from sandbox.errors import SandboxError
from sandbox.isolation import Limits
from sandbox.kernel import Kernel
from sandbox.target import Target
from sandbox.trials import Request, run_trial
from sandbox.variants import RECORDED, Step
from sandbox.workload import StoredWorkload

Checksums = Mapping[str, str]
"""Place of a result, `call 0 output`, to the checksum of its type, shape and bytes."""
Outcome = Literal["clean", "corrupt", "non-deterministic", "undecided"]
REPEATS = 5


class Device(Protocol):
    """Something that repeats the workload. `name` appears in messages."""

    @property
    def name(self) -> str: ...

    def replay(self, repeats: int) -> Sequence[Checksums]:
        """Checksums of each repetition, in order. Raises `SandboxError` where the workload does not run."""
        ...


@dataclass(frozen=True, slots=True)
class ReplayDevice:
    """Repeats a recorded workload in a confined child: on GPU number `index`, or on the processor."""

    name: str
    stored: StoredWorkload
    kernel: Kernel
    target: Target
    executor: str = "gpu"
    index: int | None = None
    limits: Limits = field(default_factory=Limits)

    def replay(self, repeats: int) -> Sequence[Checksums]:
        entries = self.stored.workload.entries
        requests = [
            Request(Step(entry.index, RECORDED), number, again=bool(k))
            for k in range(repeats)
            for number, entry in enumerate(entries)
        ]
        trial = run_trial(
            self.kernel, self.stored, self.target, requests, executor=self.executor, limits=self.limits, seed=0,
            device=self.index,
        )  # fmt: skip
        failed = next((str(c.error or c.skipped) for c in trial.calls if c.error or c.skipped), trial.failure)
        if failed or len(trial.calls) != len(requests):
            raise SandboxError(f"{self.name} did not repeat the workload: {failed or 'calls are missing'}.")
        found: list[dict[str, str]] = []
        for k in range(repeats):
            group = trial.calls[k * len(entries) : (k + 1) * len(entries)]
            found.append({f"call {c.request.number} {p}": s for c in group for p, s in checksums(c.results).items()})
        return found


def checksums(results: Results) -> dict[str, str]:
    """Place to checksum of one call's results."""
    found = {}
    for place, value in results.items():
        data = repr(value).encode()
        if isinstance(value, TensorValue):
            data = f"{value.dtype} {value.shape}".encode() + value.data.tobytes()
        found[place] = hashlib.blake2b(data, digest_size=16).hexdigest()
    return found


@dataclass(frozen=True, slots=True)
class Culprit:
    """A device outvoted on one result: in `wrong` of `repeats` repetitions."""

    device: str
    place: str
    wrong: int
    repeats: int

    def __str__(self) -> str:
        return f"{self.device}: {self.place} differs from the majority in {self.wrong} of {self.repeats} repetitions"


@dataclass(frozen=True, slots=True)
class SdcReport:
    """What the vote says. `sentences` say why, one line each."""

    outcome: Outcome
    devices: tuple[str, ...]
    repeats: int
    results: int
    """Results compared in each repetition."""
    culprits: tuple[Culprit, ...] = ()
    sentences: tuple[str, ...] = ()


def check(devices: Sequence[Device], repeats: int = REPEATS) -> SdcReport:
    """Replay on every device and vote on each result. Raises `ValueError` without a device or with less than 2 runs."""
    if not devices or repeats < 2:
        raise ValueError("needs a device and at least two repetitions")
    runs = {device.name: device.replay(repeats) for device in devices}
    places = sorted({place for replays in runs.values() for held in replays for place in held})
    culprits: list[Culprit] = []
    changing: list[str] = []
    tied: list[str] = []
    for place in places:
        seen = {name: [held.get(place, "missing") for held in replays] for name, replays in runs.items()}
        _vote(place, seen, culprits, changing, tied)
    outcome: Outcome = "corrupt" if culprits else "non-deterministic" if changing else "undecided" if tied else "clean"
    sentences = (*map(str, culprits), *changing, *tied)
    return SdcReport(outcome, tuple(runs), repeats, len(places), tuple(culprits), sentences)


def _vote(
    place: str, seen: Mapping[str, Sequence[str]], culprits: list[Culprit], changing: list[str], tied: list[str]
) -> None:
    """One result: everybody's checksums, in the order of repetitions."""
    unsteady = [name for name, values in seen.items() if len(set(values)) > 1]
    if not unsteady and len({values[0] for values in seen.values()}) == 1:
        return
    if 2 * len(unsteady) >= len(seen):
        where = "" if len(seen) == 1 else f" on {len(unsteady)} of {len(seen)} devices"
        cause = "the program is not deterministic" if len(seen) >= 3 else "the program or the device"
        hint = "; three devices would tell which" if len(seen) < 3 else ""
        changing.append(f"{place} changes from run to run{where}: {cause}{hint}")
        return
    votes = Counter(Counter(values).most_common(1)[0][0] for values in seen.values())
    winner, count = votes.most_common(1)[0]
    if 2 * count <= len(seen) or len(seen) < 3:
        tied.append(f"{place} differs between {' and '.join(seen)}: {len(seen)} devices cannot outvote each other")
        return
    for name, values in seen.items():
        wrong = sum(value != winner for value in values)
        if wrong:
            culprits.append(Culprit(name, place, wrong, len(values)))
