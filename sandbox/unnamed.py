"""Candidates of which nobody said what they are better at: a file that is verified, a model's idea without a promise.

A skill names the one count that its edit lowers, and has its reasons. Where nobody did, a count speaks only while
everything else that could pay for it stays as it was: fewer instructions may not be bought with memory traffic, with
more work on the host, or with fewer waves that each run longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sandbox.emulator.cycles import alu_cycles
from sandbox.gain import (
    ENOUGH,
    Improvement,
    counted_improvement,
    counts_of,
    more_spills_in,
    pairs_of,
    profiles_of,
    static_improvement,
)
from sandbox.profiler.metrics import Profile
from sandbox.profiler.static import compare_static
from sandbox.statements import counted_statement, static_statement
from sandbox.target import Target
from sandbox.trials import Trial
from sandbox.verdict import Gain, Speed

_FREE = frozenset(
    ("__get__", "__set__", "__len__", "__repr__", "size", "stride", "numel", "nelement", "dim", "ndimension",
     "element_size", "is_contiguous", "storage_offset", "data_ptr", "get_device", "is_floating_point", "is_complex",
     "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "as_strided", "view", "view_as",
     "expand", "expand_as", "unsqueeze", "squeeze", "transpose", "permute", "narrow", "select", "split", "chunk",
     "unbind", "detach", "requires_grad_", "t", "result_type", "broadcast_shapes", "promote_types")
)  # fmt: skip
"""torch functions that start nothing on a device: questions, views, memory that nobody fills."""


@dataclass(frozen=True, slots=True)
class Side:
    """One version of the program on the same calls: what its launches counted, their code, and the host's part."""

    counters: Mapping[str, int]
    """`sandbox.emulator.counters`, all launches together."""
    profiles: Mapping[str, Profile]
    launches: int = 1
    host: Mapping[str, int] = field(default_factory=dict)
    """torch functions that start work of their own, with how often the calls used them."""

    @classmethod
    def of(cls, trial: Trial, target: Target) -> Side | None:
        """What an emulated trial shows; None where a launch was not emulated to its end."""
        counters = counts_of(trial)
        if counters is None:
            return None
        host: dict[str, int] = {}
        for call in trial.calls:
            for used in (call.torch_functions, call.orderings):
                for name, times in used.items():
                    if name not in _FREE:
                        host[name] = host.get(name, 0) + times
        return cls(counters, profiles_of(trial, target), sum(len(c.launches) for c in trial.calls), host)

    def count(self, name: str) -> int:
        return self.counters.get(name, 0)

    @property
    def traffic(self) -> dict[str, float]:
        """What fewer instructions could be bought with."""
        return {
            "vector_memory_bytes": self.count("vector_memory_bytes"),
            "vector_memory_instructions": self.count("SQ_INSTS_VMEM"),
            "lds_instructions": self.count("SQ_INSTS_LDS"),
            "lane_atomics": self.count("lane_atomics"),
            "launches": self.launches,
        }

    @property
    def length(self) -> float:
        """Instructions of a wave, on average."""
        return self.count("SQ_INSTS") / max(1, self.count("SQ_WAVES"))


def counted_or_static(
    before: Trial, after: Trial, static: Improvement, expects: Mapping[str, str], target: Target
) -> Improvement:
    """What two emulated trials of the same calls show together with `static`, what the code objects do."""
    if expects:
        counted = counted_improvement(before, after, expects, target)
        return counted if counted.gain is not None else static
    old, new = (Side.of(trial, target) for trial in (before, after))
    if old is None or new is None:
        return static if static.gain is not None else Improvement(None, f"{static.reason}; nothing could be counted")
    return unnamed_or_static(old, new, static, target)


def unnamed_or_static(before: Side, after: Side, static: Improvement, target: Target) -> Improvement:
    """`unnamed_improvement` and `static` together, where both show a gain; else the one that does."""
    counted = unnamed_improvement(before, after, target)
    if static.gain is None or counted.gain is None:
        return counted if static.gain is None else static
    statement = f"{counted.gain.statement}; {static.gain.statement}"
    metrics = {**static.gain.metrics, **counted.gain.metrics}
    return Improvement(replace(counted.gain, statement=statement, metrics=metrics))


