"""The emulator finds what ported code gets wrong: races, bounds, wave width, loops without end."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from compile_corpus import find_clang
from corpus.case import Case, HipSource, Values, randint
from run_corpus import run_case

from sandbox.emulator import fast, reference
from sandbox.emulator.memory import Memory
from sandbox.emulator.result import EmulationResult

SOURCE = Path(__file__).parent / "corpus" / "defects.hip"
SCHEDULES = ("lockstep", "sequential", "reverse", "random")
CORES = ("fast", "reference")
ARCHS = ("gfx942", "gfx950")
everywhere = pytest.mark.parametrize(
    ("core", "schedule", "arch"), [(c, s, a) for c in CORES for s in SCHEDULES for a in ARCHS]
)
"""What is wrong in every order of waves is found in every order, on both cores and for both architectures."""
pytestmark = pytest.mark.skipif(find_clang() is None, reason="no clang with the amdgcn back end")


def run(
    kernel: str, values: Values, *, core: str = "fast", schedule: str = "sequential", block: int = 64,
    grid: int = 1, arch: str = "gfx942", budget: int = 20_000_000, monkeypatch: pytest.MonkeyPatch | None = None,
    copied_lanes: bool = False,
) -> tuple[EmulationResult, Values]:  # fmt: skip
    if core == "fast" and not fast.available():
        pytest.skip("no C compiler")
    if monkeypatch:
        monkeypatch.setattr("run_corpus.BUDGET", budget)
    case = Case(kernel, HipSource(SOURCE, kernel, (block, 1, 1)), (grid, 1, 1), lambda _: values, lambda a, b: None)
    return run_case(case, arch, schedule, core, copied_lanes=copied_lanes)


def numbers(count: int) -> Values:
    return {"x": randint(1, 50, count), "out": torch.zeros(count, dtype=torch.int32)}


@everywhere
@pytest.mark.parametrize("kernel", ["ballot_of_32", "reduction_of_32"])
def test_code_for_32_lanes_gives_wrong_sums(kernel: str, core: str, schedule: str, arch: str) -> None:
    values = {"x": randint(1, 50, 128), "out": torch.zeros(1, dtype=torch.int32)}
    result, after = run(kernel, values, core=core, schedule=schedule, arch=arch, block=128)
    right = 128 if kernel == "ballot_of_32" else int(values["x"].sum())
    assert result.clean and 0 < int(after["out"][0]) < right


@everywhere
def test_lds_overrun(core: str, schedule: str, arch: str) -> None:
    result, _ = run("lds_overrun", numbers(64), core=core, schedule=schedule, arch=arch)
    assert result.status == "trapped" and result.trap is not None
    assert (result.trap.kind, result.trap.lane, result.trap.address) == ("out_of_bounds_lds", 63, 256)


@everywhere
@pytest.mark.parametrize("kernel", ["load_past_end", "store_past_end"])
def test_global_access_one_element_past_the_end(kernel: str, core: str, schedule: str, arch: str) -> None:
    values = {**numbers(100), "n": 100}
    result, _ = run(kernel, values, core=core, schedule=schedule, arch=arch, block=128)
    assert result.trap is not None and result.trap.kind == "out_of_bounds_global"
    name = "x" if kernel == "load_past_end" else "out"
    assert f"byte 400 of {name}, 0 past its end (400 bytes)" in result.trap.message
    assert result.trap.wave == 1


@everywhere
@pytest.mark.parametrize(("kernel", "block"), [("missing_barrier", 256), ("missing_second_barrier", 128)])
def test_missing_barrier_is_found_under_every_schedule(
    kernel: str, block: int, core: str, schedule: str, arch: str
) -> None:
    values = {"x": randint(1, 50, block), "out": torch.zeros(3 * block, dtype=torch.int32)}
    result, _ = run(kernel, values, core=core, schedule=schedule, arch=arch, block=block)
    assert "lds_race" in {f.kind for f in result.findings}


@everywhere
def test_waves_that_store_the_same_value_do_not_race(core: str, schedule: str, arch: str) -> None:
    result, _ = run("same_value_twice", numbers(256), core=core, schedule=schedule, arch=arch, block=256)
    assert result.clean


@everywhere
def test_lanes_that_store_different_values_to_one_address(core: str, schedule: str, arch: str) -> None:
    result, _ = run("two_lanes_collide", numbers(64), core=core, schedule=schedule, arch=arch)
    assert "lds_race" in {f.kind for f in result.findings}


@everywhere
def test_lanes_that_hold_copies_do_not_race_in_one_store(core: str, schedule: str, arch: str) -> None:
    values = numbers(64)
    result, after = run("two_lanes_collide", values, core=core, schedule=schedule, arch=arch, copied_lanes=True)
    assert result.clean
    assert torch.equal(after["out"], values["x"][1::2].repeat_interleave(2)), "the last lane's copy remains"


@everywhere
@pytest.mark.parametrize(
    ("kernel", "block"), [("missing_barrier", 256), ("missing_second_barrier", 128), ("waves_collide", 128)]
)
def test_waves_race_where_lanes_hold_copies_too(kernel: str, block: int, core: str, schedule: str, arch: str) -> None:
    values = {"x": randint(1, 50, block), "out": torch.zeros(3 * block, dtype=torch.int32)}
    result, _ = run(kernel, values, core=core, schedule=schedule, arch=arch, block=block, copied_lanes=True)
    assert "lds_race" in {f.kind for f in result.findings}


@everywhere
def test_uninitialised_lds(core: str, schedule: str, arch: str) -> None:
    result, _ = run("uninitialised_lds", numbers(64), core=core, schedule=schedule, arch=arch)
    assert result.completed and [f.kind for f in result.findings] == ["uninitialised_lds"]
    assert result.findings[0].address == 128


@everywhere
def test_endless_loop_ends_with_the_budget(
    core: str, schedule: str, arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"flag": torch.zeros(1, dtype=torch.int32), "out": torch.zeros(64, dtype=torch.int32)}
    result, _ = run("endless", values, core=core, schedule=schedule, arch=arch, budget=20_000, monkeypatch=monkeypatch)
    assert result.status == "budget" and result.instructions == 20_000


@everywhere
def test_barrier_that_others_never_reach(core: str, schedule: str, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wave that spins for another one is put aside after a while, so the other one does reach its barrier."""
    monkeypatch.setattr(reference, "QUANTUM", 5_000)
    values = {"flag": torch.zeros(1, dtype=torch.int32), "out": torch.zeros(128, dtype=torch.int32)}
    budget = 300_000 if core == "fast" else 20_000
    result, _ = run(
        "divergent_barrier", values, core=core, schedule=schedule, arch=arch, block=128, budget=budget,
        monkeypatch=monkeypatch,
    )  # fmt: skip
    assert result.status == "deadlock"


