"""The state a kernel runs on in the reference core: waves with their registers, and workgroups with their LDS."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sandbox.emulator.hostcall import HostCalls
from sandbox.emulator.instruction import EXEC_LO, M0, VCC_LO, Instruction, Unsupported
from sandbox.emulator.memory import Memory
from sandbox.emulator.result import TRAPPING, Finding, FindingKind, Trapped
from sandbox.emulator.shadow import LdsShadow

LANES = 64
ALL_LANES = (1 << LANES) - 1
VGPRS = 256
"""Rows 0-255 of `Wave.vgpr` are VGPRs, 256-511 AccVGPRs."""

U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

SHARED_APERTURE = 0x0001_0000_0000_0000
PRIVATE_APERTURE = 0x0002_0000_0000_0000
"""Where flat addresses mean LDS and scratch: 4 GiB each, far from every allocation."""


@lru_cache(maxsize=8192)
def lanes_of(mask: int) -> Mask:
    """The lanes whose bit is set in a 64-bit mask, as 64 booleans (read-only)."""
    raw = np.frombuffer(mask.to_bytes(8, "little"), np.uint8)
    lanes = np.unpackbits(raw, bitorder="little").view(np.bool_)
    lanes.flags.writeable = False
    return lanes


def mask_of(lanes: Mask) -> int:
    """The 64-bit mask of 64 booleans."""
    return int.from_bytes(np.packbits(lanes, bitorder="little").tobytes(), "little")


@dataclass(slots=True)
class Scratch:
    """Private memory of one wave: `data[lane, byte]`."""

    data: npt.NDArray[np.uint8]
    size: int


class Wave:
    """64 lanes in step. Scalar registers are Python integers, vector registers rows of 64 dwords."""

    __slots__ = (
        "_active",
        "at_barrier",
        "done",
        "executed",
        "group",
        "index",
        "index_mode",
        "instruction",
        "mode",
        "next_pc",
        "pc",
        "scc",
        "scratch",
        "sgpr",
        "vgpr",
    )

    def __init__(self, group: Workgroup, index: int, mode: int, private_bytes: int) -> None:
        self.group = group
        self.index = index
        self.sgpr = [0] * 128
        self.vgpr: U32 = np.zeros((2 * VGPRS, LANES), np.uint32)
        self.scc = 0
        self.mode = mode
        self.pc = 0
        self.next_pc = 0
        self.instruction: Instruction | None = None
        self.index_mode = False
        """Vector register numbers are offset by M0[7:0], in the operands that M0[15:12] names."""
        self.done = False
        self.at_barrier = False
        self.executed = 0
        self.scratch = Scratch(np.zeros((LANES, private_bytes), np.uint8), private_bytes)
        self._active: Mask | None = None

    @property
    def exec(self) -> int:
        return self.sgpr[EXEC_LO] | self.sgpr[EXEC_LO + 1] << 32

    @property
    def vcc(self) -> int:
        return self.sgpr[VCC_LO] | self.sgpr[VCC_LO + 1] << 32

    @property
    def m0(self) -> int:
        return self.sgpr[M0]

    @property
    def active(self) -> Mask:
        """The lanes EXEC enables."""
        if self._active is None:
            self._active = lanes_of(self.exec)
        return self._active

    def write_sgpr(self, index: int, value: int, dwords: int = 1) -> None:
        """Store the low `32 * dwords` bits of `value` from scalar register `index` on."""
        for k in range(dwords):
            self.sgpr[index + k] = value >> 32 * k & 0xFFFFFFFF
        if index + dwords > EXEC_LO:
            self._active = None

    def read_sgpr(self, index: int, dwords: int = 1) -> int:
        """`dwords` scalar registers from `index` on as one unsigned integer."""
        value = self.sgpr[index]
        for k in range(1, dwords):
            value |= self.sgpr[index + k] << 32 * k
        return value

    def write_vgpr(self, row: int, value: U32) -> None:
        """Store 64 dwords into a row, in the lanes EXEC enables."""
        if self.exec == ALL_LANES:
            self.vgpr[row] = value
        else:
            np.copyto(self.vgpr[row], value, where=self.active)

    def report(self, kind: FindingKind, message: str, lane: int | None = None, address: int | None = None) -> None:
        """Note a finding at the current instruction; raises `Trapped` for the kinds that end a run."""
        self.group.report(self, kind, message, lane, address)


@dataclass(slots=True)
class Findings:
    """Findings of a launch, one per kind and instruction."""

    items: list[Finding] = field(default_factory=list)
    seen: set[tuple[str, int]] = field(default_factory=set)

    def add(self, finding: Finding) -> None:
        if (finding.kind, finding.pc) not in self.seen:
            self.seen.add((finding.kind, finding.pc))
            self.items.append(finding)


class Workgroup:
    """The waves that share one LDS and meet at barriers."""

    def __init__(
        self,
        index: tuple[int, int, int],
        lds_bytes: int,
        memory: Memory,
        findings: Findings,
        code_base: int,
        xcc: int,
        host: HostCalls | None = None,
        copied_lanes: bool = False,
    ) -> None:
        self.index = index
        self.code_base = code_base
        self.xcc = xcc
        """The die it runs on: workgroups are dealt to them in turn."""
        self.memory = memory
        self.host = host
        self.copied_lanes = copied_lanes
        self.findings = findings
        self.lds = np.zeros(lds_bytes, np.uint8)
        self.shadow = LdsShadow(lds_bytes)
        self.waves: list[Wave] = []
        self.clock = 0
        """Wave instructions executed, which is what the time registers read."""

    @property
    def done(self) -> bool:
        return all(w.done for w in self.waves)

    def release_barrier(self) -> bool:
        """Let the waves go on if every one that still runs has arrived; says whether it did."""
        running = [w for w in self.waves if not w.done]
        if not running or not all(w.at_barrier for w in running):
            return False
        for w in running:
            w.at_barrier = False
        self.shadow.next_epoch()
        return True

    def report(self, wave: Wave, kind: FindingKind, message: str, lane: int | None, address: int | None) -> None:
        from sandbox.emulator.disassembly import text

        instruction = wave.instruction
        name = text(instruction) if instruction is not None else "?"
        finding = Finding(kind, message, wave.pc, name, self.index, wave.index, lane, address)
        self.findings.add(finding)
        if kind in TRAPPING:
            raise Trapped(finding)


def unsupported(instruction: Instruction, what: str = "") -> Unsupported:
    """The exception for a modifier or form of `instruction` that is not implemented."""
    return Unsupported(instruction.mnemonic, what)
