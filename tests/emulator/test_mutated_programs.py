"""Mutated kernels in both cores: whatever the bytes say, a run ends with a result, within its budget."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from run_corpus import prepare_case

from sandbox.emulator import fast, reference
from sandbox.emulator.launch import Launch

STATUSES = {"completed", "trapped", "unsupported", "budget", "deadlock"}
CASES = ("add_float32", "online_softmax", "matmul_fp16", "hip_block_reduce", "hip_recursion")


def mutated(launch: Launch, draw: random.Random) -> Launch:
    """The same launch with some bytes of its code changed."""
    image, code = bytearray(launch.code.elf.image), next(s for s in launch.code.elf.segments if s.executable)
    end = min(code.address + code.size, launch.kernel.entry + 3000)
    for _ in range(draw.choice([1, 3, 10, 40])):
        where = draw.randrange(launch.kernel.entry, end)
        image[where] = draw.choice([draw.randrange(256), image[where] ^ 1 << draw.randrange(8)])
    return replace(launch, code=replace(launch.code, elf=replace(launch.code.elf, image=bytes(image))))


@pytest.mark.parametrize("core", ["reference", "fast"])
def test_any_program_ends_with_a_result(core: str) -> None:
    from corpus.catalogue import all_cases

    if core == "fast" and not fast.available():
        pytest.skip("needs a C compiler")
    cases = {case.name: case for case in all_cases() if case.name in CASES}
    runner, draw, seen = (fast.run if core == "fast" else reference.run), random.Random(17), set()
    for k in range(60):
        case = cases[draw.choice(sorted(cases))]
        launch = prepare_case(case, draw.choice(case.archs), case.inputs("gfx942"))
        with np.errstate(all="raise"):  # the core must not depend on the caller's floating-point settings
            result = runner(mutated(launch, draw), [0], draw.choice(reference.SCHEDULES), k, 1500)
        assert result.status in STATUSES
        assert result.instructions <= 1500
        assert result.completed or result.reason
        seen.add(result.status)
    assert len(seen) >= 3
