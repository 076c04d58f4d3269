"""Child side: where the launch recorder hooks into Triton. Nothing of the user's file is changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sandbox import jit_graph
from sandbox.child_driver import run_once
from sandbox.child_launches import LaunchRecorder, StandInKernel, Surroundings, bind

_MAX_SAME_FAILURES = 3
_MAX_SWEEP_POINTS = 2


def install(recorder: LaunchRecorder, note: Callable[[str], None], gpu: bool) -> None:
    """Patch Triton's classes. On a GPU what Triton times is left alone."""
    from triton.runtime.jit import JITFunction

    native = JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if warmup:
            return (
                _warmup(recorder, self, args, kwargs)
                if not gpu
                else native(self, *args, grid=grid, warmup=True, **kwargs)
            )
        if not recorder.now.probe and not gpu:
            for hook in self.pre_run_hooks:
                hook(*args, **kwargs)
        launch: Callable[[], Any] = lambda: native(self, *args, grid=grid, warmup=False, **kwargs)  # noqa: E731
        if recorder.unobserved:
            return launch()
        return recorder.launch(self, args, kwargs, grid, launch)

    JITFunction.run = run
    _hook_heuristics(recorder)
    _shorten_sweeps(note)
    if gpu:
        _let_clocks_run(recorder)
    else:
        _hook_autotuner(recorder, note)
        _hook_benchmarks(recorder, note)


