"""A difference between host and emulated GPU that is LLVM's: a selection that becomes a minimum, and a zero's sign."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from random_programs import device_results, find_clang, host_results, source
from zero_signs import code_of, frozen, lost_by_a_minimum

from sandbox.emulator import fast, reference
from sandbox.emulator.launch import prepare
from sandbox.emulator.loader import load_code_object
from sandbox.emulator.memory import Memory

pytestmark = pytest.mark.skipif(
    find_clang() is None or not fast.available(), reason="needs clang with the amdgcn back end and a C compiler"
)
LOST = 1950
"""The random program that shows it."""
SMALLEST = """
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @negative_part(ptr addrspace(1) %at) {
  %x = load double, ptr addrspace(1) %at
  %less = fcmp olt double %x, 0.0
  %y = select i1 %less, double %x, double 0.0
  store double %y, ptr addrspace(1) %at
  ret void
}
"""


def negative_part(ir: str, x: float, core: str, folder: Path) -> float:
    """What the kernel of `SMALLEST` makes of `x`."""
    code, memory, at = load_code_object(code_of(ir, "gfx950", folder)), Memory(), np.array([x])
    launch = prepare(code, "negative_part", (1,), (1,), [memory.allocate("at", at)], memory)
    assert (fast.run if core == "fast" else reference.run)(launch, [0]).clean
    return float(at[0])


@pytest.mark.parametrize("core", ["fast", "reference"])
def test_a_selection_from_zero_loses_the_sign_that_the_comparison_gives(core: str, tmp_path: Path) -> None:
    assert np.signbit(negative_part(frozen(SMALLEST), -0.0, core, tmp_path)) == np.False_, "-0 < 0 is false: +0"
    assert negative_part(frozen(SMALLEST), -2.0, core, tmp_path) == -2.0
    if not np.signbit(negative_part(SMALLEST, -0.0, core, tmp_path)):
        pytest.skip("this LLVM has the fix")
    assert negative_part(SMALLEST, -2.0, core, tmp_path) == -2.0, "only zero's sign differs"


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_the_random_program_that_differs_is_lost_by_a_minimum(arch: str, tmp_path: Path) -> None:
    programs = {LOST: source(LOST)}
    expected = host_results(programs, tmp_path)[LOST]
    if (device_results(programs, arch, tmp_path)[LOST] == expected).all():
        pytest.skip("this LLVM has the fix")
    assert lost_by_a_minimum(LOST, arch, tmp_path, expected)
    assert not lost_by_a_minimum(LOST, arch, tmp_path, expected ^ np.uint64(1)), "another difference is not excused"
