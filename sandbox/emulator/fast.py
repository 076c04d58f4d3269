"""The fast core: runs a `Launch` in the compiled core and reads its findings and counts back.

Same meaning as `reference.run`, some hundred times faster. `available()` says whether this machine can have it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sandbox.emulator.counters import classes_of, instruction_counters
from sandbox.emulator.disassembly import text
from sandbox.emulator.launch import XCCS, Launch
from sandbox.emulator.machine import PRIVATE_APERTURE, SHARED_APERTURE
from sandbox.emulator.native import library
from sandbox.emulator.program import Program, build_program
from sandbox.emulator.result import EmulationResult, Finding, FindingKind, Status

_SCHEDULES = {"lockstep": 0, "sequential": 1, "reverse": 2, "random": 3}
_STATUSES: tuple[Status, ...] = ("completed", "trapped", "unsupported", "budget", "deadlock")
_KINDS: tuple[FindingKind, ...] = (
    "out_of_bounds_global", "out_of_bounds_lds", "out_of_bounds_scratch", "write_to_read_only", "misaligned",
    "lds_race", "uninitialised_lds", "uninitialised_global", "trap_instruction",
)  # fmt: skip
_NEEDS = len(_KINDS)
_REPORT_LIMIT = 256
_HISTOGRAM_SLOTS = 1 << 16

_P, _U64, _U32, _I32 = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int32

TRAFFIC = (
    "TCC_READ_sum", "TCC_WRITE_sum", "TCC_ATOMIC_sum", "TCC_HIT_sum", "TCC_MISS_sum", "lane_atomics",
    "SQ_LDS_BANK_CONFLICT", "lds_lane_atomics",
)  # fmt: skip
"""Counters of the compiled core in its order. All but the lane atomics come from a model."""


class _Machine(ctypes.Structure):
    _fields_ = (
        *((name, _P) for name in (
            "code", "constants", "record_at", "regions", "times_run", "idle_lanes", "seen", "reports", "groups",
            "caches", "histogram", "host")),
        *((name, _U64) for name in (
            "code_base", "image_dwords", "shared_base", "private_base", "budget", "executed", "seed", "histogram_slots",
            "histogram_used")),
        *((name, _U32) for name in (
            "records", "vgprs", "region_count", "group_count", "lds_bytes", "private_bytes", "group_waves",
            "group_threads", "report_count", "report_limit", "last_region", "modelling")),
        ("grid", _U32 * 3), ("block", _U32 * 3),
        *((name, _U32) for name in (
            "arch", "xcds", "schedule", "mode", "entry", "waves_started", "outcome", "outcome_record",
            "named_vgprs", "copied_lanes")),
        ("id_sgprs", _I32 * 3), ("initial_sgprs", _U32 * 128), ("traffic", _U64 * len(TRAFFIC)),
    )  # fmt: skip


_HOST = ctypes.CFUNCTYPE(ctypes.c_uint32)
_REGION = np.dtype(
    [("base", "u8"), ("size", "u8"), ("data", "u8"), ("valid", "u8"), ("writable", "u4"), ("pad", "u4")], align=True
)
_REPORT = np.dtype(
    [("kind", "i4"), ("record", "i4"), ("lane", "i4"), ("wave", "i4"), ("group", "u4", 3), ("other", "u4"),
     ("address", "u8"), ("bytes", "u8")], align=True
)  # fmt: skip


@dataclass(frozen=True)
class Profile:
    """How often each instruction ran, and how many lanes EXEC had switched off meanwhile; by image offset."""

    executions: dict[int, int]
    idle_lanes: dict[int, int]
    atomics_per_address: dict[int, int]
    """Global atomics of lanes for each address; filled where traffic is modelled."""


def available() -> bool:
    """Whether the compiled core can be built or is cached. The first call may take some seconds to build it."""
    return library() is not None


class _Run:
    """The arrays one run needs, kept alive while the core uses them."""

    def __init__(self, launch: Launch, program: Program, numbers: Sequence[int], model: bool) -> None:
        count = len(program.instructions)
        self.launch = launch
        self.program = program
        self.regions = _regions(launch)
        self.times_run = np.zeros(count, np.uint64)
        self.idle_lanes = np.zeros(count, np.uint64)
        self.seen = np.zeros(count, np.uint16)
        self.reports = np.zeros(_REPORT_LIMIT, _REPORT)
        self.groups = np.array(numbers, np.uint32)
        self.histogram = np.zeros((_HISTOGRAM_SLOTS if model else 0, 2), np.uint64)
        self.host = _HOST(launch.host.answer) if launch.host is not None else None
        self.machine = self._machine(model)
        self.machine.host = ctypes.cast(self.host, _P) if self.host is not None else None

    def _machine(self, model: bool) -> _Machine:
        launch, program, descriptor = self.launch, self.program, self.launch.kernel.descriptor
        m = _Machine(
            code=_pointer(program.records), constants=_pointer(program.constants),
            record_at=_pointer(program.record_at), regions=_pointer(self.regions),
            times_run=_pointer(self.times_run), idle_lanes=_pointer(self.idle_lanes),
            seen=_pointer(self.seen), reports=_pointer(self.reports), groups=_pointer(self.groups),
            histogram=_pointer(self.histogram), code_base=launch.code_base, image_dwords=len(program.record_at),
            shared_base=SHARED_APERTURE, private_base=PRIVATE_APERTURE, histogram_slots=len(self.histogram),
            records=len(program.instructions), vgprs=program.vector_rows, region_count=len(self.regions),
            group_count=len(self.groups), lds_bytes=launch.lds_bytes, private_bytes=launch.private_bytes,
            group_waves=launch.waves, group_threads=launch.threads, report_limit=_REPORT_LIMIT, modelling=int(model),
            arch=int(launch.code.arch[3:]), xcds=XCCS, mode=descriptor.mode, entry=program.entry,
            named_vgprs=program.vgprs, copied_lanes=int(launch.copied_lanes),
        )  # fmt: skip
        m.grid[:] = launch.grid
        m.block[:] = launch.block
        m.initial_sgprs[:] = launch.scalar_registers((0, 0, 0))
        place = descriptor.user_sgprs
        for axis, wanted in enumerate(descriptor.workgroup_ids):
            m.id_sgprs[axis] = place if wanted else -1
            place += wanted
        return m


def _pointer(array: npt.NDArray[Any]) -> int:
    return int(array.ctypes.data)


def _regions(launch: Launch) -> npt.NDArray[Any]:
    allocations = sorted(launch.memory, key=lambda a: a.base)
    regions = np.zeros(max(1, len(allocations)), _REGION)
    for row, a in zip(regions, allocations, strict=False):
        valid = 0 if a.initialised is None else _pointer(a.initialised)
        row["base"], row["size"], row["data"], row["valid"] = a.base, a.data.size, _pointer(a.data), valid
        row["writable"] = a.writable
    return regions


def _functions(launch: Launch) -> tuple[int, ...]:
    """Image offsets of the symbols that lie in code: where indirect calls may go."""
    elf = launch.code.elf
    code = [(s.address, s.address + s.size) for s in elf.segments if s.executable]
    inside = {
        s.address for s in elf.symbols.values() if s.address % 4 == 0 and any(a <= s.address < b for a, b in code)
    }
    return tuple(sorted(inside))


def run(
    launch: Launch,
    numbers: Sequence[int],
    schedule: str = "lockstep",
    seed: int = 0,
    budget: int = 20_000_000,
    *,
    model: bool = False,
) -> EmulationResult:
    """Run the workgroups `numbers` (in dispatch order) and say how it went; never raises for what the kernel does.

    `model` also models L2 traffic, LDS bank conflicts and atomics per address, which costs time.
    Raises `RuntimeError` where the compiled core is not available.
    """
    return run_profiled(launch, numbers, schedule, seed, budget, model=model)[0]


def run_profiled(
    launch: Launch, numbers: Sequence[int], schedule: str, seed: int, budget: int, *, model: bool
) -> tuple[EmulationResult, Profile]:
    """`run`, with executions per instruction."""
    core = library()
    if core is None:
        raise RuntimeError("the compiled core is not available")
    program = build_program(core, launch.code.elf.image, launch.code.arch, launch.kernel.entry, _functions(launch))
    order = np.array(numbers, np.uint32)
    if schedule == "reverse":
        order = order[::-1]
    elif schedule == "random":
        order = np.random.default_rng(seed).permutation(order)
    state = _Run(launch, program, order.tolist(), model)
    m = state.machine
    m.schedule, m.seed, m.budget = _SCHEDULES[schedule], seed & (1 << 64) - 1, budget
    core.ws_new_caches.restype = ctypes.c_void_p
    m.caches = core.ws_new_caches(XCCS) if model else None
    try:
        if core.ws_run(ctypes.byref(m)) != 0:
            raise MemoryError("the compiled core could not allocate its waves")
    finally:
        core.ws_free_caches(ctypes.c_void_p(m.caches))
    return _result(state, numbers, model), _profile(state)


def _profile(state: _Run) -> Profile:
    offsets = [pc for pc, _ in state.program.instructions]
    ran = {pc: int(n) for pc, n in zip(offsets, state.times_run, strict=True) if n}
    idle = {pc: int(n) for pc, n in zip(offsets, state.idle_lanes, strict=True) if n}
    return Profile(ran, idle, {int(a): int(n) for a, n in state.histogram if n})


def _result(state: _Run, numbers: Sequence[int], model: bool) -> EmulationResult:
    m, program, launch = state.machine, state.program, state.launch
    status = _STATUSES[m.outcome]
    findings: list[Finding] = []
    trap: Finding | None = None
    missing: str | None = None
    for report in state.reports[: m.report_count]:
        if report["kind"] == _NEEDS:
            missing = _missing(program, report)
            continue
        finding = _finding(state, report)
        findings.append(finding)
        if status == "trapped" and int(report["record"]) == m.outcome_record and report["kind"] in (0, 1, 2, 3, 4, 8):
            trap = finding
    executed = [
        (i, int(n)) for (_, i), n in zip(program.instructions, state.times_run, strict=True) if n and i is not None
    ]
    counters = instruction_counters(executed, m.waves_started)
    counters["lane_atomics"] = m.traffic[TRAFFIC.index("lane_atomics")]
    if model:
        counters |= {name: m.traffic[k] for k, name in enumerate(TRAFFIC)}
        counters["lane_atomics_one_address"] = int(state.histogram[:, 1].max(initial=0))
        counters["valu_idle_lanes"] = sum(
            int(n)
            for (_, i), n in zip(program.instructions, state.idle_lanes, strict=True)
            if n and i is not None and "VALU" in classes_of(i)
        )
    return EmulationResult(
        status=status,
        reason=_reason(status, trap, missing, m.budget),
        trap=trap,
        findings=tuple(findings),
        instructions=m.executed,
        counters=counters,
        workgroups_run=tuple(launch.workgroup(n) for n in numbers),
        workgroups_total=launch.workgroups,
        core="fast",
        unsupported=missing,
    )


def _reason(status: Status, trap: Finding | None, missing: str | None, budget: int) -> str:
    if status == "trapped":
        return str(trap)
    if status == "unsupported":
        return f"The emulator does not implement {missing}."
    if status == "budget":
        return f"The kernel did not end within {budget} wave instructions."
    return (
        f"Waves wait at a barrier that others did not reach in {budget} instructions." if status == "deadlock" else ""
    )


def _missing(program: Program, report: Any) -> str:
    number = int(report["record"])
    if number in program.unsupported:
        return str(program.unsupported[number])
    pc, instruction = program.instructions[number]
    name = instruction.mnemonic if instruction is not None else f"the code at +{pc:#x}"
    return f"{name} with value {int(report['address']):#x}"


def _finding(state: _Run, report: Any) -> Finding:
    kind, number = _KINDS[report["kind"]], int(report["record"])
    pc, instruction = state.program.instructions[number]
    address, size, other = int(report["address"]), int(report["bytes"]), int(report["other"])
    place = state.launch.memory.describe(address) if "global" in kind or kind == "write_to_read_only" else ""
    storing = instruction is not None and any(part in instruction.mnemonic for part in ("store", "write", "atomic"))
    verb = "store" if storing else "load"
    message = {
        "out_of_bounds_global": f"{verb} of {size} bytes at {place}",
        "out_of_bounds_lds": f"access of {size} bytes at byte {address} of LDS ({other} bytes allocated)",
        "out_of_bounds_scratch": f"access of {size} bytes at byte {address} of scratch ({other} bytes per lane)",
        "write_to_read_only": f"store to {place}",
        "misaligned": f"atomic of {size} bytes at {address:#x}, which is not a multiple of {size}",
        "lds_race": f"LDS byte {address} is touched by another wave or lane, and no barrier lies between the accesses",
        "uninitialised_lds": f"read of LDS byte {address}, never written",
        "uninitialised_global": f"load from {place}, never written",
        "trap_instruction": f"jump to {address:#x}, where no function starts"
        if other
        else f"the program called s_trap {address} (an assertion, or abort)",
    }[kind]
    lane = int(report["lane"])
    return Finding(
        kind=kind,
        message=message,
        pc=pc,
        instruction=text(instruction) if instruction is not None else "?",
        workgroup=(int(report["group"][0]), int(report["group"][1]), int(report["group"][2])),
        wave=int(report["wave"]),
        lane=lane if lane >= 0 else None,
        address=address,
    )
