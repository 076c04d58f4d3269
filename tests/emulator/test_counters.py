"""Emulated counters against captures of real boards, and their file format."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from compile_corpus import build, find_clang
from corpus.case import Case, HipSource, TritonSource
from corpus.catalogue import all_cases
from corpus.triton_atomics import cases as atomic_cases
from run_corpus import prepare_case

from sandbox.emulator import fast, reference
from sandbox.emulator.counters import EmulatedDispatch, write_counter_collection
from sandbox.emulator.launch import prepare
from sandbox.emulator.loader import load_code_object
from sandbox.emulator.memory import Memory

CAPTURES = json.loads((Path(__file__).parent.parent / "data" / "rocprof_veccopy" / "captures.json").read_text())
COPY = HipSource(Path(__file__).parent / "corpus" / "copy.hip", "vecCopy", (256, 1, 1))
needs_clang = pytest.mark.skipif(find_clang() is None, reason="no clang with the amdgcn back end")
needs_fast = pytest.mark.skipif(not fast.available(), reason="no C compiler")


def copy_launch(arch: str, items: int):
    built = build(Case("", COPY, (1, 1, 1), lambda _: {}, lambda a, b: None), arch)
    memory = Memory()
    a, b, c = (memory.allocate(name, np.zeros(items)) for name in "abc")
    code = load_code_object(built.code)
    return prepare(code, "vecCopy", (items // 256,), (256,), [a, b, c, items, 1], memory)


@needs_clang
@needs_fast
@pytest.mark.parametrize("board", CAPTURES)
def test_instruction_counts_equal_the_real_board(board: str) -> None:
    capture = CAPTURES[board]
    launch = copy_launch(capture["arch"], capture["grid"])
    result = fast.run(launch, range(launch.workgroups), "sequential")
    assert result.clean
    for dispatch in capture["dispatches"]:
        for name, value in dispatch.items():
            if name.startswith(("SQ_WAVES", "SQ_INSTS")):
                assert result.counters.get(name, 0) == value, name


@needs_clang
@needs_fast
def test_modelled_traffic_of_a_copy_is_near_the_real_one() -> None:
    """The model was fitted to this very kernel, so this only guards against breaking it."""
    launch = copy_launch("gfx942", CAPTURES["MI300X"]["grid"])
    counters = fast.run(launch, range(launch.workgroups), "sequential", model=True).counters
    for name in ("TCC_READ_sum", "TCC_WRITE_sum", "TCC_ATOMIC_sum", "SQ_LDS_BANK_CONFLICT"):
        assert counters[name] == pytest.approx(CAPTURES["MI300X"]["dispatches"][0][name], rel=0.03)
    for name in ("TCC_HIT_sum", "TCC_MISS_sum"):
        assert counters[name] == pytest.approx(CAPTURES["MI300X"]["dispatches"][0][name], rel=0.05)


@needs_clang
def test_both_cores_count_the_same() -> None:
    launch = copy_launch("gfx950", 1024)
    slow = reference.run(launch, range(4)).counters
    assert slow["SQ_INSTS_VALU"] == 6 * 16
    assert slow["vector_memory_bytes"] == 2 * 8 * 1024, "each of 1024 doubles is read and written once"
    if fast.available():
        quick = fast.run(launch, range(4)).counters
        assert {name: quick.get(name) for name in slow} == slow


@needs_clang
@needs_fast
def test_file_reads_like_one_of_rocprofv3(tmp_path: Path) -> None:
    from sandbox.profiler.rocprof_csv import read_csv

    launch = copy_launch("gfx942", 4096)
    result = fast.run(launch, range(launch.workgroups), model=True)
    dispatch = EmulatedDispatch(
        launch.kernel, launch.grid, launch.block, launch.lds_bytes, launch.private_bytes, result.counters,
        len(result.workgroups_run),
    )  # fmt: skip
    path = tmp_path / "emulated_counter_collection.csv"
    write_counter_collection(path, [dispatch])
    (read,) = read_csv(path).dispatches
    assert read.kernel.startswith("vecCopy") and read.counters["SQ_WAVES"] == 64
    sources = {line.rsplit(",", 1)[1] for line in path.read_text().splitlines()[1:]}
    assert sources == {'"emulated"', '"modelled"'}


@needs_fast
def test_atomics_are_counted_after_the_compilers_aggregation() -> None:
    """Atomics of 1000 lanes on one address: where Triton merges the lanes of a wave, what remains is what is counted.
    Through buffer instructions it does not merge them."""
    case = next(c for c in atomic_cases() if c.name == "atomic_add_fp32")

    def inputs(arch: str):
        return {**case.inputs(arch), "index": torch.zeros(1000, dtype=torch.int32)}

    assert isinstance(case.source, TritonSource)
    for merging, expected in ((True, 16), (False, 1000)):
        source = replace(case.source, small_pointers=not merging)
        one = Case("one_address", source, case.grid, inputs, case.check)
        launch = prepare_case(one, "gfx942", inputs("gfx942"))
        result, profile = fast.run_profiled(launch, range(4), "sequential", 0, 1 << 30, model=True)
        assert result.counters["lane_atomics"] == expected
        assert max(profile.atomics_per_address.values()) == expected


@needs_fast
def test_matrix_operations_add_up() -> None:
    case = next(c for c in all_cases() if c.name == "matmul_fp16")
    assert isinstance(case.source, TritonSource)
    for arch in case.archs:
        launch = prepare_case(case, arch, case.inputs(arch))
        counters = fast.run(launch, range(launch.workgroups)).counters
        assert counters["SQ_INSTS_VALU_MFMA_MOPS_F16"] * 512 == 2 * 128 * 128 * 64