@everywhere
def test_trap_instruction(core: str, schedule: str, arch: str) -> None:
    values = {"x": torch.full((64,), 101, dtype=torch.int32), "out": torch.zeros(64, dtype=torch.int32)}
    result, _ = run("traps", values, core=core, schedule=schedule, arch=arch)
    assert result.status == "trapped" and result.trap is not None and result.trap.kind == "trap_instruction"


@pytest.mark.parametrize("core", CORES)
def test_read_only_and_uninitialised_buffers(core: str) -> None:
    from compile_corpus import build

    from sandbox.emulator.launch import prepare
    from sandbox.emulator.loader import load_code_object

    source = HipSource(SOURCE, "writes_constant")
    built = build(Case("", source, (1, 1, 1), lambda _: numbers(64), lambda a, b: None), "gfx950")
    code, runner = load_code_object(built.code), fast.run if core == "fast" else reference.run
    if core == "fast" and not fast.available():
        pytest.skip("no C compiler")
    memory = Memory()
    arguments = [memory.allocate("x", 256, writable=False), memory.allocate("out", 256)]
    result = runner(prepare(code, built.kernel, (1,), (64,), arguments, memory), [0])
    assert result.trap is not None and result.trap.kind == "write_to_read_only"
    memory = Memory()
    arguments = [memory.allocate("x", 256, initialised=False), memory.allocate("out", 256)]
    result = runner(prepare(code, "missing_barrier", (1,), (64,), arguments, memory), [0])
    assert "uninitialised_global" in {f.kind for f in result.findings}