def unnamed_improvement(before: Side, after: Side, target: Target) -> Improvement:
    """The gain in counts that speaks for a candidate on its own, or why none does.

    Lane atomics speak where they shrink by more than instructions, or the length of a wave, grow. Instructions and the
    cycles of the arithmetic units speak where one of them falls by a tenth and nothing else that is counted grows, nor
    the occupancy falls. In both cases the host does no more than before and no register spills more.
    """
    refused = ""
    for moved, price in (_atomics(before, after), _work(before, after, target)):
        price = more_spills_in(before.profiles, after.profiles) or _host_price(before, after) or price
        if moved and not price:
            return Improvement(Gain(Speed.COUNTED, counted_statement(moved), metrics=moved))
        refused = refused or (f"{counted_statement(moved)}, but {price}; not timed" if moved else "")
    nothing = "no resource and no count of the emulated run moved the right way; not timed"
    return Improvement(None, refused or nothing)


def mends_spills_elsewhere(
    arch: str | None, before: Mapping[str, Profile], after: Mapping[str, Profile], target: Target
) -> bool:
    """Whether the GPU at hand, of architecture `arch`, is another vendor's, whose clock does not know what got better:
    registers that the target's code spilled no longer are."""
    if target.is_amd == (arch or "").startswith("gfx"):
        return False
    wanted = {"vgpr_spill_count": "down", "sgpr_spill_count": "down", "scratch_bytes": "down"}
    return static_improvement(before, after, wanted, target).gain is not None


_Moved = dict[str, tuple[float, float]]


def _atomics(before: Side, after: Side) -> tuple[_Moved, str]:
    """Lane atomics that became fewer, with the instructions that this takes; and what it costs too much of."""
    old, new = before.count("lane_atomics"), after.count("lane_atomics")
    if new >= ENOUGH * old:
        return {}, ""
    instructions = (float(before.count("SQ_INSTS")), float(after.count("SQ_INSTS")))
    more = {"instructions": instructions} if instructions[1] > instructions[0] else {}
    enough = ENOUGH * old / max(new, 1)
    if instructions[1] > enough * instructions[0]:
        return {"lane_atomics": (old, new)}, static_statement(more)
    if after.length > enough * before.length:
        return {"lane_atomics": (old, new), **more}, _longer(before, after)
    traffic = _grown(before, after, 1 / ENOUGH, only=("vector_memory_bytes",))
    return {"lane_atomics": (old, new), **more}, static_statement(traffic)


def _work(before: Side, after: Side, target: Target) -> tuple[_Moved, str]:
    """Instructions, and cycles of the arithmetic units, that became fewer; and what grew or fell beside that."""
    cycles = [alu_cycles(side.counters, target) for side in (before, after)]
    if cycles[0] is None or cycles[1] is None:
        return {}, ""
    both = {
        "instructions": (float(before.count("SQ_INSTS")), float(after.count("SQ_INSTS"))),
        "alu_cycles": (cycles[0], cycles[1]),
    }
    moved = {name: values for name, values in both.items() if values[1] < ENOUGH * values[0]}
    worse = {name: values for name, values in both.items() if values[1] > values[0]} | _grown(before, after)
    if worse:
        return moved, static_statement(worse)
    if after.length > before.length / ENOUGH:
        return moved, _longer(before, after)
    return moved, _static_price(before.profiles, after.profiles, target)


def _grown(before: Side, after: Side, by: float = 1.0, *, only: Sequence[str] = ()) -> _Moved:
    """Which parts of the traffic grew to more than `by` times what they were."""
    old, new = before.traffic, after.traffic
    return {name: (old[name], new[name]) for name in only or old if new[name] > by * old[name]}


def _longer(before: Side, after: Side) -> str:
    return f"a wave executes {after.length:.0f} instructions on average, not {before.length:.0f}"


def _host_price(before: Side, after: Side) -> str:
    more = [name for name, times in after.host.items() if times > before.host.get(name, 0)]
    return f"the host calls torch's {', '.join(sorted(more)[:3])} more often" if more else ""


def _static_price(before: Mapping[str, Profile], after: Mapping[str, Profile], target: Target) -> str:
    for name, (old, new) in pairs_of(before, after).items():
        if worse := compare_static(old, new, {}, target).worsened:
            return f"{name}: {static_statement(worse)} is worse"
    return ""
