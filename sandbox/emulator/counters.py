"""Counters named as rocprofv3 names them, and a file of them in the shape of its counter_collection.csv.

SQ_* counters are counted: exact for what was executed. TCC_* and SQ_LDS_BANK_CONFLICT come from a model of the caches
and banks. No counter of cycles is written, because an emulator that knows no time would have to invent them. Names in
lower case are our own.

Which instruction adds to which counter follows the public captures of one kernel (vecCopy on MI300X, MI300A and MI350)
as far as that kernel goes, and the counters' descriptions beyond it.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sandbox.emulator.instruction import Instruction
from sandbox.emulator.loader import KernelInfo
from sandbox.profiler.amdgcn import classify

_BRANCHES = ("s_branch", "s_cbranch", "s_setpc", "s_swappc", "s_call")
_SALU = frozenset({"SOP1", "SOP2", "SOPC", "SOPK"})
_VALU = frozenset({"VOP1", "VOP2", "VOPC", "VOP3", "VOP3P", "MAI"})
_FLAT = frozenset({"FLAT", "GLOBAL", "SCRATCH"})
_FENCES = frozenset({"buffer_inv", "buffer_wbl2"})
_MESSAGES = frozenset({"s_endpgm", "s_sendmsg", "s_sendmsghalt"})
"""The captures count one message for each wave, which is its end."""

_FLOAT_OPERATION = re.compile(r"v_(?:pk_)?(add|sub|subrev|mul|fma|fmac|fmamk|fmaak|mac|mad)_(?:mix\w*_)?(f16|f32|f64)$")
_TRANSCENDENTAL = re.compile(r"v_(?:exp|log|rcp|rsq|sqrt|sin|cos)(?:_iflag|_legacy)?_(f16|f32|f64)$")
_KINDS = {"add": "ADD", "sub": "ADD", "subrev": "ADD", "mul": "MUL"}
_MATRIX = re.compile(
    r"v_(?:mfma|smfmac)_(?:scale_)?(?:f32|i32|f64)_(\d+)x\d+x(\d+)(?:_(\d+)b)?_(xf32|bf16|f16|f32|f64|i8|bf8|fp8|f8f6f4)"
)
_MATRIX_TYPES = {"fp8": "F8", "bf8": "F8", "f8f6f4": "F6F4"}
_MOPS = 512
"""Multiplications and additions that one count of SQ_INSTS_VALU_MFMA_MOPS_* stands for."""
_LANES = 64

MODELLED = frozenset(
    {"TCC_READ_sum", "TCC_WRITE_sum", "TCC_ATOMIC_sum", "TCC_HIT_sum", "TCC_MISS_sum", "SQ_LDS_BANK_CONFLICT"}
)
"""Counters that come from a model; all others are counted."""


def _matrix_classes(mnemonic: str) -> dict[str, int]:
    match = _MATRIX.match(mnemonic)
    if match is None:
        return {}
    m, k, blocks = int(match[1]), int(match[2]), int(match[3] or 1)
    kind = _MATRIX_TYPES.get(match[4], match[4].upper())
    return {"MFMA": 1, f"VALU_MFMA_{kind}": 1, f"VALU_MFMA_MOPS_{kind}": 2 * m * m * k * blocks // _MOPS}


def _vector_classes(mnemonic: str) -> dict[str, int]:
    if mnemonic.startswith(("v_mfma", "v_smfmac")):
        return _matrix_classes(mnemonic)
    if m := _FLOAT_OPERATION.match(mnemonic):
        return {f"VALU_{_KINDS.get(m[1], 'FMA')}_{m[2].upper()}": 1}
    if m := _TRANSCENDENTAL.match(mnemonic):
        return {f"VALU_TRANS_{m[1].upper()}": 1}
    if mnemonic.startswith("v_cvt_"):
        return {"VALU_CVT": 1}
    if mnemonic.endswith(("_u32", "_i32")):
        return {"VALU_INT32": 1}
    return {"VALU_INT64": 1} if mnemonic.endswith(("_u64", "_i64")) else {}


def _memory_classes(i: Instruction) -> dict[str, int]:
    if i.mnemonic in _FENCES:
        return {}
    reads = "_load_" in i.mnemonic or ("_atomic_" in i.mnemonic and bool(i.dst))
    flat = {"FLAT": 1} if i.encoding in _FLAT else {}
    return {"VMEM": 1, "VMEM_RD" if reads else "VMEM_WR": 1, **flat}


@lru_cache(maxsize=4096)
def classes_of(i: Instruction) -> Mapping[str, int]:
    """What one execution of an instruction adds to the SQ_INSTS_* counters, without the prefix."""
    if i.encoding in _VALU:
        return {"VALU": 1, **_vector_classes(i.mnemonic)}
    if i.mnemonic.startswith(_BRANCHES):
        return {"BRANCH": 1}
    if i.encoding in _SALU:
        return {"SALU": 1}
    if i.encoding == "SMEM":
        return {"SMEM": 1}
    if i.encoding == "DS":
        return {"LDS": 1}
    if i.encoding in _FLAT or i.encoding == "MUBUF":
        return _memory_classes(i)
    return {"SENDMSG": 1} if i.mnemonic in _MESSAGES else {}


@lru_cache(maxsize=4096)
def bytes_of(i: Instruction) -> int:
    """What the loads and stores of a whole wave move, its scratch included; atomics and LDS are not among them."""
    kind, width = classify(i.mnemonic)
    return _LANES * width if kind in ("global_load", "global_load_lds", "global_store", "scratch") else 0


ALWAYS = ("VALU", "MFMA", "SALU", "SMEM", "LDS", "FLAT", "VMEM", "VMEM_RD", "VMEM_WR", "BRANCH")
"""SQ_INSTS_* counters that are given even where they are zero."""


def instruction_counters(executed: Iterable[tuple[Instruction, int]], waves: int) -> dict[str, int]:
    """SQ_WAVES, SQ_INSTS (all), SQ_INSTS_* and vector_memory_bytes from pairs of instruction and number of executions.

    `vector_memory_bytes` adds up `bytes_of`: every lane counts, whether or not it was masked.
    """
    counts: Counter[str] = Counter({"SQ_WAVES": waves, "SQ_INSTS": 0, "vector_memory_bytes": 0})
    for name in ALWAYS:
        counts[f"SQ_INSTS_{name}"] = 0
    for instruction, times in executed:
        counts["SQ_INSTS"] += times
        counts["vector_memory_bytes"] += bytes_of(instruction) * times
        for name, step in classes_of(instruction).items():
            counts[f"SQ_INSTS_{name}"] += step * times
    return dict(counts)


COLUMNS = (
    "Correlation_Id", "Dispatch_Id", "Agent_Id", "Queue_Id", "Process_Id", "Thread_Id", "Grid_Size", "Kernel_Id",
    "Kernel_Name", "Workgroup_Size", "LDS_Block_Size", "Scratch_Size", "VGPR_Count", "Accum_VGPR_Count", "SGPR_Count",
    "Counter_Name", "Counter_Value", "Start_Timestamp", "End_Timestamp", "Source",
)  # fmt: skip
"""Header of rocprofv3's counter_collection.csv, and `Source`: `emulated` for what was counted, `modelled` otherwise."""


