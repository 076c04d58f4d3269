"""`wavesmith emulate`: the compiled launches of a file, or a kernel of a code object, run on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli_capture import HarnessOption, JsonOption, TargetOption, WorkloadOption, request_for
from api.terminal import ProgressStyle, err, make_progress, out, show_json
from sandbox.errors import InputError
from sandbox.target import load_target

if TYPE_CHECKING:
    from agent.emulate_object import ObjectLaunch, ObjectRun
    from sandbox.trials import TrialLaunch

FileArgument = Annotated[Path, typer.Argument(help="Triton kernel file, or a code object (.hsaco).")]


def add_commands(app: typer.Typer) -> None:
    app.command()(emulate)


def emulate(
    file: FileArgument,
    target: TargetOption,
    harness: HarnessOption = None,
    workload: WorkloadOption = None,
    counters: Annotated[bool, typer.Option("--counters", help="Show what was counted.")] = False,
    schedule: Annotated[
        str, typer.Option(help="Order of waves: lockstep, sequential, reverse, random[:SEED] or all.")
    ] = "lockstep",
    kernel: Annotated[str | None, typer.Option(help="Code object: the kernel, if it has several.")] = None,
    grid: Annotated[str, typer.Option(help="Code object: workgroups, X[,Y[,Z]].")] = "1",
    block: Annotated[str | None, typer.Option(help="Code object: work-items per workgroup, X[,Y[,Z]].")] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option(help="Code object: a number, or TYPE:COUNT[:FILL] for a buffer (f32:1024:zeros). Once for each."),
    ] = None,
    dynamic_lds: Annotated[int, typer.Option(min=0, help="Code object: bytes of LDS beyond the kernel's own.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Run a file's compiled launches in the CPU emulator: does each end, what did it do that is forbidden, counts.

    Under several schedules also: do results depend on the order in which waves run?
    """
    from agent.emulate import parse_schedules
    from agent.emulate_object import ObjectLaunch, is_code_object

    schedules = parse_schedules(schedule)
    if is_code_object(file):
        wanted = ObjectLaunch(
            kernel, _sizes(grid, "--grid"), _sizes(block, "--block") if block else None, tuple(arg or ()), dynamic_lds
        )
        _emulate_object(file, target, wanted, schedules, counters, as_json)
    if kernel or block or arg or dynamic_lds or grid != "1":
        raise InputError("--kernel, --grid, --block, --arg and --dynamic-lds are for code objects.", file=file)
    if file.suffix in (".cu", ".cuh", ".hip"):
        raise InputError(
            "a HIP or CUDA source has no launch to emulate.", file=file,
            remedy="Compile it (clang -x hip --offload-arch=gfx950 --cuda-device-only --no-gpu-bundle-output -c) and "
            "give the code object, or use `wavesmith port`.",
        )  # fmt: skip
    _emulate_file(file, target, harness, workload, schedules, counters, as_json)


def _sizes(text: str, option: str) -> tuple[int, ...]:
    parts = text.split(",")
    if len(parts) > 3 or not all(p.strip().isdecimal() for p in parts):
        raise InputError(f"{option} {text!r} is not one to three numbers.", remedy=f"For example {option} 16,4.")
    return tuple(int(p) for p in parts)


def _emulate_file(
    file: Path, target: str, harness: Path | None, workload: Path | None, schedules: Sequence[str], counters: bool,
    as_json: bool,
) -> None:  # fmt: skip
    from agent.emulate import emulate_file

    request = request_for(file, target, harness, workload, "auto")
    done = emulate_file(request, make_progress(ProgressStyle.AUTO), schedules)
    if as_json:
        rows = [{"schedule": name, **asdict(x)} for name, launches in done.runs.items() for x in launches]
        show_json(
            {
                "complete": done.complete,
                "reason": done.reason,
                "disagreements": done.disagreements,
                "launches": rows,
            }
        )
    else:
        for name, launches in done.runs.items():
            _show_launches(launches, f" ({name})" if len(done.runs) > 1 else "", counters and name == schedules[0])
        for line in done.disagreements:
            out.print(line, markup=False)
        if done.reason:
            err.print(done.reason, markup=False)
    raise typer.Exit(0 if done.complete else 4 if done.wrong else 5)


def _show_launches(launches: Sequence[TrialLaunch], order: str, counters: bool) -> None:
    for launch in launches:
        state = "ran to its end" if launch.executed else f"not executed: {launch.reason}"
        out.print(f"{launch.kernel} {launch.grid}{order}: {state}", markup=False)
        for finding in launch.findings:
            out.print(f"  {finding}", markup=False)
        for name, value in sorted(launch.counters.items()) if counters else ():
            out.print(f"  {name} {value}", markup=False)


def _emulate_object(
    file: Path, target: str, wanted: ObjectLaunch, schedules: Sequence[str], counters: bool, as_json: bool
) -> None:
    from agent.emulate_object import differing, run_object

    runs = run_object(file, load_target(target), wanted, schedules)
    different = differing(runs)
    results = [run.result for run in runs.values()]
    if as_json:
        rows = [
            {
                "schedule": name,
                "kernel": run.kernel,
                "grid": run.grid,
                "block": run.block,
                "status": run.result.status,
                "reason": run.result.reason,
                "findings": [str(f) for f in run.result.findings],
                "printed": list(run.result.printed),
                "counters": dict(run.result.counters),
                "changed": run.changed,
            }
            for name, run in runs.items()
        ]
        show_json(
            {"complete": all(r.clean for r in results) and not different, "disagreements": different, "launches": rows}
        )
    else:
        for name, run in runs.items():
            _show_run(run, f" ({name})" if len(runs) > 1 else "", counters and name == schedules[0])
        for line in different:
            out.print(line, markup=False)
    wrong = different or any(r.findings or r.status in ("trapped", "deadlock") for r in results)
    raise typer.Exit(4 if wrong else 0 if all(r.completed for r in results) else 5)


_LINES = 20
"""Of what a kernel printed, shown; all of it is in the JSON."""


def _show_run(run: ObjectRun, order: str, counters: bool) -> None:
    result = run.result
    reason = "" if result.trap in result.findings else f": {result.reason}"
    state = "ran to its end" if result.completed else f"{result.status}{reason}"
    out.print(f"{run.kernel} {run.grid} x {run.block}{order}: {state}", markup=False)
    for finding in result.findings:
        out.print(f"  {finding}", markup=False)
    for line in result.printed[:_LINES]:
        out.print(f"  printed: {line.rstrip()}", markup=False)
    if len(result.printed) > _LINES:
        out.print(f"  and {len(result.printed) - _LINES} more", markup=False)
    for name, data in run.buffers.items():
        first = ", ".join(f"{x:g}" for x in data[:4].tolist())
        out.print(f"  {name}: {run.changed[name]} of {data.size} elements changed, from {first}", markup=False)
    for name, value in sorted(result.counters.items()) if counters else ():
        out.print(f"  {name} {value}", markup=False)
