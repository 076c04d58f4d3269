"""`wavesmith profile` and `wavesmith trace`: what holds kernels back, and where a program's GPU time goes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from agent.companions import load_program
from agent.job import JobRequest, Options
from agent.profiling import KernelProfile, profile_counters, profile_file, roofline
from api.terminal import ProgressStyle, err, make_progress, out, show_json
from sandbox.capture import has_gpu
from sandbox.errors import InputError
from sandbox.profiler.dispatches import PcSample, ProfilerData
from sandbox.profiler.live import LiveOptions, profile_live
from sandbox.profiler.rocprof import find_rocprofv3, read_rocprof
from sandbox.profiler.roofline import peak
from sandbox.profiler.stalls import StallProfile, stall_profile
from sandbox.profiler.timeline import TraceSummary, capture_regex, compare, read_trace, worth_porting
from sandbox.target import Target, load_target

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add_commands(app: typer.Typer) -> None:
    app.command()(profile)
    app.command()(trace)


def profile(
    file: Annotated[Path | None, typer.Argument(help="Triton kernel file; or give --from.")] = None,
    path: Annotated[
        Path | None, typer.Option("--from", help="A rocprofv3 output file, or the folder it wrote.")
    ] = None,
    target: Annotated[str, typer.Option("--target", "-t", help="Architecture or board.")] = "",
    rocprof: Annotated[
        bool, typer.Option("--rocprof", help="Run rocprofv3 on the file's recorded calls here.")
    ] = False,
    harness: Annotated[Path | None, typer.Option(help="Python file that imports and calls the kernel.")] = None,
    workload: Annotated[Path | None, typer.Option(help="workload.yaml, or a captured workload folder.")] = None,
    kernel: Annotated[str | None, typer.Option(help="Only kernels whose name holds this text.")] = None,
    against: Annotated[
        list[Path] | None, typer.Option("--against", help="A candidate to place beside the file; as often as needed.")
    ] = None,
    pass_timeout_s: Annotated[float, typer.Option("--pass-timeout-s", help="Limit of each rocprofv3 pass.")] = 300.0,
    folder: Annotated[
        Path | None, typer.Option("--out", help="Folder of the roofline and of rocprofv3's files.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Name what holds each kernel back, with the numbers that show it and the most that removing it can give.

    From a file: its code object and its emulation, or with --rocprof real counters. From --from: what rocprofv3 wrote.
    With --against also of candidates, on one roofline with the file.
    """
    if (file is None) == (path is None):
        raise InputError("give a kernel file or --from, not both.", remedy="`wavesmith profile FILE --target gfx950`.")
    if not target:
        raise InputError("--target is missing.", remedy="Choose an architecture or a board, such as gfx950 or MI350X.")
    if against and file is None:
        raise InputError("--against needs the kernel file the candidates are compared with.")
    board = load_target(target)
    name = file.stem if file is not None else "rocprof"
    folder = folder or Path("wavesmith-out") / f"{name}-profile-{board.arch}"
    how = _How(board, harness, workload, kernel, pass_timeout_s if rocprof else None)
    first = how.read(path) if path is not None else how.take(file or Path(), folder)
    beside = [how.take(candidate, folder / candidate.stem) for candidate in against or ()]
    if not first.kernels and not first.samples:
        raise InputError("no kernel was found.", file=path or file, remedy="Profile with --kernel-trace or --pmc.")
    placed = [k for part in (first, *beside) for k in (part.labelled if beside else part.kernels)]
    svg = roofline(placed, board, f"{name} on {board.board.name}")
    if svg is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "roofline.svg").write_text(svg, encoding="utf-8")
    stalls = stall_profile(first.samples) if first.samples else None
    if as_json:
        drawn = str(folder / "roofline.svg") if svg is not None else None
        rows = {part.name: [k.to_json() for k in part.kernels] for part in beside}
        document = {"kernels": [k.to_json() for k in first.kernels], "stalls": asdict(stalls) if stalls else None}
        show_json({**document, "notes": first.notes, "roofline": drawn, **({"against": rows} if beside else {})})
        return
    for part in (first, *beside):
        _show_part(part, board, named=bool(beside))
    if stalls is not None:
        _show_stalls(stalls)
    said = f"Roofline: {folder / 'roofline.svg'}" if svg else "No roofline: operations, bytes or time are unknown."
    err.print(said, markup=False)


