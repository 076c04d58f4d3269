"""What a run of the emulator says: how it ended, what it counted and what it found. Shared by both cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["completed", "trapped", "unsupported", "budget", "deadlock"]
"""`completed` every chosen workgroup ended; `trapped` it did something forbidden (see `trap`); `unsupported` it needs
an instruction or modifier that is not implemented; `budget` the instruction budget ran out; `deadlock` waves wait for a
barrier that others will never reach. Only the first two say anything about the kernel's correctness."""

FindingKind = Literal[
    "out_of_bounds_global",
    "out_of_bounds_lds",
    "out_of_bounds_scratch",
    "write_to_read_only",
    "misaligned",
    "lds_race",
    "uninitialised_lds",
    "uninitialised_global",
    "trap_instruction",
]

TRAPPING: frozenset[str] = frozenset(
    {
        "out_of_bounds_global",
        "out_of_bounds_lds",
        "out_of_bounds_scratch",
        "write_to_read_only",
        "misaligned",
        "trap_instruction",
    }
)
"""Findings that end the run. The others are noted, once per kind and instruction, and the run goes on."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong with the program. `pc` is the image offset of the instruction, `lane` the first one concerned."""

    kind: FindingKind
    message: str
    pc: int
    instruction: str
    workgroup: tuple[int, int, int]
    wave: int
    lane: int | None = None
    address: int | None = None
    source: str | None = None
    """`file:line` of the instruction, where the code object carries line numbers."""

    def __str__(self) -> str:
        lane = "" if self.lane is None else f", lane {self.lane}"
        place = f"workgroup {self.workgroup}, wave {self.wave}{lane}"
        source = f"{self.source}: " if self.source else ""
        return f"{source}{self.kind}: {self.message} ({self.instruction} at +{self.pc:#x}; {place})"


class Trapped(Exception):  # noqa: N818 - ends the run with status `trapped`
    """Raised by a core to end the run because of a finding."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        super().__init__(str(finding))


@dataclass(frozen=True)
class EmulationResult:
    """The outcome of one launch. Buffers hold what was written up to the end, whatever the status.

    `instructions` counts wave instructions. `counters` are named as rocprofv3 names them. `workgroups_run` are the
    workgroups that were executed, `workgroups_total` those of the grid: outputs of the others were not written.
    """

    status: Status
    reason: str = ""
    """One sentence where the status is not `completed`."""
    trap: Finding | None = None
    findings: tuple[Finding, ...] = ()
    instructions: int = 0
    counters: Mapping[str, int] = field(default_factory=dict)
    workgroups_run: tuple[tuple[int, int, int], ...] = ()
    workgroups_total: int = 0
    core: str = "reference"
    unsupported: str | None = None
    """Mnemonic (and modifier) that was missing, where the status is `unsupported`."""
    printed: tuple[str, ...] = ()
    """What the kernel printed, one text for each lane's call, as far as it was kept."""

    @property
    def completed(self) -> bool:
        return self.status == "completed"

    @property
    def clean(self) -> bool:
        """It ended, and nothing was found."""
        return self.completed and not self.findings
