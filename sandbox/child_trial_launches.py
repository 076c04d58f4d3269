"""Child side: launches of a trial. Noted rather than recorded, run as the trial wants them, traced to their source."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, Literal

from sandbox import child_hooks, child_torch
from sandbox.child_executors import CannotExecute, PendingLaunch, _restore, _save
from sandbox.child_launches import LaunchRecorder, StandInKernel, Surroundings, bind, evaluate_grid
from sandbox.child_orderings import Orderings
from sandbox.child_values import raw, read_memory, storage_of, tensors_in
from sandbox.compiling import Compiled, CompileError

Order = Literal["lockstep", "reversed"]
_MAX_CONFIGS = 6
"""Configs of one autotuner, different in more than options, that a trial runs."""


@dataclasses.dataclass(slots=True)
class LaunchNote:
    """What one launch of a trial was and did."""

    kernel: str
    own: bool
    """Whether its source is text of the program's files."""
    status: str
    reason: str | None
    findings: list[str]
    by: str
    counters: dict[str, int]
    """What the emulator counted."""
    persistent: list[str]
    """Arguments whose memory was there before the call, is none of its inputs, and was changed by the launch."""
    grid: tuple[int, int, int]


class TrialRecorder(LaunchRecorder):
    """A launch recorder that keeps notes instead of sending every value, and knows how a trial wants launches run."""

    notes: list[LaunchNote]
    sources: Mapping[str, str]
    compile_now: bool
    execute_now: bool
    order: Order
    wide: bool
    schedule: str
    """Order of waves where the emulator runs a launch."""
    call_storages: set[int]
    """Addresses of the storages that belong to the call: its inputs, and what torch made during it."""
    lived_before: frozenset[int] | None
    """Addresses of the memory that the GPU's allocator had given away when the call began; None without a GPU."""
    orderings: Orderings
    """What the call puts in order."""
    forced_config: int
    config_count: int

    def launch(
        self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any, native: Callable[[], Any]
    ) -> Any:
        around, self.now = self.now, Surroundings(benchmark=self.now.benchmark)
        bound = bind(fn, args, kwargs)
        if around.probe:
            return self._probe(fn, args, kwargs, bound, grid)
        options = {k: v for k, v in kwargs.items() if k not in fn.arg_names}
        sizes = evaluate_grid(grid, {**options, **bound})
        compiled: Compiled | CompileError | None = None
        if self.compile_now:
            number, self.count = self.count, self.count + 1
            self.channel.send("trial-launch", {"index": number, "kernel": fn.__name__, "grid": list(sizes)})
            compiled = self._compile_all(number, fn, args, kwargs, sizes)
        elif self.executor.name == "emulator":
            compiled, _ = self.try_compile(fn, args, kwargs, sizes, self.targets[0])
        note = LaunchNote(fn.__name__, self._is_own(fn), "executed", None, [], "interpreter", {}, [], sizes)
        self.notes.append(note)
        answer: list[Any] = []
        pending = PendingLaunch(fn, args, kwargs, sizes, compiled, self.targets[0], lambda: answer.append(native()))
        with raw() if self.executor.name != "gpu" else nullcontext():
            self.orderings.handed(fn.__name__, tensors_in(list(bound.values())), self.call_storages)
            foreign = self._foreign(bound) if self.execute_now else {}
            before = {name: read_memory(tensor, 1 << 40).digest for name, tensor in foreign.items()}
            self._run(pending, note)
            note.persistent += [n for n, t in foreign.items() if read_memory(t, 1 << 40).digest != before[n]]
        return answer[0] if answer else StandInKernel(self, fn, bound, options, compiled)

    def _foreign(self, bound: Mapping[str, Any]) -> dict[str, Any]:
        """Tensor arguments that are neither inputs of the call nor made during it: memory that outlives calls."""
        found = {}
        for name, value in bound.items():
            base = getattr(value, "base", value) if not hasattr(value, "untyped_storage") else value
            if hasattr(base, "untyped_storage") and storage_of(base)[0] not in self.call_storages:
                found[name] = base
        if found and self.lived_before is not None:
            # torch's modes do not see what `torch._C` allocates; the allocator does.
            made = child_torch.living_memory() - self.lived_before
            found = {name: base for name, base in found.items() if storage_of(base)[0] not in made}
        return found

    def _is_own(self, fn: Any) -> bool:
        """The text Triton compiles is the function's own text in one of the program's files."""
        code = fn.fn.__code__
        text = self.sources.get(code.co_filename)
        if text is None:
            return False
        lines = text.splitlines()[code.co_firstlineno - 1 :]
        own = textwrap.dedent("\n".join(lines))
        body = own[own.find("def ") :] if "def " in own else own
        return body.startswith(fn.src.rstrip("\n"))

    def _run(self, pending: PendingLaunch, note: LaunchNote) -> None:
        budget = self.stopwatch.budget_s(self.limits.launch_s)
        if 0 in pending.grid:
            return
        if not self.execute_now:
            note.status, note.reason = "unknown", "the call was made for what its launches compile to"
            return
        if budget <= 0:
            note.status, note.reason = "unknown", "the time for executing launches in this run was used up"
            return
        try:
            if self.executor.name == "interpreter":
                self._interpret(pending, budget, note)
            elif self.executor.name == "emulator":
                _emulate(pending, budget, note, self.schedule)
            else:
                note.findings += self.executor.execute(pending, budget)
                note.by = self.executor.name
        except CannotExecute as e:
            note.status, note.reason = "unknown", str(e)

    def _interpret(self, pending: PendingLaunch, budget_s: float, note: LaunchNote) -> None:
        """The interpreter; what it cannot do, the emulator may, on the same memory as before."""
        target = self.targets[0]
        second_chance = target.is_amd and not self.wide and self.order == "lockstep"
        saved = _save(pending) if second_chance else None
        try:
            note.findings += _interpret(pending, budget_s, order=self.order, wide=self.wide)
            return
        except CannotExecute:
            if saved is None:
                raise
            compiled, _ = self.try_compile(pending.fn, pending.args, pending.kwargs, pending.grid, target)
            if not isinstance(compiled, Compiled):
                raise
        _restore(saved)
        _emulate(dataclasses.replace(pending, compiled=compiled), budget_s, note, self.schedule)


