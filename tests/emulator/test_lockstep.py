"""The fast core and the numpy core agree instruction by instruction, registers compared after each."""

from __future__ import annotations

from collections import Counter

import pytest
from compile_corpus import find_clang
from corpus.case import HipSource
from corpus.catalogue import all_cases
from lockstep import compare_cores

from sandbox.emulator import fast

LIMIT = 250
"""Instructions of each kernel: the first workgroup, all of its waves in turn."""
WHOLE = tuple(
    f"hip_{name}" for name in ("division", "half_packed", "integer_tricks", "long_math", "conversions", "short_packed")
)
"""Kernels compared to their end, because they are short and dense."""

pytestmark = pytest.mark.skipif(not fast.available(), reason="no C compiler")


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_cores_agree(arch: str) -> None:
    instructions, mnemonics, differences = 0, Counter[str](), []
    for case in all_cases():
        if arch not in case.archs or (isinstance(case.source, HipSource) and find_clang() is None):
            continue
        compared = compare_cores(case, arch, 0, 5000 if case.name in WHOLE else LIMIT)
        instructions += compared.instructions
        mnemonics += compared.mnemonics
        differences += [f"{case.name}: {line}" for line in compared.differences]
    assert not differences, "\n".join(differences[:20])
    if find_clang() is not None:
        assert instructions > 25_000 and len(mnemonics) > 300