@dataclass(frozen=True, slots=True)
class _Part:
    """What one file or folder gave."""

    name: str
    kernels: tuple[KernelProfile, ...]
    notes: tuple[str, ...]
    samples: tuple[PcSample, ...] = ()
    counted: bool = False
    """From a profiler, so that its metrics are worth a table."""

    @property
    def labelled(self) -> list[KernelProfile]:
        """The kernels, with the file's name at their points."""
        return [
            replace(k, point=replace(k.point, label=f"{self.name}: {k.point.label}")) if k.point is not None else k
            for k in self.kernels
        ]


@dataclass(frozen=True, slots=True)
class _How:
    """How files are profiled. `pass_timeout_s` is None unless rocprofv3 is to run."""

    target: Target
    harness: Path | None
    workload: Path | None
    wanted: str | None
    pass_timeout_s: float | None

    def read(self, path: Path) -> _Part:
        return self._counted(path.name, read_rocprof(path))

    def take(self, file: Path, folder: Path) -> _Part:
        if self.pass_timeout_s is not None:
            data = _live(file, self.target, self.harness, self.workload, folder, self.pass_timeout_s)
            return self._counted(file.name, data)
        kernels, notes = _static(file, self.target, self.harness, self.workload)
        return _Part(file.name, tuple(k for k in kernels if self.wanted is None or self.wanted in k.kernel), notes)

    def _counted(self, name: str, data: ProfilerData) -> _Part:
        kernels = profile_counters(data, self.target, self.wanted)
        return _Part(name, kernels, tuple(data.notes), tuple(data.samples), counted=True)


def _show_part(part: _Part, target: Target, *, named: bool) -> None:
    if named:
        out.print(part.name, markup=False, style="bold")
    for profiled in part.kernels:
        _show(profiled, target, details=part.counted)
    for note in part.notes:
        err.print(f"note: {note}", markup=False)


def _job(file: Path, target: Target, harness: Path | None, workload: Path | None) -> JobRequest:
    kernel, runner = load_program(file, harness, workload)
    return JobRequest(
        kernel=kernel,
        target=target,
        path=file.name,
        original=file.read_bytes(),
        harness=runner,
        workload=workload,
        options=Options(executor="interpreter"),
    )


def _static(
    file: Path, target: Target, harness: Path | None, workload: Path | None
) -> tuple[tuple[KernelProfile, ...], tuple[str, ...]]:
    progress = make_progress(ProgressStyle.AUTO)
    baseline, kernels = profile_file(_job(file, target, harness, workload), progress)
    return kernels, baseline.notes


def _live(
    file: Path, target: Target, harness: Path | None, workload: Path | None, folder: Path, timeout_s: float
) -> ProfilerData:
    """rocprofv3 on the recorded calls. `ToolMissing` comes before the file is run."""
    from agent.baseline import take_baseline

    find_rocprofv3()
    progress = make_progress(ProgressStyle.AUTO)
    request = _job(file, target, harness, workload)
    baseline = take_baseline(request, progress)
    progress.step("running rocprofv3, once for the trace and once for each counter pass")
    executor = "gpu" if has_gpu() else "interpreter"
    options = LiveOptions(timeout_s=timeout_s, executor=executor)
    return profile_live(baseline.stored, request.kernel, target, folder / "rocprofv3", options)


