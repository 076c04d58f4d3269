"""Which hardware counters to read in which pass of rocprofv3, within what each block can count at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import yaml

from sandbox.errors import InputError
from sandbox.target import Target

# Counters that are read as a ratio belong in one pass: each pass is another run of the program, and runs differ.
_GROUPS: tuple[tuple[str, ...], ...] = (
    ("SQ_WAVES", "SQ_WAVE_CYCLES", "SQ_BUSY_CU_CYCLES", "SQ_WAIT_ANY", "SQ_WAIT_INST_ANY", "SQ_ACTIVE_INST_ANY"),
    ("TCC_HIT_sum", "TCC_MISS_sum", "TCC_REQ_sum", "TCC_ATOMIC_sum"),
    ("SQ_INSTS", "SQ_INSTS_VALU", "SQ_INSTS_SALU", "SQ_INSTS_SMEM", "SQ_INSTS_LDS", "SQ_INSTS_MFMA"),
    ("SQ_ACTIVE_INST_VALU", "SQ_THREAD_CYCLES_VALU"),
    ("SQ_LDS_BANK_CONFLICT", "SQ_LDS_IDX_ACTIVE"),
    ("SQ_VALU_MFMA_BUSY_CYCLES",),
    ("SQ_INSTS_VMEM_RD", "SQ_INSTS_VMEM_WR", "SQ_INSTS_FLAT"),
    ("TCP_TCC_READ_REQ_sum", "TCP_TCC_WRITE_REQ_sum", "TCP_TOTAL_CACHE_ACCESSES_sum"),
    ("TA_TOTAL_WAVEFRONTS_sum",),
    ("TCC_EA0_WRREQ_sum", "TCC_EA0_WRREQ_64B_sum"),
    ("TCC_EA0_ATOMIC_sum", "TCC_EA0_ATOMIC_LEVEL_sum"),
    ("TCP_ATOMIC_TAGCONFLICT_STALL_CYCLES_sum", "TCP_GATE_EN1_sum"),
    *(tuple(f"SQ_INSTS_VALU_{name}_{kind}" for name in ("ADD", "MUL", "TRANS", "FMA")) for kind in ("F32", "F16")),
    ("SPI_RA_REQ_NO_ALLOC_CSN", "SPI_RA_VGPR_SIMD_FULL_CSN", "SPI_RA_LDS_CU_FULL_CSN", "SPI_RA_WAVE_SIMD_FULL_CSN"),
    *((f"SQ_INSTS_VALU_MFMA_MOPS_{dtype}",) for dtype in ("F16", "BF16", "F8", "F32", "F64", "I8")),
)
_READS = {
    # TCC_BUBBLE counts 128-byte reads on CDNA3 and stays 0 on CDNA4, which has a counter per request size instead.
    "gfx942": ("TCC_EA0_RDREQ_sum", "TCC_EA0_RDREQ_32B_sum", "TCC_BUBBLE_sum", "TCC_EA0_RDREQ_DRAM_sum"),
    "gfx950": ("TCC_EA0_RDREQ_32B_sum", "TCC_EA0_RDREQ_64B_sum", "TCC_EA0_RDREQ_128B_sum", "TCC_EA0_RDREQ_sum"),
}
_ALWAYS = "GRBM_GUI_ACTIVE"
_BLOCK = re.compile(r"^(SQ|TA|TD|TCP|TCC|CPC|CPF|SPI|GRBM|GDS)C?_")


@dataclass(frozen=True, slots=True)
class Pass:
    """Counters read in one run of the program."""

    counters: tuple[str, ...]

    def input_file(self, kernel_regex: str | None) -> str:
        """The YAML that `rocprofv3 -i` takes."""
        job: dict[str, object] = {"pmc": list(self.counters), "output_format": ["csv"]}
        if kernel_regex is not None:
            job["kernel_include_regex"] = kernel_regex
        return yaml.safe_dump({"jobs": [job]}, sort_keys=False)


def block_of(counter: str) -> str:
    """The hardware block that counts it (`SQ` for SQ and SQC); raises `InputError` for a name of no known block."""
    match = _BLOCK.match(counter)
    if match is None:
        raise InputError(f"{counter!r} is not a hardware counter.", remedy="`rocprofv3-avail` lists the counters.")
    return match[1]


def plan_passes(target: Target, groups: Iterable[Sequence[str]] | None = None) -> tuple[Pass, ...]:
    """Passes that read every group whole, first fit in the order given; the clock `GRBM_GUI_ACTIVE` is in each of them.

    Without `groups`, the counters the bottleneck classifier reads. Raises `InputError` for a group no pass can hold.
    """
    limits = target.counter_blocks
    if not limits:
        raise InputError(f"no counter limits are known for {target.arch}.", remedy="Choose gfx942 or gfx950.")
    wanted = [tuple(g) for g in groups] if groups is not None else [*_GROUPS, _READS.get(target.arch, _READS["gfx942"])]
    passes: list[list[str]] = []
    for group in wanted:
        if not _fits([_ALWAYS, *group], limits):
            raise InputError(
                f"{', '.join(group)} do not fit one pass of {target.arch}.", remedy="Ask for fewer of them at once."
            )
        for held in passes:
            if _fits([*held, *group], limits):
                held += [c for c in group if c not in held]
                break
        else:
            passes.append([_ALWAYS, *(c for c in group if c != _ALWAYS)])
    return tuple(Pass(tuple(held)) for held in passes)


def _fits(counters: Sequence[str], limits: dict[str, int]) -> bool:
    used: dict[str, int] = {}
    for counter in set(counters):
        block = block_of(counter)
        used[block] = used.get(block, 0) + 1
    return all(count <= limits.get(block, 0) for block, count in used.items())
