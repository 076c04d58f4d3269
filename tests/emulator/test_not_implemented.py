"""The list of what is not implemented is complete, and holds nothing that compilers need for arithmetic."""

from __future__ import annotations

import pytest
from opcode_sweep import LIST, LLVM_MC, overview, sweep

from sandbox.emulator import fast
from sandbox.emulator.opcodes import ARCHS, mnemonics

pytestmark = pytest.mark.skipif(LLVM_MC is None or not fast.available(), reason="needs llvm-mc-22 and a C compiler")


def test_the_list_is_what_a_sweep_over_all_opcodes_finds() -> None:
    assert LIST.read_text() == overview(), "run tests/emulator/opcode_sweep.py"


@pytest.mark.parametrize("arch", ARCHS)
def test_matrix_products_and_conversions_are_all_there(arch: str) -> None:
    known, missing = sweep(arch)
    assert mnemonics(arch) <= known, "the sweep reaches every opcode of the emulator's own table"
    families = (
        "v_mfma",
        "v_smfmac",
        "v_dot",
        "v_cvt",
        "v_pk_",
        "v_accvgpr",
        "global_",
        "flat_",
        "scratch_",
        "ds_read_b",
    )
    lacking = {m for m in missing if m.startswith(families)}
    assert lacking <= {"v_mfma_ld_scale_b32", "v_cvt_pkaccum_u8_f32"}, "half of an instruction; of no compiler"