def _show(profiled: KernelProfile, target: Target, *, details: bool) -> None:
    grid = f", grid {'x'.join(map(str, profiled.grid))}" if profiled.grid else ""
    note = f" ({profiled.note})" if profiled.note else ""
    out.print(
        f"{profiled.kernel}: {profiled.launches} launch{'es' if profiled.launches != 1 else ''}{grid}{note}",
        markup=False,
    )
    table = Table("bottleneck", "severity", "what shows it", "at most", box=None, padding=(0, 2, 0, 2))
    for b in profiled.bottlenecks:
        bound = f"{b.at_most:.2f}x" if b.at_most is not None else "unknown"
        table.add_row(b.name, f"{b.severity:.2f}", escape(b.statement), bound)
    if profiled.bottlenecks:
        out.print(table)
    else:
        out.print("  no bottleneck was found in what is known", markup=False)
    if profiled.point is not None:
        p, top = profiled.point, peak(target.board, profiled.dtype)
        out.print(
            f"  roofline: {p.intensity:.3g} FLOP/byte, {p.tflop_per_s:.3g} of {top:g} TFLOP/s {profiled.dtype}, "
            f"{p.time_us:.3g} us ({p.evidence})",
            markup=False,
        )
    if details:
        metrics = Table("metric", "value", "unit", "formula", box=None, padding=(0, 2, 0, 2))
        for m in profiled.profile:
            if m.value is not None:
                value = f"{m.value:.4g}" if isinstance(m.value, float) else str(m.value)
                metrics.add_row(m.name, value, m.unit, escape(m.formula))
        out.print(metrics)


def _show_stalls(stalls: StallProfile) -> None:
    out.print(f"{stalls.samples} PC samples; waiting for: " + _shares(stalls.reasons.items()), markup=False)
    for line in stalls.lines[:10]:
        out.print(f"  {line.share:6.1%}  {line.place}  {_shares(line.reasons.items())}", markup=False)


def _us(value: float | None) -> str:
    return "time unknown" if value is None else f"{value:,.1f} us"


def _shares(items: Iterable[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {share:.0%}" for name, share in list(items)[:4])


def trace(
    path: Annotated[Path, typer.Argument(help="A torch profiler, rocprofv3 or Proton trace.")],
    other: Annotated[Path | None, typer.Argument(help="A second run, to compare with.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Where a program's GPU time goes: by category, idle time, and the kernels worth porting first."""
    summary = read_trace(path)
    second = read_trace(other) if other is not None else None
    if as_json:
        pairs = [asdict(p) for p in compare(summary, second)] if second is not None else None
        show_json({"trace": _trace_json(summary), "other": _trace_json(second) if second else None, "compare": pairs})
        return
    times = f"span {_us(summary.span_us)}, kernels {_us(summary.kernel_us)}, idle {summary.idle_share:.0%}"
    launches = f"{summary.launches} launches ({summary.short_kernels} below 10 us)"
    out.print(f"{summary.path}: {times}, {launches}", markup=False)
    if second is None:
        table = Table("category", "time", "share", box=None, padding=(0, 2, 0, 2))
        for name, time_us in sorted(summary.categories.items(), key=lambda item: -item[1]):
            table.add_row(name, _us(time_us), f"{time_us / summary.kernel_us:.1%}" if summary.kernel_us else "")
    else:
        table = Table("category", summary.path, second.path, "ratio", box=None, padding=(0, 2, 0, 2))
        for pair in compare(summary, second):
            ratio = "" if pair.ratio is None else f"{pair.ratio:.2f}"
            table.add_row(pair.category, *("-" if t is None else _us(t) for t in (pair.a_us, pair.b_us)), ratio)
    out.print(table)
    out.print("Worth porting first:")
    for k in worth_porting(summary):
        out.print(f"  {k.share:6.1%}  {_us(k.total_us)}  {k.calls} calls  {k.name}", markup=False)
    expression = capture_regex(summary)
    if expression is not None:
        out.print("Record the Triton kernels among them:")
        out.print(f"  wavesmith capture --target gfx950 --kernel '{expression}' -- COMMAND", markup=False)


def _trace_json(summary: TraceSummary) -> dict[str, Any]:
    first = [k.name for k in worth_porting(summary)]
    return {
        **asdict(summary),
        "idle_share": summary.idle_share,
        "worth_porting": first,
        "capture_kernel": capture_regex(summary),
    }
