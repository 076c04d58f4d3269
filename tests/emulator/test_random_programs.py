"""A seeded sample of random programs: host and emulated GPU agree bit for bit.

More of them by hand: benchmarks/emulator_random.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from compile_corpus import find_clang
from random_programs import differences

from sandbox.emulator import fast

pytestmark = pytest.mark.skipif(
    find_clang() is None or not fast.available(), reason="no clang with the amdgcn back end, or no C compiler"
)


@pytest.mark.parametrize("start", [0, 8, 16])
def test_random_programs_agree_with_the_host(start: int, tmp_path: Path) -> None:
    assert not differences(range(start, start + 8), ("gfx942", "gfx950"), tmp_path)
