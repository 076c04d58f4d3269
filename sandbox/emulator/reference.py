"""The reference core: readable, numpy, one wave instruction at a time.

`run` executes the chosen workgroups of a `Launch` under a schedule. Every wave is in order; schedules differ in which
wave goes next between barriers. Workgroups take turns after a quantum of instructions, so that one which waits for
another (a lock, a last-block reduction) does not wait for ever.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from sandbox.emulator.counters import instruction_counters
from sandbox.emulator.decoder import decode
from sandbox.emulator.instruction import EXEC_LO, DecodeError, Instruction, Operand, Unsupported
from sandbox.emulator.launch import XCCS, Launch
from sandbox.emulator.machine import VGPRS, Findings, Wave, Workgroup
from sandbox.emulator.result import EmulationResult, Status, Trapped
from sandbox.emulator.semantics import control, lds, matrix, packed, scalar, vector, vmem
from sandbox.emulator.semantics.operands import Step

SCHEDULES = ("lockstep", "sequential", "reverse", "random")
QUANTUM = 100_000
_RESIDENT = 64
"""Workgroups that are in flight at once, and how many instructions each, and each wave in it, runs before the next."""


class _OutOfBudget(Exception):  # noqa: N818 - a way out of the loop
    pass


def build_step(i: Instruction, arch: str) -> Step:
    """The function that executes `i` on a wave; raises `Unsupported`."""
    if control.handles(i):
        return control.build(i)
    if i.encoding.startswith("SOP"):
        return scalar.build(i)
    if i.encoding == "DS":
        return lds.build(i)
    if i.encoding in ("FLAT", "GLOBAL", "SCRATCH", "MUBUF"):
        return vmem.build(i)
    if i.encoding == "VOP3P":
        return packed.build(i)
    if i.encoding == "MAI" and "accvgpr" not in i.mnemonic:
        return matrix.build(i, arch)
    return vector.build(i, arch)


_INDEXED = frozenset({"VOP1", "VOP2", "VOPC", "VOP3", "VOP3P"})


def _shifted(i: Instruction, offset: int, which: int) -> Instruction:
    """`i` with `offset` added to its vector registers: sources by bits 0-2 of `which`, the destination by bit 3."""

    def move(o: Operand, chosen: bool) -> Operand:
        if o.kind != "vgpr" or not chosen:
            return o
        if o.index + offset + o.dwords > VGPRS:
            raise Unsupported(i.mnemonic, f"v{o.index + offset} through the index register")
        return replace(o, index=o.index + offset)

    sources = tuple(move(o, bool(which >> min(n, 2) & 1)) for n, o in enumerate(i.src))
    return replace(i, src=sources, dst=tuple(move(o, bool(which >> 3 & 1)) for o in i.dst))


class Core:
    """Decoded steps of one code object, and the loop that runs waves through them."""

    def __init__(self, launch: Launch, budget: int) -> None:
        self.launch = launch
        self.image = launch.code.elf.image
        self.arch = launch.code.arch
        self.left = budget
        self.steps: dict[int, tuple[Step, Instruction]] = {}
        self.indexed: dict[tuple[int, int], Step] = {}
        self.executed: Counter[int] = Counter()

    def step_at(self, pc: int) -> tuple[Step, Instruction]:
        """The step and instruction at an image offset; raises `Unsupported` where there is none."""
        found = self.steps.get(pc)
        if found is None:
            if not 0 <= pc < len(self.image) or pc % 4:
                raise Unsupported("jump", f"to {pc:#x}, outside the code object")
            try:
                instruction = decode(self.image, pc, self.arch)
            except DecodeError as e:
                raise Unsupported("decode", str(e)) from e
            found = self.steps[pc] = (build_step(instruction, self.arch), instruction)
        return found

    def indexed_step(self, pc: int, i: Instruction, wave: Wave) -> Step:
        """The step of a vector instruction whose register numbers M0 shifts."""
        key = (pc, wave.m0 & 0xF0FF)
        found = self.indexed.get(key)
        if found is None:
            found = self.indexed[key] = build_step(_shifted(i, wave.m0 & 0xFF, wave.m0 >> 12 & 15), self.arch)
        return found

    def advance(self, wave: Wave, limit: int) -> None:
        """Run up to `limit` instructions, to the next barrier or to the end."""
        group = wave.group
        for _ in range(limit):
            if self.left <= 0:
                raise _OutOfBudget
            self.left -= 1
            pc = wave.pc
            step, instruction = self.step_at(pc)
            wave.instruction = instruction
            wave.next_pc = pc + instruction.size
            group.clock += 1
            self.executed[pc] += 1
            if wave.index_mode and instruction.encoding in _INDEXED:
                step = self.indexed_step(pc, instruction, wave)
            step(wave)
            wave.pc = wave.next_pc
            if wave.done or wave.at_barrier:
                return


def _start(launch: Launch, number: int, findings: Findings) -> Workgroup:
    """A workgroup with its waves in their initial state."""
    index = launch.workgroup(number)
    group = Workgroup(
        index, launch.lds_bytes, launch.memory, findings, launch.code_base, number % XCCS, launch.host,
        launch.copied_lanes,
    )  # fmt: skip
    sgprs = launch.scalar_registers(index)
    for k in range(launch.waves):
        wave = Wave(group, k, launch.kernel.descriptor.mode, launch.private_bytes)
        wave.sgpr[:] = sgprs
        wave.vgpr[0], mask = launch.lanes(k)
        wave.write_sgpr(EXEC_LO, mask, 2)
        wave.pc = launch.kernel.entry
        group.waves.append(wave)
    return group


def _turns(group: Workgroup, schedule: str, generator: random.Random) -> Iterator[tuple[Wave, int]]:
    """Which wave runs next, and for how many instructions at most, until the workgroup is done."""
    while not group.done:
        ready = [w for w in group.waves if not (w.done or w.at_barrier)]
        if not ready:
            group.release_barrier()
            continue
        if schedule == "lockstep":
            yield from ((w, 1) for w in ready)
        elif schedule == "sequential":
            yield from ((w, QUANTUM) for w in ready)
        elif schedule == "reverse":
            yield from ((w, QUANTUM) for w in reversed(ready))
        else:
            yield generator.choice(ready), generator.randint(1, 40)


def _run_quantum(core: Core, group: Workgroup, turns: Iterator[tuple[Wave, int]]) -> bool:
    """Let a workgroup run for a quantum; says whether it ended."""
    stop = group.clock + QUANTUM
    for wave, limit in turns:
        core.advance(wave, min(limit, QUANTUM))
        if group.clock >= stop:
            return group.done
    return True


def run(
    launch: Launch,
    numbers: Sequence[int],
    schedule: str = "lockstep",
    seed: int = 0,
    budget: int = 20_000_000,
) -> EmulationResult:
    """Run the workgroups `numbers` (in dispatch order) and say how it went. Never raises for what the kernel does."""
    findings, core = Findings(), Core(launch, budget)
    generator = random.Random(seed)
    order = list(numbers)
    if schedule == "reverse":
        order.reverse()
    elif schedule == "random":
        generator.shuffle(order)
    waiting = deque(order)
    resident: deque[tuple[Workgroup, Iterator[tuple[Wave, int]]]] = deque()
    status: Status = "completed"
    reason, missing, trap, group = "", None, None, None
    with np.errstate(all="ignore"):
        try:
            while waiting or resident:
                while waiting and len(resident) < _RESIDENT and (not resident or resident[0][0].clock):
                    started = _start(launch, waiting.popleft(), findings)
                    resident.append((started, _turns(started, schedule, generator)))
                    if len(resident) == 1:
                        break
                group, turns = resident.popleft()
                if not _run_quantum(core, group, turns):
                    resident.append((group, turns))
        except Trapped as e:
            status, reason, trap = "trapped", str(e), e.finding
        except Unsupported as e:
            status, reason, missing = "unsupported", _place(e, core, group), str(e)
        except _OutOfBudget:
            status, reason = _exhausted(group, budget)
    executed = ((core.steps[pc][1], n) for pc, n in core.executed.items() if pc in core.steps)
    return EmulationResult(
        status=status,
        reason=reason,
        trap=trap,
        findings=tuple(findings.items),
        instructions=sum(core.executed.values()),
        counters=instruction_counters(executed, len(order) * launch.waves),
        workgroups_run=tuple(launch.workgroup(n) for n in numbers),
        workgroups_total=launch.workgroups,
        core="reference",
        unsupported=missing,
    )


def _place(error: Unsupported, core: Core, group: Workgroup | None) -> str:
    waves = [w for w in group.waves if not w.done] if group else []
    at = f" at +{waves[0].pc:#x}" if len(waves) == 1 else ""
    return f"The emulator does not implement {error}{at}."


def _exhausted(group: Workgroup | None, budget: int) -> tuple[Status, str]:
    """A budget that ran out while waves wait at a barrier is a deadlock: the others never get there."""
    waves = group.waves if group else []
    blocked = [w.index for w in waves if w.at_barrier]
    running = [w for w in waves if not (w.done or w.at_barrier)]
    place = f" (wave {running[0].index} at +{running[0].pc:#x})" if running else ""
    if blocked and running:
        return (
            "deadlock",
            f"Waves {blocked} wait at a barrier that others did not reach in {budget} instructions{place}.",
        )
    return "budget", f"The kernel did not end within {budget} wave instructions{place}."
