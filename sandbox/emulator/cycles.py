"""How long the arithmetic units of a SIMD are busy with what an emulated run executed: counts weighted by issue rates.

Vector and matrix instructions are added up as if none overlapped, so that work moved from one unit to the other (an
fp32 product as three bf16 products, with the splitting around it) is not counted as saved.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sandbox.target import Target

VECTOR_CYCLES = 4
"""Of a 64-lane vector instruction on a SIMD of 16 lanes (CDNA3 ISA guide, chapter 1)."""
TRANSCENDENTAL_CYCLES = 16
"""exp, log, rcp, rsq, sqrt, sin and cos run at a quarter of the rate (LLVM SISchedule.td, WriteTrans32)."""
_MOPS = 512
"""Multiplications and additions that one count of SQ_INSTS_VALU_MFMA_MOPS_* stands for (AMD counter definitions)."""
_DTYPES = {"F64": "fp64", "F32": "fp32", "XF32": "tf32", "F16": "fp16", "BF16": "bf16", "I8": "int8", "F8": "fp8"}
_OPERATIONS = re.compile(r"SQ_INSTS_VALU_MFMA_MOPS_(\w+)")


def alu_cycles(counters: Mapping[str, int], target: Target) -> float | None:
    """SIMD cycles of all vector and matrix instructions in `counters` (`instruction_counters`).

    None where the rate of a matrix type is not known for the target.
    """
    matrix = 0.0
    board = target.board
    peaks: dict[str, float] = {str(dtype): peak for dtype, peak in board.peak_tflop_per_s.items()}
    for name, count in counters.items():
        if match := _OPERATIONS.fullmatch(name):
            peak = peaks.get(_DTYPES.get(match[1], ""))
            if peak is None:
                return None
            per_simd = peak * 1e3 / (board.compute_units * board.max_clock_ghz * target.simds_per_cu)
            matrix += count * _MOPS / per_simd
    slow = sum(n for name, n in counters.items() if name.startswith("SQ_INSTS_VALU_TRANS_"))
    plain = counters.get("SQ_INSTS_VALU", 0) - counters.get("SQ_INSTS_MFMA", 0) - slow
    return matrix + TRANSCENDENTAL_CYCLES * slow + VECTOR_CYCLES * plain
