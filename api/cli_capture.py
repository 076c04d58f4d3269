"""`wavesmith compile` and `capture`: what a file launches, and whether it builds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from agent.companions import load_program
from agent.events import Progress
from agent.job import JobRequest, Options
from api.terminal import ProgressStyle, err, make_progress, out, show_json
from sandbox.target import load_target
from sandbox.workload import Workload, save

if TYPE_CHECKING:
    from agent.baseline import Baseline

FileArgument = Annotated[Path, typer.Argument(help="Triton kernel file.")]
TargetOption = Annotated[str, typer.Option("--target", "-t", help="Architecture or board: gfx950, gfx942, MI350X, ...")]
HarnessOption = Annotated[Path | None, typer.Option(help="Python file that imports and calls the kernel.")]
WorkloadOption = Annotated[Path | None, typer.Option(help="workload.yaml, or a captured workload folder.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_SHOWN = ("vgpr_count", "vgpr_spill_count", "scratch_bytes", "lds_bytes", "occupancy_waves_per_simd")


def add_commands(app: typer.Typer) -> None:
    app.command("compile")(compile_file)
    app.command("capture")(capture_command)


def request_for(file: Path, target: str, harness: Path | None, workload: Path | None, executor: str) -> JobRequest:
    """The job these options describe; raises `InputError` for what cannot be read."""
    kernel, runner = load_program(file, harness, workload)
    return JobRequest(
        kernel=kernel,
        target=load_target(target),
        path=file.name,
        original=file.read_bytes(),
        harness=runner,
        workload=workload,
        options=Options(executor=executor),
    )


def _take(
    file: Path, target: str, harness: Path | None, workload: Path | None, executor: str, progress: Progress
) -> Baseline:
    from agent.baseline import take_baseline  # the engine is loaded when it is needed

    return take_baseline(request_for(file, target, harness, workload, executor), progress)


def compile_file(
    file: FileArgument,
    target: TargetOption,
    harness: HarnessOption = None,
    workload: WorkloadOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compile every launch of a file for a target: resources, or the error with its source line."""
    progress = make_progress(ProgressStyle.AUTO)
    baseline = _take(file, target, harness, workload, "none", progress)
    measured = baseline.measurement
    if as_json:
        show_json(_json(baseline, load_target(target).arch))
    else:
        table = Table("kernel", *_SHOWN, box=None, padding=(0, 2, 0, 0))
        for kernel, metrics in sorted(measured.metrics.items()):
            table.add_row(escape(kernel), *(f"{metrics[n]:g}" if n in metrics else "?" for n in _SHOWN))
        if measured.metrics:
            out.print(table)
        for failure in measured.failures:
            out.print(f"{failure.kernel}: {failure.message.strip()}", markup=False)
            if failure.source_line:
                out.print(f"  line {failure.line}: {failure.source_line.strip()}", markup=False)
        if not baseline.launch_count:
            err.print("No kernel launch was recorded. Give a harness that calls the kernel with --harness.")
    raise typer.Exit(4 if not measured.builds else 0 if baseline.launch_count else 5)


def _json(baseline: Baseline, arch: str) -> dict[str, Any]:
    measured = baseline.measurement
    return {
        "arch": arch,
        "builds": measured.builds,
        "launches": [
            {"kernel": launch.kernel, "line": launch.line, "grid": launch.grid}
            for launch in baseline.stored.workload.launches
        ],
        "failures": [
            {"kernel": f.kernel, "message": f.message, "line": f.line, "source_line": f.source_line}
            for f in measured.failures
        ],
        "kernels": {name: dict(metrics) for name, metrics in measured.metrics.items()},
        "notes": list(baseline.notes),
    }


def capture_command(
    words: Annotated[list[str], typer.Argument(metavar="FILE | -- COMMAND...", help="A file, or a program to run.")],
    target: TargetOption,
    harness: HarnessOption = None,
    workload: WorkloadOption = None,
    kernel: Annotated[str, typer.Option(help="Program only: kernels whose name matches this expression.")] = "",
    max_launches: Annotated[int, typer.Option(min=1, help="Program only: launches kept per kernel.")] = 8,
    executor: Annotated[str, typer.Option(help="auto, gpu, emulator, interpreter or none.")] = "auto",
    save_to: Annotated[Path | None, typer.Option("--out", help="Folder of the workload, or of all of them.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a file, or your own program, once and keep launches, inputs and results as workloads that replay standalone.

    Options come before `--`: `wavesmith capture --target gfx950 --kernel rms -- python train.py`.
    """
    if len(words) == 1 and words[0].endswith(".py"):
        _capture_file(Path(words[0]), target, harness, workload, executor, save_to, as_json)
    else:
        _capture_program(words, target, kernel, max_launches, executor, save_to, as_json)


def _capture_file(
    file: Path,
    target: str,
    harness: Path | None,
    workload: Path | None,
    executor: str,
    save_to: Path | None,
    as_json: bool,
) -> None:
    baseline = _take(file, target, harness, workload, executor, make_progress(ProgressStyle.AUTO))
    folder = save(baseline.stored, save_to or Path("wavesmith-out") / f"{file.stem}-workload")
    recorded = baseline.stored.workload
    summary = {**_workload_json(recorded, folder), "executor": baseline.executor, "notes": list(baseline.notes)}
    _show_captures([summary], list(baseline.notes), as_json)
    raise typer.Exit(0 if recorded.launches else 5)


def _capture_program(
    words: list[str],
    target: str,
    kernel: str,
    max_launches: int,
    executor: str,
    save_to: Path | None,
    as_json: bool,
) -> None:
    from sandbox.program import capture_program

    taken = capture_program(
        words, load_target(target), kernel_regex=kernel, max_launches=max_launches, executor=executor
    )
    summaries = []
    for recording in taken.recordings:
        folder = (save_to or Path("wavesmith-out") / "program") / recording.path.stem
        save(recording.stored, folder)
        summary = _workload_json(recording.stored.workload, folder)
        summaries.append({**summary, "file": str(recording.path), "program_exit_code": taken.exit_code})
    _show_captures(summaries, [*taken.notes, *([taken.reason] if taken.reason else [])], as_json)
    raise typer.Exit(0 if summaries else 5)


def _workload_json(recorded: Workload, folder: Path) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "launches": len(recorded.launches),
        "kernels": list(recorded.kernels()),
        "entries": len(recorded.entries),
        "harness": recorded.outcome.status,
    }


def _launches(count: int) -> str:
    return "1 launch" if count == 1 else f"{count} launches"


def _show_captures(summaries: list[dict[str, Any]], notes: list[str], as_json: bool) -> None:
    if as_json:
        show_json({"workloads": summaries, "notes": notes})
        return
    for summary in summaries:
        kernels = ", ".join(summary["kernels"]) or "no kernel"
        out.print(f"{_launches(summary['launches'])} of {kernels} in {summary['folder']}", markup=False)
    for note in notes:
        err.print(f"note: {note}", markup=False)
