"""Single instructions on both cores: random operands, modifiers and EXEC, all registers compared afterwards."""

from __future__ import annotations

import ctypes
import random
from dataclasses import replace

import numpy as np

from sandbox.emulator import fast
from sandbox.emulator.instruction import Dpp, Instruction, Operand, Sdwa, Unsupported
from sandbox.emulator.machine import LANES, Wave
from sandbox.emulator.native import library
from sandbox.emulator.records import RECORD_BYTES, Translator, operations
from sandbox.emulator.reference import build_step

ROWS = 256
FLOATS = ("f16", "f32", "f64")
DPP_CONTROLS = (0x1B, 0xB1, 0x101, 0x113, 0x12F, 0x130, 0x134, 0x138, 0x13C, 0x140, 0x141, 0x142, 0x143, 0x157)


def with_modifiers(i: Instruction, draw: random.Random, properties: frozenset[str]) -> Instruction:
    """The instruction with random modifiers of one form; what a form does not allow is refused later by both cores."""
    roll = draw.random()
    if roll < 0.4 or i.encoding.startswith("SOP"):
        return i
    floats = [n for n, o in enumerate(i.src) if o.type in FLOATS]
    signs = {"neg": sum(draw.getrandbits(1) << n for n in floats), "abs": sum(draw.getrandbits(1) << n for n in floats)}
    if i.encoding == "VOP3P":
        half = {"op_sel": draw.getrandbits(len(i.src)), "op_sel_hi": draw.getrandbits(len(i.src))}
        both = {"neg": draw.getrandbits(len(i.src)), "neg_hi": draw.getrandbits(len(i.src))}
        return replace(i, **half, **(both if draw.random() < 0.5 else {}), clamp=draw.random() < 0.3)
    if roll < 0.55 and "dpp" in properties:
        dpp = Dpp(draw.choice(DPP_CONTROLS), draw.choice([15, 15, 10]), draw.choice([15, 15, 3]), draw.random() < 0.5)
        return replace(i, dpp=dpp, **signs)
    if roll < 0.7 and "sdwa" in properties:
        selectors = (draw.randrange(7), draw.randrange(7))
        narrow = 6 if i.encoding == "VOPC" else draw.randrange(7)
        sdwa = Sdwa(narrow, draw.randrange(3), selectors, (draw.random() < 0.3, draw.random() < 0.3))
        return replace(i, sdwa=sdwa, **signs)
    result = i.dst[0].type if i.dst else ""
    omod = draw.randrange(4) if result in FLOATS and draw.random() < 0.3 else 0
    op_sel = draw.getrandbits(4) if draw.random() < 0.4 else 0
    return replace(i, encoding="VOP3", **signs, clamp=draw.random() < 0.3, omod=omod, op_sel=op_sel)


class FastWave:
    """One wave of the fast core with a program of one instruction."""

    def __init__(self, i: Instruction, arch: str, mode: int) -> None:
        core = library()
        assert core is not None
        self.core = core
        translator = Translator(operations(core), ROWS)
        end = Instruction("s_endpgm", "SOPP", 1, 4)
        data = translator.record(0, 0, i, 1) + translator.record(1, 8, end, -1)
        self.unsupported = translator.unsupported.get(0)
        self.records = np.frombuffer(data, np.uint8).copy()
        assert len(self.records) == 2 * RECORD_BYTES
        core.ws_bind(ctypes.c_void_p(self.records.ctypes.data), ctypes.c_uint32(2))
        self.constants = translator.constant_lanes()
        self.arrays = [np.zeros(64, np.uint64) for _ in range(4)]
        regions, reports = np.zeros(1, fast._REGION), np.zeros(4, fast._REPORT)
        self.arrays += [regions.view(np.uint64), reports.view(np.uint64)]
        self.machine = fast._Machine(
            code=self.records.ctypes.data, constants=self.constants.ctypes.data, record_at=self.arrays[0].ctypes.data,
            times_run=self.arrays[1].ctypes.data, idle_lanes=self.arrays[2].ctypes.data,
            seen=self.arrays[3].ctypes.data, regions=regions.ctypes.data, reports=reports.ctypes.data, records=2,
            vgprs=2 * ROWS, group_count=1, group_waves=1, group_threads=LANES, report_limit=4, arch=int(arch[3:]),
            xcds=8, mode=mode, budget=1 << 40,
        )  # fmt: skip
        self.machine.grid[:] = self.machine.block[:] = (1, 1, 1)
        self.machine.block[0] = LANES
        self.machine.id_sgprs[:] = (-1, -1, -1)
        core.ws_open.restype = ctypes.c_void_p
        self.group = ctypes.c_void_p(core.ws_open(ctypes.byref(self.machine), 0))

    def run(self, wave: Wave) -> tuple[np.ndarray, np.ndarray, int, bool]:
        """Take over a reference wave, run the instruction; registers, rows, SCC, and whether it trapped."""
        sgprs, vgprs = ctypes.POINTER(ctypes.c_uint32)(), ctypes.POINTER(ctypes.c_uint32)()
        scc, at = ctypes.c_uint64(), ctypes.c_int64()
        pointers = [ctypes.byref(x) for x in (sgprs, vgprs, scc, at)]
        self.core.ws_state(self.group, 0, *pointers)
        s, v = np.ctypeslib.as_array(sgprs, (128,)), np.ctypeslib.as_array(vgprs, (2 * ROWS * LANES,))
        s[:] = wave.sgpr
        v.reshape(2 * ROWS, LANES)[:] = wave.vgpr
        self.core.ws_set_scc(self.group, 0, wave.scc)
        status = self.core.ws_step(self.group, 0)
        self.core.ws_state(self.group, 0, *pointers)
        return s.copy(), v.reshape(2 * ROWS, LANES).copy(), int(scc.value), status == 3

    def close(self) -> None:
        self.core.ws_close(self.group)


def reference_step(i: Instruction, wave: Wave, arch: str) -> bool:
    """Run the instruction on the reference core; False where it does not implement it."""
    try:
        with np.errstate(all="ignore"):
            step = build_step(i, arch)
            wave.instruction = i
            step(wave)
    except Unsupported:
        return False
    return True


def result_bits(rows: np.ndarray, o: Operand, lane: int) -> int:
    return sum(int(rows[o.index + k, lane]) << 32 * k for k in range(o.dwords))