def _emulate(pending: PendingLaunch, budget_s: float, note: LaunchNote, schedule: str) -> None:
    """Run the code object; what it found and counted goes into the note."""
    from sandbox.child_emulate import CannotEmulate, emulate_launch

    note.by = "emulator"
    if not isinstance(pending.compiled, Compiled):
        raise CannotExecute("it did not compile, so there is no code object to emulate")
    try:
        result = emulate_launch(
            pending.compiled, pending.fn, pending.args, pending.kwargs, pending.grid, pending.target,
            budget_s=budget_s, schedule=schedule,
        )  # fmt: skip
    except CannotEmulate as e:
        raise CannotExecute(str(e)) from e
    note.findings += [str(finding) for finding in result.findings]
    note.counters = dict(result.counters)


def _interpret(pending: PendingLaunch, budget_s: float, *, order: Order, wide: bool) -> list[str]:
    from sandbox.interpreter import InterpreterAssertion, InterpreterUnsupported, interpret_launch

    compiled = pending.compiled if isinstance(pending.compiled, Compiled) else None
    try:
        done = interpret_launch(
            pending.fn, pending.grid, pending.args, pending.kwargs, budget_s=budget_s, target=pending.target,
            compiled=compiled, order=order, wide=wide,
        )  # fmt: skip
    except InterpreterUnsupported as e:
        raise CannotExecute(str(e)) from e
    except InterpreterAssertion as e:
        raise RuntimeError(f"device assertion: {e}") from e
    return [f"{f.message} at line {f.line}" for f in done.findings]


def choose_config(recorder: TrialRecorder) -> None:
    """Let a trial force which config of an autotuner runs: on a GPU any of them may win, so each must be right.

    The first is the one that the recording assumed, so that both speak of the same code object.
    """
    assume = child_hooks._choose
    assumed: dict[tuple[Any, ...], Any] = {}

    def chosen(_recorder: Any, tuner: Any, args: Any, kwargs: Any) -> Any:
        key = (id(tuner), child_hooks._tuning_key(tuner, kwargs))
        if key not in assumed:
            assumed[key] = assume(recorder, tuner, args, kwargs).config
        configs = tuner.prune_configs(kwargs) if len(tuner.configs) > 1 else list(tuner.configs)
        by_values: dict[str, Any] = {}
        for config in (assumed[key], *configs):
            by_values.setdefault(repr(sorted(config.kwargs.items(), key=repr)), config)
        distinct = list(by_values.values())[:_MAX_CONFIGS]
        recorder.config_count = max(recorder.config_count, len(distinct))
        config = distinct[recorder.forced_config % len(distinct)]
        return child_hooks._Chosen(config, {"configs": [], "index": 0, "key": [], "total": len(configs)})

    class Forgetful(dict):  # type: ignore[type-arg]
        """The autotuner's memory of its choice: a trial chooses anew each time."""

        def get(self, key: Any, default: Any = None) -> Any:
            return None

    from triton.runtime.autotuner import Autotuner

    native = Autotuner.run

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.cache = Forgetful()
        return native(self, *args, **kwargs)

    child_hooks._choose = chosen  # type: ignore[assignment]
    Autotuner.run = run
