"""A difference between host and emulated GPU that is LLVM's, shown without the emulator: device IR run on the host."""

from __future__ import annotations

import ctypes
import math
from pathlib import Path

import pytest
from random_programs import device_results, host_results, source
from structurizer import (
    LARGE,
    OPT,
    compiled_for_the_host,
    find_clang,
    for_the_host,
    lost_by_the_structurizer,
    structurised,
)

from sandbox.emulator import fast

pytestmark = pytest.mark.skipif(
    find_clang() is None or OPT is None or not fast.available(), reason="needs clang, opt-22 and a C compiler"
)
REDUCED = Path(__file__).parent / "corpus" / "structurizer.ll"
LOST = 1752
"""The random program that shows it."""
WAYS = (0, 3, 4)


def choose(ir: str, poison: int | None, folder: Path) -> list[int]:
    """The function of the reduced case for an infinite double, for each way through its switch."""
    library = compiled_for_the_host(for_the_host(ir, poison), folder, f"reduced_{poison}_{len(ir)}")
    return [library.choose(way, ctypes.c_double(math.inf), 5) for way in WAYS]


def test_the_structurizer_makes_a_defined_result_depend_on_poison(tmp_path: Path) -> None:
    before = REDUCED.read_text()
    assert "poison" not in before and choose(before, None, tmp_path) == [7, 7, 7]
    after = structurised(before, "gfx942")
    if choose(after, 0, tmp_path) == [7, 7, 7]:
        pytest.skip("this LLVM has the fix")
    assert choose(after, 0, tmp_path) == [7, 7, 5], "the value of the default block is lost"
    assert choose(after, LARGE, tmp_path) == [7, 7, 7], "with another number for poison the result is another"


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_the_random_program_that_differs_is_lost_by_the_structurizer(arch: str, tmp_path: Path) -> None:
    programs = {LOST: source(LOST)}
    expected = host_results(programs, tmp_path)[LOST]
    if (device_results(programs, arch, tmp_path)[LOST] == expected).all():
        pytest.skip("this LLVM has the fix")
    assert lost_by_the_structurizer(LOST, arch, tmp_path, expected)


def test_a_program_that_agrees_does_not_depend_on_poison(tmp_path: Path) -> None:
    expected = host_results({1000: source(1000)}, tmp_path)[1000]
    assert not lost_by_the_structurizer(1000, "gfx950", tmp_path, expected)