@dataclass(frozen=True)
class EmulatedDispatch:
    """One emulated launch as a row group of the file. `workgroups_run` may be fewer than the grid has."""

    kernel: KernelInfo
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lds_bytes: int
    scratch_bytes_per_item: int
    counters: Mapping[str, int]
    workgroups_run: int

    @property
    def workgroups(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]


def _rows(number: int, d: EmulatedDispatch) -> Iterable[dict[str, object]]:
    metadata, threads = d.kernel.metadata, d.block[0] * d.block[1] * d.block[2]
    agprs = metadata.get(".agpr_count", 0)
    common: dict[str, object] = {
        "Correlation_Id": number,
        "Dispatch_Id": number,
        "Agent_Id": "emulator",
        "Queue_Id": 0,
        "Process_Id": 0,
        "Thread_Id": 0,
        "Grid_Size": d.workgroups * threads,
        "Kernel_Id": number,
        "Kernel_Name": d.kernel.name,
        "Workgroup_Size": threads,
        "LDS_Block_Size": d.lds_bytes,
        "Scratch_Size": d.scratch_bytes_per_item,
        "VGPR_Count": metadata.get(".vgpr_count", 0) - agprs,
        "Accum_VGPR_Count": agprs,
        "SGPR_Count": metadata.get(".sgpr_count", 0),
        "Start_Timestamp": 0,
        "End_Timestamp": 0,
    }
    for name, value in sorted({**d.counters, "workgroups_run": d.workgroups_run}.items()):
        source = "modelled" if name in MODELLED else "emulated"
        yield {**common, "Counter_Name": name, "Counter_Value": f"{value:.6f}", "Source": source}


def write_counter_collection(path: Path, dispatches: Iterable[EmulatedDispatch]) -> None:
    """Write the counters of launches as rocprofv3 would, one row for each dispatch and counter.

    Values are those of the workgroups that ran (`workgroups_run`): nothing is scaled up to the grid.
    """
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, quoting=csv.QUOTE_NONNUMERIC)
        writer.writeheader()
        for number, dispatch in enumerate(dispatches, 1):
            writer.writerows(_rows(number, dispatch))
