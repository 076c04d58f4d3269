"""Both cores side by side: the same wave instruction on each, then all registers compared."""

from __future__ import annotations

import ctypes
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from corpus.case import Case
from run_corpus import prepare_case

from sandbox.emulator import fast, reference
from sandbox.emulator.machine import Findings, Wave
from sandbox.emulator.native import library
from sandbox.emulator.program import build_program

APPROXIMATE = ("v_mfma", "v_exp", "v_log", "v_sin", "v_cos", "v_rsq", "v_rcp", "v_sqrt", "v_dot2")
"""Results that may differ in the last bits: order of sums, approximations."""


@dataclass
class Comparison:
    """What a lockstep run saw. `differences` are lines for a person; `approximate` counts tolerated ones."""

    instructions: int = 0
    differences: list[str] = field(default_factory=list)
    approximate: Counter[str] = field(default_factory=Counter)
    mnemonics: Counter[str] = field(default_factory=Counter)


class FastGroup:
    """One workgroup of the fast core, stepped from outside."""

    def __init__(self, case: Case, arch: str, number: int) -> None:
        self.values = case.inputs(arch)
        self.launch = prepare_case(case, arch, self.values)
        core = library()
        assert core is not None
        self.core = core
        self.program = build_program(
            core, self.launch.code.elf.image, arch, self.launch.kernel.entry, fast._functions(self.launch)
        )
        self.run = fast._Run(self.launch, self.program, [number], False)
        self.run.machine.budget = 1 << 62
        core.ws_open.restype = ctypes.c_void_p
        self.group = ctypes.c_void_p(core.ws_open(ctypes.byref(self.run.machine), number))
        self.views: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def step(self, wave: int) -> int:
        return int(self.core.ws_step(self.group, wave))

    def state(self, wave: int) -> tuple[np.ndarray, np.ndarray, int]:
        """Scalar registers, vector rows [row, lane] (AccVGPRs behind the VGPRs) and SCC; views of the core's memory."""
        sgprs, vgprs = ctypes.POINTER(ctypes.c_uint32)(), ctypes.POINTER(ctypes.c_uint32)()
        scc, at = ctypes.c_uint64(), ctypes.c_int64()
        self.core.ws_state(self.group, wave, *(ctypes.byref(x) for x in (sgprs, vgprs, scc, at)))
        if wave not in self.views:  # they stay where they are
            rows = self.program.vector_rows
            flat = np.ctypeslib.as_array(vgprs, (rows * 64,))
            self.views[wave] = np.ctypeslib.as_array(sgprs, (128,)), flat.reshape(rows, 64)
        return *self.views[wave], int(scc.value != 0)

    def close(self) -> None:
        self.core.ws_close(self.group)


def _agrees(mnemonic: str, ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether differing dwords are within the tolerance an approximate instruction has."""
    with np.errstate(all="ignore"):
        if np.isnan(ours.view(np.float32)).all() and np.isnan(theirs.view(np.float32)).all():
            return True  # which NaN an invalid operation gives is the host's choice
    if not mnemonic.startswith(APPROXIMATE):
        return False
    a, b = ours.view(np.float32).astype(np.float64), theirs.view(np.float32).astype(np.float64)
    with np.errstate(all="ignore"):
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=1e-30)
        return bool(np.allclose(a, b, rtol=1e-5, atol=1e-6 * scale, equal_nan=True)) or mnemonic.endswith("f64")


def _compare(reference_wave: Wave, group: FastGroup, mnemonic: str, rows: np.ndarray, out: Comparison) -> None:
    sgprs, vgprs, scc = group.state(reference_wave.index)
    theirs = reference_wave.vgpr[rows]
    ours = vgprs[: len(rows)]
    if not np.array_equal(ours, theirs):
        differing = np.argwhere(ours != theirs)
        part = ours != theirs
        if _agrees(mnemonic, ours[part], theirs[part]):
            out.approximate[mnemonic] += 1
        else:
            row, lane = differing[0]
            out.differences.append(
                f"+{reference_wave.pc:#x} {mnemonic}: row {row} lane {lane}: {ours[row, lane]:#x}, reference "
                f"{theirs[row, lane]:#x} ({len(differing)} dwords)"
            )
        ours[...] = theirs
    for k, value in enumerate(sgprs.tolist()) if sgprs.tolist() != reference_wave.sgpr else ():
        if value != reference_wave.sgpr[k]:
            out.differences.append(f"{mnemonic}: s{k} {value:#x}, reference {reference_wave.sgpr[k]:#x}")
            sgprs[k] = reference_wave.sgpr[k]
    if scc != reference_wave.scc:
        out.differences.append(f"{mnemonic}: scc {scc}, reference {reference_wave.scc}")


def compare_cores(case: Case, arch: str, number: int, limit: int) -> Comparison:
    """Run workgroup `number` on both cores, at most `limit` instructions, waves in turn."""
    theirs_values = case.inputs(arch)
    launch = prepare_case(case, arch, theirs_values)
    core = reference.Core(launch, 1 << 60)
    group = reference._start(launch, number, Findings())
    mine = FastGroup(case, arch, number)
    accumulators = mine.program.vector_rows - 2
    vgprs = _vgpr_count(mine)
    rows = np.array([*range(vgprs), *range(256, 256 + accumulators - vgprs)])
    out = Comparison()
    try:
        with np.errstate(all="ignore"):
            while not group.done and out.instructions < limit and len(out.differences) < 20:
                ready = [w for w in group.waves if not (w.done or w.at_barrier)]
                if not ready:
                    group.release_barrier()
                    continue
                for wave in ready:
                    core.advance(wave, 1)
                    mine.step(wave.index)
                    assert wave.instruction is not None
                    mnemonic = wave.instruction.mnemonic
                    out.instructions += 1
                    out.mnemonics[mnemonic] += 1
                    _compare(wave, mine, mnemonic, rows, out)
    finally:
        mine.close()
    return out


def _vgpr_count(group: FastGroup) -> int:
    from sandbox.emulator.program import _vector_registers

    return _vector_registers([i for _, i in group.program.instructions if i is not None])[0]
