"""Child side: every Triton launch is recorded first, then compiled for the target, then executed.

Hooks `JITFunction.run` and `Autotuner.run`, where all launches pass. A launch that does not compile, breaks a limit or
cannot be executed is a record, not an exception: the harness goes on.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.child_entries import EntryTracker, user_frames
from sandbox.child_executors import CannotExecute, Executor, PendingLaunch, Stopwatch
from sandbox.child_values import Encoder, raw
from sandbox.compile_cache import CompileCache
from sandbox.compiling import Compiled, CompileError, compile_launch, pack
from sandbox.frames import FrameWriter
from sandbox.isolation import Limits
from sandbox.limits import LimitFinding, check_launch
from sandbox.target import Target

_INTERNAL_OPTIONS = {"grid", "warmup", "debug", "instrumentation_mode"}


@dataclass(slots=True)
class Surroundings:
    """What the layers above a launch said about it; the launch takes it with it."""

    autotune: dict[str, Any] | None = None
    heuristics: tuple[str, ...] = ()
    probe: bool = False
    benchmark: bool = False
    grid: Any = None


@dataclass(slots=True)
class LaunchRecorder:
    """Records, compiles and executes the launches of one run. `targets` are compiled for; the first is posed as."""

    targets: tuple[Target, ...]
    encoder: Encoder
    tracker: EntryTracker
    channel: FrameWriter
    executor: Executor
    limits: Limits
    stopwatch: Stopwatch
    cache: CompileCache | None
    files: Mapping[str, str]
    compile: bool = True
    unobserved: bool = False
    """Whether launches pass as if nobody looked: those that Triton times, of which there are hundreds."""
    now: Surroundings = field(default_factory=Surroundings)
    count: int = 0
    launched: set[str] = field(default_factory=set)
    """Names of the kernels recorded so far."""
    failed: bool = False
    """Whether a launch did not compile or broke a limit since this was last cleared."""
    results: dict[str, Compiled | CompileError] = field(default_factory=dict)
    sent_blobs: set[str] = field(default_factory=set)
    kernel_filter: re.Pattern[str] | None = None
    per_kernel: int = 0
    """Record only so many launches of a kernel, each of another type, shape or constant; 0: all."""
    seen: dict[str, set[str]] = field(default_factory=dict)
    entry: int | None = None
    """During a replay: the entry call that is being repeated, and its phase."""
    phase: str = "forward"
    main: str | None = None
    """The file that lines are given of; None: the innermost of the user's files."""

    def launch(
        self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any, native: Callable[[], Any]
    ) -> Any:
        """One call of `fn[grid](*args, **kwargs)`. `native` is Triton's own launch."""
        around, self.now = self.now, Surroundings(benchmark=self.now.benchmark)
        with self.tracker.paused():
            bound = bind(fn, args, kwargs)
            options = {k: v for k, v in kwargs.items() if k not in fn.arg_names and k not in _INTERNAL_OPTIONS}
            if around.probe:
                return self._probe(fn, args, kwargs, bound, grid)
            with_grid = evaluate_grid(grid, {**options, **bound})
            if not self._wanted(fn, bound, options):
                return native() if self.executor.name == "gpu" else self._run_only(fn, args, kwargs, with_grid, native)
            number = self.count
            self.count += 1
            self.launched.add(fn.__name__)
            with self.encoder.store.still():
                self._send_launch(number, fn, bound, options, with_grid, around)
                compiled = self._compile_all(number, fn, args, kwargs, with_grid)
                with raw():
                    before = {n: (t, self.encoder.store.digest(t)) for n, t in _tensors(bound)}
            answer = self._execute(number, fn, args, kwargs, before, with_grid, compiled, native)
        return answer if answer is not None else StandInKernel(self, fn, bound, options, compiled)

    def _wanted(self, fn: Any, bound: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
        if self.kernel_filter is not None and not self.kernel_filter.search(fn.__name__):
            return False
        if self.count >= self.limits.max_launches:
            return False
        if self.per_kernel == 0:
            return True
        known = self.seen.setdefault(fn.__name__, set())
        with raw():
            signature = repr([(k, _kind(v)) for k, v in (*bound.items(), *options.items())])
        if signature in known or len(known) >= self.per_kernel:
            return False
        known.add(signature)
        return True

    def _run_only(self, fn: Any, args: Any, kwargs: Any, grid: tuple[int, int, int], native: Callable[[], Any]) -> Any:
        pending = PendingLaunch(fn, args, kwargs, grid, None, self.targets[0], native)
        try:
            self.executor.execute(pending, self.stopwatch.budget_s(self.limits.launch_s))
        except CannotExecute:
            self.tracker.tainted = True
        return StandInKernel(self, fn, {}, {}, None)

    def _send_launch(
        self,
        number: int,
        fn: Any,
        bound: Mapping[str, Any],
        options: Mapping[str, Any],
        grid: Any,
        around: Surroundings,
    ) -> None:
        candidates = self.tracker.on_launch()
        self.encoder.store.moment()
        innermost, module = user_frames(self.files if self.main is None else {self.main: ""})
        code = fn.fn.__code__
        self.channel.send(
            "launch",
            {
                "index": number,
                "kernel": fn.__name__,
                "file": self.files.get(code.co_filename, code.co_filename),
                "line": code.co_firstlineno,
                "args": [self._argument(fn, p, bound.get(p.name)) for p in fn.params if p.name in bound],
                "grid": list(grid),
                "options": {k: self.encoder.encode(v) for k, v in options.items()},
                "call_line": innermost,
                "module_line": module,
                "autotune": around.autotune,
                "heuristics": list(around.heuristics),
                "calls": candidates,
                "benchmark": around.benchmark,
                "entry": self.entry,
                "phase": self.phase,
            },
        )

    def _argument(self, fn: Any, param: Any, value: Any) -> dict[str, Any]:
        base = getattr(value, "base", None) if type(value).__name__ == "TensorWrapper" else None
        encoded = self.encoder.encode(base if base is not None else value)
        if base is not None:
            encoded["type"] = f"reinterpret:{value.dtype}"
        kind = encoded["kind"]
        if param.is_constexpr:
            taken = "constexpr"
        elif kind in ("tensor", "descriptor", "none"):
            taken = kind
        elif kind in ("tuple", "namedtuple", "list"):
            taken = "tuple"
        else:
            taken = "scalar" if kind in ("int", "float", "bool") else "unsupported"
        return {"name": param.name, "kind": taken, "value": encoded}

    def _compile_all(
        self, number: int, fn: Any, args: Any, kwargs: Mapping[str, Any], grid: tuple[int, int, int]
    ) -> Compiled | CompileError | None:
        first: Compiled | CompileError | None = None
        if not self.compile:
            return None
        for target in self.targets:
            result, limit = self.try_compile(fn, args, kwargs, grid, target)
            first = first if first is not None else result
            self.failed = self.failed or limit is not None or isinstance(result, CompileError)
            self.channel.send("compile", {"index": number, **self.compile_record(result, limit, target)})
        return first

    def try_compile(
        self, fn: Any, args: Any, kwargs: Mapping[str, Any], grid: tuple[int, int, int] | None, target: Target
    ) -> tuple[Compiled | CompileError, LimitFinding | None]:
        """The compile result and the launch limit it breaks."""
        clean = {k: v for k, v in kwargs.items() if k not in ("grid", "warmup")}
        with raw():
            result = compile_launch(fn, args, clean, target, timeout_s=self.limits.compile_s, cache=self.cache)
        if isinstance(result, CompileError):
            return result, None
        return result, self.broken_limit(result, grid, target)

    def broken_limit(self, result: Compiled, grid: tuple[int, int, int] | None, target: Target) -> LimitFinding | None:
        """The launch limit a compiled kernel breaks."""
        found = check_launch(
            target,
            lds_bytes=result.lds_bytes,
            threads_per_workgroup=result.threads_per_workgroup,
            grid=grid if grid is not None else (1, 1, 1),
        )
        return next((f for f in found if f.fatal), None)

    def compile_record(
        self, result: Compiled | CompileError, limit: LimitFinding | None, target: Target
    ) -> dict[str, Any]:
        import hashlib

        blobs = pack(result)
        digest = hashlib.sha256(b"".join(k.encode() + v for k, v in sorted(blobs.items()))).hexdigest()[:32]
        if digest not in self.sent_blobs:
            self.sent_blobs.add(digest)
            for name, data in blobs.items():
                self.channel.send("blob", {"blob": digest, "name": name}, data)
        record: dict[str, Any] = {
            "arch": target.arch,
            "ok": isinstance(result, Compiled),
            "blob": digest,
            "limit": limit.message if limit is not None else None,
            "limit_kind": limit.kind if limit is not None else None,
        }
        if isinstance(result, CompileError):
            file = self.files.get(result.file or "", result.file)
            record.update(error_kind=result.kind, message=result.message, file=file, line=result.line)
        return record

    def _probe(self, fn: Any, args: Any, kwargs: Mapping[str, Any], bound: Mapping[str, Any], grid: Any) -> Any:
        """For the autotuner: does this config compile and launch on every target? Answers (fits, reason, kind of limit,
        grid)."""
        shape = None
        try:
            shape = evaluate_grid(grid, {**kwargs, **bound})
        except (KeyError, TypeError, ValueError, ZeroDivisionError, AssertionError) as e:
            return False, f"its grid cannot be computed: {type(e).__name__}: {e}", None, None
        for target in self.targets:
            result, limit = self.try_compile(fn, args, kwargs, shape, target)
            if isinstance(result, CompileError):
                return False, f"{result.kind}: {result.message}", None, shape
            if limit is not None:
                return False, limit.message, limit.kind, shape
        return True, None, None, shape

    def _execute(
        self,
        number: int,
        fn: Any,
        args: Any,
        kwargs: Mapping[str, Any],
        before: Mapping[str, tuple[Any, str | None]],
        grid: tuple[int, int, int],
        compiled: Compiled | CompileError | None,
        native: Callable[[], Any],
    ) -> Any:
        budget = self.stopwatch.budget_s(self.limits.launch_s)
        answer: list[Any] = []
        pending = PendingLaunch(fn, args, kwargs, grid, compiled, self.targets[0], lambda: answer.append(native()))
        started = time.monotonic()
        status, reason = "executed", None
        findings: tuple[str, ...] = ()
        if 0 in grid:
            status, reason = "executed", "the grid has no program"
        elif budget <= 0:
            status, reason = "unknown", "the time for executing launches in this run was used up"
        else:
            try:
                findings = self.executor.execute(pending, budget)
            except CannotExecute as e:
                status, reason = "unknown", str(e)
        if status == "unknown":
            self.tracker.tainted = True
        elapsed = time.monotonic() - started
        written, after = {}, {}
        if status == "executed":
            with raw(), self.encoder.store.still():
                for name, (tensor, known) in before.items():
                    digest = self.encoder.store.digest(tensor)
                    written[name] = None if digest is None else digest != known
                    if written[name]:
                        after[name] = self.encoder.store.record(tensor)
        execution = {
            "status": status,
            "by": self.executor.name,
            "reason": reason,
            "elapsed_s": elapsed,
            "findings": findings,
        }
        self.channel.send("executed", {"index": number, "execution": execution, "written": written, "after": after})
        return answer[0] if answer else None


def _kind(value: Any) -> Any:
    """What makes two launches different ones: types, shapes and constants, not tensor contents."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return str(value.dtype), tuple(value.shape)
    return value if isinstance(value, (int, float, str, bool, type(None))) else type(value).__name__


def _tensors(bound: Mapping[str, Any]) -> list[tuple[str, Any]]:
    import torch

    found = []
    for name, value in bound.items():
        base = getattr(value, "base", value)
        if isinstance(base, torch.Tensor):
            found.append((name, base))
    return found


def bind(fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Kernel arguments by parameter name, defaults filled in; what is missing is left out (the compiler reports it)."""
    given = {k: v for k, v in kwargs.items() if k in fn.arg_names}
    bound = dict(zip(fn.arg_names, args, strict=False))
    bound.update(given)
    for name, parameter in fn.signature.parameters.items():
        if name not in bound and parameter.default is not parameter.empty:
            bound[name] = parameter.default
    return {name: bound[name] for name in fn.arg_names if name in bound}


def evaluate_grid(grid: Any, meta: Mapping[str, Any]) -> tuple[int, int, int]:
    """The grid as three numbers; a function gets the bound arguments, as Triton calls it."""
    if callable(grid):
        grid = grid(dict(meta))
    sizes = [int(n) for n in (grid if isinstance(grid, (tuple, list)) else tuple(grid))]
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"a grid has one to three sizes, not {len(sizes)}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


class StandInKernel:
    """What a launch or a warm-up answers where nothing was loaded onto a device: the compiled texts and facts."""

    def __init__(
        self,
        recorder: LaunchRecorder,
        fn: Any,
        bound: Mapping[str, Any],
        options: Mapping[str, Any],
        compiled: Compiled | CompileError | None,
    ) -> None:
        self._recorder, self._fn, self._bound = recorder, fn, dict(bound)
        self._options, self._compiled = dict(options), compiled
        self.name = fn.__name__

    def _init_handles(self) -> None:
        pass

    @property
    def _ready(self) -> Compiled:
        if isinstance(self._compiled, Compiled):
            return self._compiled
        reason = self._compiled.message if self._compiled is not None else "it was not compiled in this run"
        raise RuntimeError(f"{self.name} has no compiled form: {reason}")

    @property
    def asm(self) -> dict[str, Any]:
        c = self._ready
        amd = c.arch.startswith("gfx")
        texts = {"ttir": c.ttir, "ttgir": c.ttgir, "llir": c.llir}
        return {**texts, **({"amdgcn": c.asm, "hsaco": c.code} if amd else {"ptx": c.asm, "cubin": c.code})}

    @property
    def metadata(self) -> Any:
        import types

        return types.SimpleNamespace(**self._ready.metadata)

    def _number(self, key: str) -> int:
        found = re.search(rf"\.{key}:?\s+(\d+)", self._ready.asm)
        if found is None:
            raise RuntimeError(f"{self.name}: {key} is not known without a GPU")
        return int(found.group(1))

    @property
    def n_regs(self) -> int:
        return self._number("vgpr_count")

    @property
    def n_spills(self) -> int:
        return self._number("vgpr_spill_count")

    @property
    def n_max_threads(self) -> int:
        return self._recorder.targets[0].max_threads_per_workgroup

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        names = self._fn.arg_names
        constants = {p.name for p in self._fn.params if p.is_constexpr}

        def launch(*args: Any, stream: Any = None, **kwargs: Any) -> Any:
            positions = names if len(args) >= len(names) else [n for n in names if n not in constants]
            values = {
                **{n: self._bound[n] for n in constants if n in self._bound},
                **dict(zip(positions, args, strict=False)),
            }
            return self._recorder.launch(self._fn, (), {**values, **self._options, **kwargs}, grid, lambda: None)

        return launch

    run = property(lambda self: self._unloadable)

    def _unloadable(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("a compiled kernel cannot be launched directly without a GPU")
