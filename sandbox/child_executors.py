"""Child side: what can execute a launch, behind one Protocol: `gpu`, `interpreter`, `emulator`, `none`."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sandbox.compiling import Compiled, CompileError
from sandbox.target import Target


@dataclass(frozen=True, slots=True)
class PendingLaunch:
    """A launch about to run: its JIT function, bound arguments and grid, and what the compiler made of it."""

    fn: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    grid: tuple[int, int, int]
    compiled: Compiled | CompileError | None
    target: Target
    run: Callable[[], Any]
    """Triton's own launch, for a real GPU."""


class CannotExecute(Exception):  # noqa: N818 - an outcome: the launch's results stay unknown
    """This executor does not run this launch; the message says why."""


class Executor(Protocol):
    """Runs one launch so that its arguments hold the results, within `budget_s` seconds, or raises `CannotExecute`.

    Answers what it saw go wrong without stopping (accesses outside a tensor), one sentence each.
    """

    name: str

    def execute(self, launch: PendingLaunch, budget_s: float) -> tuple[str, ...]: ...


class NoExecutor:
    """Launches are recorded and compiled only."""

    name = "none"

    def execute(self, launch: PendingLaunch, budget_s: float) -> tuple[str, ...]:
        raise CannotExecute("execution was switched off")


class GpuExecutor:
    """The machine's own GPU, through Triton's launcher."""

    name = "gpu"

    def execute(self, launch: PendingLaunch, budget_s: float) -> tuple[str, ...]:
        import torch

        launch.run()
        torch.cuda.synchronize()
        return ()


class InterpreterExecutor:
    """The corrected Triton interpreter (`sandbox.interpreter`)."""

    name = "interpreter"

    def execute(self, launch: PendingLaunch, budget_s: float) -> tuple[str, ...]:
        from sandbox.child_values import raw
        from sandbox.interpreter import InterpreterAssertion, InterpreterUnsupported, interpret_launch

        compiled = launch.compiled if isinstance(launch.compiled, Compiled) else None
        try:
            with raw():
                ran = interpret_launch(
                    launch.fn,
                    launch.grid,
                    launch.args,
                    launch.kwargs,
                    budget_s=budget_s,
                    target=launch.target,
                    compiled=compiled,
                )
        except InterpreterUnsupported as e:
            raise CannotExecute(str(e)) from e
        except InterpreterAssertion as e:
            raise CannotExecute(f"a device assertion failed: {e}") from e
        return tuple(
            f"{finding.message} ({Path(finding.file).name}:{finding.line})" if finding.file else finding.message
            for finding in ran.findings
        )


class EmulatorExecutor:
    """The compiled code object in the CPU emulator (`sandbox.emulator`)."""

    name = "emulator"

    def execute(self, launch: PendingLaunch, budget_s: float) -> tuple[str, ...]:
        if not isinstance(launch.compiled, Compiled):
            raise CannotExecute("it did not compile, so there is no code object to emulate")
        from sandbox.child_emulate import CannotEmulate, emulate_launch

        try:
            result = emulate_launch(
                launch.compiled, launch.fn, launch.args, launch.kwargs, launch.grid, launch.target, budget_s=budget_s
            )
        except CannotEmulate as e:
            raise CannotExecute(str(e)) from e
        return tuple(str(finding) for finding in result.findings)


class SecondChance:
    """The interpreter, and where it gives up on a launch that compiled, the emulator on the same inputs.

    A kernel that once needed the emulator goes there first from then on. `name` is the one that ran the last launch.
    """

    def __init__(self) -> None:
        self._interpreter = InterpreterExecutor()
        self._emulator = EmulatorExecutor()
        self._prefer: set[int] = set()
        self.name = self._interpreter.name

    def execute(self, launch: PendingLaunch, budget_s: float) -> tuple[str, ...]:
        order: list[Executor] = [self._interpreter]
        saved = _save(launch) if isinstance(launch.compiled, Compiled) and launch.target.is_amd else None
        if saved is not None:
            order = [self._emulator, self._interpreter] if id(launch.fn) in self._prefer else [*order, self._emulator]
        reasons: list[str] = []
        for position, executor in enumerate(order):
            self.name = executor.name
            if position and saved is not None:
                _restore(saved)
            try:
                found = executor.execute(launch, budget_s)
            except CannotExecute as e:
                reasons.append(str(e) if not position else f"{executor.name}: {e}")
                continue
            if executor is self._emulator:
                self._prefer.add(id(launch.fn))
            return found
        raise CannotExecute("; ".join(reasons))


_MAX_SAVED_BYTES = 1 << 30


def _save(launch: PendingLaunch) -> list[tuple[int, bytes]] | None:
    """The bytes of every storage among the arguments, by address; None where they are too many to copy."""
    from sandbox.child_values import storage_of, tensors_in

    storages: dict[int, int] = {}
    for value in (*launch.args, *launch.kwargs.values()):
        base = getattr(value, "base", None)
        for tensor in tensors_in([value, base]):
            start, nbytes = storage_of(tensor)
            storages[start] = nbytes
    if sum(storages.values()) > _MAX_SAVED_BYTES:
        return None
    return [(start, ctypes.string_at(start, nbytes)) for start, nbytes in storages.items() if nbytes]


def _restore(saved: list[tuple[int, bytes]]) -> None:
    for start, data in saved:
        ctypes.memmove(start, data, len(data))


_EXECUTORS: dict[str, type[Executor]] = {
    "none": NoExecutor,
    "gpu": GpuExecutor,
    "interpreter": InterpreterExecutor,
    "emulator": EmulatorExecutor,
}


def executor(name: str) -> Executor:
    """The executor of that name; `auto` is the interpreter with the emulator as second chance."""
    if name == "auto":
        return SecondChance()
    return _EXECUTORS[name]()


@dataclass(slots=True)
class Stopwatch:
    """Time left of a run: launches after `deadline` are no longer executed."""

    deadline: float

    def budget_s(self, launch_s: float) -> float:
        return min(launch_s, self.deadline - time.monotonic())
