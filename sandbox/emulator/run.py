"""Run a kernel of a code object: the entry point of the emulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from sandbox.emulator import fast, reference
from sandbox.emulator.launch import Argument, Launch, prepare, sample_workgroups
from sandbox.emulator.lines import LineTable
from sandbox.emulator.loader import CodeObject
from sandbox.emulator.memory import Allocation, Memory
from sandbox.emulator.result import EmulationResult
from sandbox.errors import InputError, ToolMissing

Schedule = Literal["lockstep", "sequential", "reverse", "random"]
DEFAULT_BUDGET = 20_000_000
_REFERENCE_BUDGET = 3_000_000
"""Where the reference core stands in for the fast one, which lacks a few instructions: it is a hundred times slower."""


def emulate(
    code_object: CodeObject,
    kernel_name: str,
    grid: Sequence[int],
    block: Sequence[int],
    arguments: bytes | Sequence[Argument],
    memory: Memory,
    *,
    dynamic_lds_bytes: int = 0,
    schedule: Schedule = "lockstep",
    seed: int = 0,
    instruction_budget: int = DEFAULT_BUDGET,
    workgroups: int | Sequence[int] | Literal["all"] = "all",
    core: Literal["auto", "fast", "reference"] = "auto",
    model: bool = False,
    image: Allocation | None = None,
    copied_lanes: bool = False,
) -> EmulationResult:
    """Run `grid` workgroups of `block` work-items and say how it went; results are in the buffers of `memory`.

    `arguments` are the explicit ones in order (numbers, `Allocation`s as pointers, raw bytes), or the bytes of the
    kernarg segment; hidden arguments are filled in. `dynamic_lds_bytes` is LDS beyond what the kernel declares (all of
    it for Triton: its `metadata.shared`). `workgroups` limits the run to a number of them (first, last and seeded
    others) or to those listed. `instruction_budget` counts wave instructions of the whole run. `core` is `fast` (C,
    compiled on first use), `reference` (numpy), or `auto`: fast where a C compiler is, and the reference core for short
    runs that need an instruction only it has. `model` adds modelled counters (cache traffic, LDS bank conflicts), which
    only the fast core has. `image` is a buffer of `memory` that `load_image` filled, so that the variables of the code
    object keep what a launch left in them. `copied_lanes` says that a compiler's layouts alone address LDS, as Triton's
    do: lanes that store to one address in one instruction then hold copies of one value, and are no race where their
    bits differ. They may: of `a * b + c * d` a fused multiply-add rounds one product and not the other, and two lanes
    that exchange their products fuse one each.

    Raises `InputError` for a launch that hardware would refuse, `ToolMissing` where the fast core was asked for and
    cannot be built. What the kernel does wrong is in the result.
    """
    if schedule not in reference.SCHEDULES:
        raise InputError(
            f"There is no schedule {schedule!r}.", remedy=f"Choose one of {', '.join(reference.SCHEDULES)}."
        )
    if core not in ("auto", "fast", "reference"):
        raise InputError(f"There is no core {core!r}.", remedy="Choose auto, fast or reference.")
    launch = prepare(code_object, kernel_name, grid, block, arguments, memory, dynamic_lds_bytes, image)
    launch = replace(launch, copied_lanes=copied_lanes)
    if workgroups == "all":
        numbers = list(range(launch.workgroups))
    elif isinstance(workgroups, int):
        if workgroups < 1:
            raise InputError(f"{workgroups} workgroups were asked for.", remedy="Ask for one or more, or for all.")
        numbers = sample_workgroups(launch.workgroups, workgroups, seed)
    else:
        numbers = sorted(set(workgroups))
        if not numbers or numbers[0] < 0 or numbers[-1] >= launch.workgroups:
            raise InputError(f"The grid has workgroups 0 to {launch.workgroups - 1}; others were asked for.")
    result = _run(launch, numbers, schedule, seed, instruction_budget, core, model)
    return _with_lines(_with_text(result, launch), code_object)


def _run(
    launch: Launch, numbers: list[int], schedule: Schedule, seed: int, instruction_budget: int, core: str, model: bool
) -> EmulationResult:
    if core == "reference" or (core == "auto" and not fast.available()):
        return reference.run(launch, numbers, schedule, seed, instruction_budget)
    if not fast.available():
        raise ToolMissing("The fast core needs a C compiler (cc, gcc or clang) on the PATH.")
    before = _saved(launch.memory) if core == "auto" else []
    result = fast.run(launch, numbers, schedule, seed, instruction_budget, model=model)
    if core == "auto" and result.status == "unsupported":
        _restore(before)
        if launch.host is not None:
            launch.host.reset()
        again = reference.run(launch, numbers, schedule, seed, min(instruction_budget, _REFERENCE_BUDGET))
        return again if again.status != "budget" else result
    return result


def _with_text(result: EmulationResult, launch: Launch) -> EmulationResult:
    """The same result with what the kernel printed; an assertion says what failed before it traps."""
    printed = tuple(launch.host.printed) if launch.host is not None else ()
    trap = result.trap
    if trap is None or trap.kind != "trap_instruction" or not printed:
        return replace(result, printed=printed)
    said = replace(trap, message=f"{trap.message}, having printed {printed[-1].strip()!r}")
    findings = tuple(said if f is trap else f for f in result.findings)
    return replace(result, printed=printed, trap=said, findings=findings, reason=str(said))


def _with_lines(result: EmulationResult, code: CodeObject) -> EmulationResult:
    """The same result with the source line of each finding."""
    if not result.findings:
        return result
    table = LineTable(code.elf.debug)
    findings = tuple(replace(f, source=table.find(f.pc)) for f in result.findings)
    if result.trap is None:
        return replace(result, findings=findings)
    trap = replace(result.trap, source=table.find(result.trap.pc))
    return replace(result, findings=findings, trap=trap, reason=str(trap))


_Saved = tuple[Allocation, npt.NDArray[np.uint8], npt.NDArray[np.bool_] | None]


def _saved(memory: Memory) -> list[_Saved]:
    """Copies of the buffers a kernel may change."""
    return [(a, a.data.copy(), None if a.initialised is None else a.initialised.copy()) for a in memory if a.writable]


def _restore(saved: list[_Saved]) -> None:
    for allocation, data, initialised in saved:
        allocation.data[:] = data
        if allocation.initialised is not None and initialised is not None:
            allocation.initialised[:] = initialised
