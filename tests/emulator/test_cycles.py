"""Busy cycles of the arithmetic units from counts: the rates are those of the target, nothing overlaps."""

from __future__ import annotations

import pytest

from sandbox.emulator.cycles import alu_cycles
from sandbox.target import load_target

GFX950 = load_target("gfx950")


def products(kind: str, operations: int) -> dict[str, int]:
    return {"SQ_INSTS_VALU": 10, "SQ_INSTS_MFMA": 10, f"SQ_INSTS_VALU_MFMA_MOPS_{kind}": operations // 512}


def test_a_matrix_instruction_takes_its_passes() -> None:
    """v_mfma_f32_32x32x16_bf16: 32 x 32 x 16 x 2 operations in 32 cycles of a SIMD (8 passes of 4)."""
    assert alu_cycles(products("BF16", 32 * 32 * 16 * 2), GFX950) == pytest.approx(32, rel=0.01)
    assert alu_cycles(products("F32", 32 * 32 * 2 * 2), GFX950) == pytest.approx(64, rel=0.01)


def test_vector_instructions_add_up_and_slow_ones_count_four_times() -> None:
    counts = {"SQ_INSTS_VALU": 25, "SQ_INSTS_MFMA": 0, "SQ_INSTS_VALU_TRANS_F32": 5}
    assert alu_cycles(counts, GFX950) == 20 * 4 + 5 * 16


def test_unknown_rates_give_no_number() -> None:
    assert alu_cycles(products("XF32", 4096), GFX950) is None
