"""The `wavesmith` command. Thin: each command reads its arguments, calls the engine and shows what came back.

Exit codes: 0 shown right, and better (or building now); 3 nothing better found; 4 refused or rejected; 5 inconclusive;
2 bad input; 1 our fault. `review`: 0 nothing at the threshold or above; 4 findings there; 2 and 1 as elsewhere.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from agent.companions import load_candidate, load_program
from agent.job import Budget, JobRequest, Options, parse_requirement
from agent.patch import repository_path
from agent.versions import toolchain_versions
from api import (
    cli_capture,
    cli_doctor,
    cli_emulate,
    cli_memory,
    cli_port,
    cli_profile,
    cli_replay,
    cli_review,
    cli_service,
    cli_skills,
)
from api.ending import heed_signals, status_told
from api.model_options import AskedModel, open_helper, with_model
from api.terminal import ProgressStyle, make_progress, show_error, show_json, show_result, show_verification
from sandbox.errors import WavesmithError
from sandbox.target import load_target

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
app.add_typer(cli_skills.app, name="skills")
app.add_typer(cli_memory.app, name="memory")
cli_capture.add_commands(app)
cli_emulate.add_commands(app)
cli_port.add_commands(app)
cli_doctor.add_commands(app)
cli_service.add_commands(app)
cli_profile.add_commands(app)
cli_review.add_commands(app)
cli_replay.add_commands(app)

TargetOption = Annotated[str, typer.Option("--target", "-t", help="Architecture or board: gfx950, gfx942, MI350X, ...")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
OUT_FOLDER = Path("wavesmith-out")


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Show the version and end.")] = False) -> None:
    """A GPU kernel written for NVIDIA goes in, a validated patch for AMD Instinct comes out."""
    if version:
        typer.echo(toolchain_versions().get("wavesmith", "unknown"))
        raise typer.Exit


@app.command()
def optimize(
    file: Annotated[Path, typer.Argument(help="Triton, HIP or CUDA kernel file.")],
    target: TargetOption,
    harness: Annotated[Path | None, typer.Option(help="Python file that imports and calls the kernel.")] = None,
    workload: Annotated[Path | None, typer.Option(help="workload.yaml, or a captured workload folder.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for patch and report.")] = None,
    path: Annotated[str | None, typer.Option(help="Path of the file in its repository, for the patch.")] = None,
    require: Annotated[str | None, typer.Option(help="Evidence level that a patch must reach.")] = None,
    allow_approx: Annotated[bool, typer.Option("--allow-approx", help="Allow edits that change results.")] = False,
    executor: Annotated[str, typer.Option(help="auto, gpu, emulator, interpreter or none.")] = "auto",
    seed: Annotated[int | None, typer.Option(help="Seed of the inputs candidates see; secret without.")] = None,
    budget_s: Annotated[float, typer.Option(min=1, help="Seconds the search may take.")] = Budget().wall_s,
    budget_minutes: Annotated[float | None, typer.Option(min=0.02, help="The same in minutes; wins.")] = None,
    budget_evaluations: Annotated[
        int, typer.Option(min=1, help="Candidates that may be judged.")
    ] = Budget().evaluations,
    model: Annotated[
        str | None,
        typer.Option(metavar="PROVIDER:NAME", help="Language model that may propose. Keys come from the environment."),
    ] = None,
    model_base_url: Annotated[str | None, typer.Option(help="Another server that speaks the same.")] = None,
    budget_usd: Annotated[str | None, typer.Option(help="Dollars the model may cost; 1 without.")] = None,
    budget_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens the model may use.")] = None,
    progress: Annotated[ProgressStyle, typer.Option(help="How progress is shown.")] = ProgressStyle.AUTO,
    as_json: JsonOption = False,
) -> None:
    """Find a better version of a kernel and prove it: patch and report."""
    from agent.orchestrator import optimize as run_optimize  # the engine is loaded when it is needed

    seconds = budget_s if budget_minutes is None else 60 * budget_minutes
    asked = AskedModel(model, model_base_url, budget_usd, budget_tokens)
    budget = Budget(seconds, budget_evaluations)
    options = Options(parse_requirement(require), allow_approx, executor, seed, budget)
    options = with_model(options, asked, os.environ)
    request = _request(file, target, harness, workload, options, path)
    folder = out or OUT_FOLDER / f"{file.stem}-{request.target.arch}"
    helper = open_helper(options, request.target.arch, os.environ)
    report = run_optimize(request, folder, make_progress(progress), helper)
    if as_json:
        show_json(report.model_dump(mode="json"))
    else:
        show_result(report, folder)
    raise typer.Exit(report.exit_code)


@app.command()
def verify(
    baseline: Annotated[Path, typer.Argument(help="The file as it was.")],
    candidate: Annotated[Path, typer.Argument(help="The file that shall replace it.")],
    target: TargetOption,
    harness: Annotated[Path | None, typer.Option(help="Python file that imports and calls the baseline.")] = None,
    workload: Annotated[Path | None, typer.Option(help="workload.yaml, or a captured workload folder.")] = None,
    require: Annotated[str | None, typer.Option(help="Evidence level demanded.")] = None,
    allow_approx: Annotated[bool, typer.Option("--allow-approx", help="Allow fewer bits in matrix products.")] = False,
    executor: Annotated[str, typer.Option(help="auto, gpu, emulator, interpreter or none.")] = "auto",
    progress: Annotated[ProgressStyle, typer.Option(help="How progress is shown.")] = ProgressStyle.AUTO,
    as_json: JsonOption = False,
) -> None:
    """Judge a candidate against a baseline: is it right, and is it better? It is assumed to cheat."""
    from agent.verify import verify as run_verify

    options = Options(require=parse_requirement(require), allow_approx=allow_approx, executor=executor)
    request = _request(baseline, target, harness, workload, options, None)
    result = run_verify(request, load_candidate(candidate, request.kernel), make_progress(progress))
    if as_json:
        show_json(result.model_dump(mode="json"))
    else:
        show_verification(result)
    raise typer.Exit(result.exit_code)


def _request(
    file: Path, target: str, harness: Path | None, workload: Path | None, options: Options, path: str | None
) -> JobRequest:
    kernel, runner = load_program(file, harness, workload)
    return JobRequest(
        kernel=kernel,
        target=load_target(target),
        path=path or repository_path(file, outside=kernel.filename),
        original=file.read_bytes(),
        harness=runner,
        workload=workload,
        options=options,
    )


_UsageError: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
"""Base of what typer raises for wrong options; some releases of it carry a copy of click of their own."""


_MAX_FAULT = 2000
"""Characters of a fault's own words; some name a whole syntax tree."""


def main() -> None:
    """Entry point of the console script."""
    heed_signals()
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    """Run one command; returns the exit code. The one place where every exception ends."""
    try:
        code = app(arguments, standalone_mode=False, prog_name="wavesmith")
    except _UsageError as e:
        e.show()  # type: ignore[attr-defined]
        return 2
    except (typer.Abort, KeyboardInterrupt, BrokenPipeError):
        return 130
    except WavesmithError as e:
        show_error(str(e))
        return e.exit_code
    except Exception as e:  # the top of the program: a fault of ours becomes exit code 1
        if (status := status_told()) is not None:
            return status
        if os.environ.get("WAVESMITH_DEBUG"):
            raise
        show_error(f"a fault of ours: {type(e).__name__}: {str(e)[:_MAX_FAULT]}. Set WAVESMITH_DEBUG=1 to see where.")
        return 1
    return code if isinstance(code, int) else 0