def _warmup(recorder: LaunchRecorder, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    recorder.now = Surroundings(benchmark=recorder.now.benchmark)
    with recorder.tracker.paused():
        bound = bind(fn, args, kwargs)
        options = {k: v for k, v in kwargs.items() if k not in fn.arg_names}
        compiled, _ = recorder.try_compile(fn, args, kwargs, None, recorder.targets[0])
    return StandInKernel(recorder, fn, bound, options, compiled)


def _hook_heuristics(recorder: LaunchRecorder) -> None:
    from triton.runtime.autotuner import Heuristics

    native = Heuristics.run

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder.now = replace(recorder.now, heuristics=(*recorder.now.heuristics, *self.values))
        return native(self, *args, **kwargs)

    Heuristics.run = run


def _hook_autotuner(recorder: LaunchRecorder, note: Callable[[str], None]) -> None:
    from triton.runtime.autotuner import Autotuner

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        key = _tuning_key(self, kwargs)
        known = self.cache.get(key)
        if isinstance(known, _Chosen):
            chosen = known
        else:
            chosen = _choose(recorder, self, args, kwargs)
            self.cache[key] = chosen
            if len(self.configs) > 1:
                self.pre_hook({**self.nargs, **kwargs, **chosen.config.all_kwargs()}, reset_only=True)
        self.best_config = config = chosen.config
        self.configs_timings = {}
        if config.pre_hook is not None:
            config.pre_hook({**self.nargs, **kwargs, **config.all_kwargs()})
        recorder.now = replace(recorder.now, autotune=chosen.record)
        answer = self.fn.run(*args, **kwargs, **config.all_kwargs())
        self.nargs = None
        return answer

    Autotuner.run = run


class _Chosen:
    """An assumed config, and the record of all of them."""

    def __init__(self, config: Any, record: dict[str, Any]) -> None:
        self.config = config
        self.record = record


def _tuning_key(tuner: Any, kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    known = {k: v for k, v in {**tuner.nargs, **kwargs}.items() if k in tuner.arg_names}
    key = [known[k] for k in tuner.keys if k in known]
    key += [str(v.dtype) for v in known.values() if hasattr(v, "dtype")]
    return tuple(k if isinstance(k, (int, float, str, bool, type(None))) else repr(k) for k in key)


def _choose(recorder: LaunchRecorder, tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Chosen:
    """The first config that fits the target, else the first; nothing is timed. Every config goes into the record.

    Configs with more threads than a workgroup may have are tried even after one that fits: a GPU's tuner meets them.
    When the first fail alike the others are not tried, except where the kernel itself may refuse a config.
    """
    configs = tuner.prune_configs(kwargs) if len(tuner.configs) > 1 else list(tuner.configs)
    records: list[dict[str, Any]] = []
    index: int | None = None
    failures: list[str] = []
    deadline = time.monotonic() + recorder.limits.compile_s
    picky = any("static_assert" in getattr(fn, "src", "") for fn in jit_graph.reachable(jit_graph.unwrap(tuner)))
    around = recorder.now
    try:
        for i, config in enumerate(configs):
            fits = reason = limit = shape = None
            hopeless = not picky and len(failures) >= _MAX_SAME_FAILURES and len(set(failures)) == 1
            wanted = index is None or _is_too_wide(recorder, config)
            if recorder.compile and wanted and not hopeless and time.monotonic() < deadline:
                recorder.now = Surroundings(probe=True)
                fits, reason, limit, shape = tuner.fn.run(*args, **{**kwargs, **config.all_kwargs()})
                if fits:
                    index = i if index is None else index
                else:
                    failures.append(str(reason))
            if shape is None:
                shape = _shape(tuner, kwargs, config)
            tried = {"fits": fits, "reason": reason, "limit_kind": limit}
            records.append({**_config_record(recorder, config, shape), **tried})
    finally:
        recorder.now = around
    index = index or 0
    record = {"configs": records, "index": index, "key": list(map(str, tuner.keys)), "total": len(tuner.configs)}
    return _Chosen(configs[index], record)


def _is_too_wide(recorder: LaunchRecorder, config: Any) -> bool:
    """Whether a config asks for more threads per workgroup than one of the targets has."""
    warps = config.all_kwargs().get("num_warps")
    return isinstance(warps, int) and any(warps > t.most_warps for t in recorder.targets)


def _shape(tuner: Any, kwargs: Mapping[str, Any], config: Any) -> tuple[int, int, int] | None:
    from sandbox.child_launches import evaluate_grid

    try:
        return evaluate_grid(kwargs.get("grid"), {**tuner.nargs, **kwargs, **config.all_kwargs()})
    except (KeyError, TypeError, ValueError, ZeroDivisionError, AssertionError, AttributeError):
        return None  # a heuristic may be missing: the launch itself computes it


def _config_record(recorder: LaunchRecorder, config: Any, shape: Any) -> dict[str, Any]:
    options = {k: v for k, v in config.all_kwargs().items() if k not in config.kwargs}
    return {
        "kwargs": {k: recorder.encoder.encode(v) for k, v in config.kwargs.items()},
        "options": {k: v if isinstance(v, (int, bool, str, float)) else str(v) for k, v in options.items()},
        "grid": list(shape) if shape is not None else None,
    }


def _let_clocks_run(recorder: LaunchRecorder) -> None:
    """What Triton times on a GPU, for an autotuner's choice or for the user, is timed as if nobody looked.

    A function that the user times is recorded once before; an autotuner launches its choice itself, afterwards.
    """
    import triton.testing
    from triton.runtime.autotuner import Autotuner

    def bench_of(timed: Callable[..., Any]) -> Callable[..., Any]:
        def bench(fn: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
            if not recorder.unobserved:
                with _benchmarking(recorder):
                    fn()
            with _unobserved(recorder):
                return timed(fn, *args, **kwargs)

        return bench

    triton.testing.do_bench = bench_of(triton.testing.do_bench)
    triton.testing.do_bench_cudagraph = bench_of(triton.testing.do_bench_cudagraph)
    time_config = Autotuner._bench

    def bench_config(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _unobserved(recorder):
            return time_config(self, *args, **kwargs)

    Autotuner._bench = bench_config


@contextmanager
def _unobserved(recorder: LaunchRecorder) -> Iterator[None]:
    before, recorder.unobserved = recorder.unobserved, True
    try:
        yield
    finally:
        recorder.unobserved = before


@contextmanager
def _benchmarking(recorder: LaunchRecorder) -> Iterator[None]:
    before = recorder.now.benchmark
    recorder.now = replace(recorder.now, benchmark=True)
    try:
        yield
    finally:
        recorder.now = replace(recorder.now, benchmark=before)


def _hook_benchmarks(recorder: LaunchRecorder, note: Callable[[str], None]) -> None:
    import triton.testing

    def bench(fn: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        note("triton.testing.do_bench ran each function once; its times are a fixed token: there is no GPU")
        with _benchmarking(recorder):
            return run_once(fn, *args, **kwargs)

    triton.testing.do_bench = bench
    triton.testing.do_bench_cudagraph = bench


def _shorten_sweeps(note: Callable[[str], None]) -> None:
    import triton.testing

    def sweep(self: Any, *args: Any, **kwargs: Any) -> Any:
        note(f"triton.testing.perf_report ran its first {_MAX_SWEEP_POINTS} sizes only")
        for plot in [self.benchmarks] if not isinstance(self.benchmarks, list) else self.benchmarks:
            for x in list(plot.x_vals)[:_MAX_SWEEP_POINTS]:
                names = plot.x_names
                values = x if isinstance(x, (tuple, list)) else [x] * len(names)
                for line in plot.line_vals:
                    self.fn(**dict(zip(names, values, strict=False)), **{plot.line_arg: line}, **plot.args)
        return [] if kwargs.get("return_df") else None

    triton.testing.Mark.run = sweep
