"""`wavesmith profile` and `wavesmith trace`: what rocprofv3, Proton and torch profiler files say, in one table each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from api.terminal import err, out, show_json
from sandbox.errors import InputError
from sandbox.profiler.counters import metrics_of
from sandbox.profiler.dispatches import Dispatch, ProfilerData
from sandbox.profiler.rocprof import read_rocprof
from sandbox.profiler.stalls import stall_profile
from sandbox.profiler.timeline import TraceSummary, compare, read_trace, worth_porting
from sandbox.target import Target, load_target

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add_commands(app: typer.Typer) -> None:
    app.command()(profile)
    app.command()(trace)


def profile(
    path: Annotated[Path, typer.Option("--from", help="A rocprofv3 output file, or the folder it wrote.")],
    target: Annotated[str, typer.Option("--target", "-t", help="Architecture or board it ran on.")],
    kernel: Annotated[str | None, typer.Option(help="Only kernels whose name holds this text.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Read counters, times and PC samples that rocprofv3 wrote, and give them names, units and formulas."""
    board = load_target(target)
    data = read_rocprof(path)
    rows = [_kernel_row(name, group, data, board) for name, group in _by_kernel(data, kernel)]
    if not rows and not data.samples:
        raise InputError("no kernel dispatch was found.", file=path, remedy="Profile with --kernel-trace or --pmc.")
    stalls = stall_profile(data.samples) if data.samples else None
    if as_json:
        show_json({"kernels": rows, "stalls": asdict(stalls) if stalls else None, "notes": data.notes})
        return
    for row in rows:
        out.print(f"{row['kernel']}: {row['calls']} calls, {_us(row['total_us'])}", markup=False)
        table = Table("metric", "value", "unit", "formula", box=None, padding=(0, 2, 0, 2))
        for m in row["metrics"]:
            value = (
                m["reason"]
                if m["value"] is None
                else f"{m['value']:.4g}"
                if isinstance(m["value"], float)
                else str(m["value"])
            )
            table.add_row(m["name"], value, m["unit"], m["formula"])
        out.print(table, markup=False)
    if stalls is not None:
        out.print(f"{stalls.samples} PC samples; waiting for: " + _shares(stalls.reasons.items()), markup=False)
        for line in stalls.lines[:10]:
            out.print(f"  {line.share:6.1%}  {line.place}  {_shares(line.reasons.items())}", markup=False)
    for note in data.notes:
        err.print(f"note: {note}", markup=False)


def _by_kernel(data: ProfilerData, wanted: str | None) -> Iterator[tuple[str, list[Dispatch]]]:
    """User kernels, the one with most time first."""
    groups: dict[str, list[Dispatch]] = {}
    for dispatch in data.dispatches:
        if not dispatch.is_runtime and (wanted is None or wanted in dispatch.kernel):
            groups.setdefault(dispatch.kernel, []).append(dispatch)
    yield from sorted(groups.items(), key=lambda item: (-(_total_us(item[1]) or 0.0), item[0]))


def _kernel_row(name: str, group: list[Dispatch], data: ProfilerData, target: Target) -> dict[str, Any]:
    """One kernel; the metrics are those of its longest dispatch, or of one with counters where none has a time."""
    longest = max(group, key=lambda d: (d.duration_ns or 0, len(d.counters)))
    metrics = metrics_of(longest, data.agent(longest.agent_id), target, "rocprofv3")
    return {
        "kernel": name,
        "calls": len(group),
        "total_us": _total_us(group),
        "metrics": [m.to_json() for m in metrics.values() if m.value is not None],
    }


def _total_us(group: Iterable[Dispatch]) -> float | None:
    times = [d.duration_ns for d in group if d.duration_ns is not None]
    return sum(times) / 1000 if times else None


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


def _trace_json(summary: TraceSummary) -> dict[str, Any]:
    first = [k.name for k in worth_porting(summary)]
    return {**asdict(summary), "idle_share": summary.idle_share, "worth_porting": first}
