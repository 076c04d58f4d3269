"""`wavesmith replay`: a stored job done again without a network."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from agent.job_record import RECORD_NAME, REPLAY_FOLDER
from api.settings import Settings
from api.terminal import ProgressStyle, err, make_progress, show_json, show_result
from sandbox.errors import InputError

if TYPE_CHECKING:
    from agent.replay_job import Replayed


def add_commands(app: typer.Typer) -> None:
    app.command()(replay)


def replay(
    job: Annotated[str, typer.Argument(metavar="JOB_OR_DIR", help="A job of the service, or an --out folder.")],
    out: Annotated[Path | None, typer.Option(help="Keep the result here.")] = None,
    progress: Annotated[ProgressStyle, typer.Option(help="How progress is shown.")] = ProgressStyle.AUTO,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")] = False,
) -> None:
    """Do a stored job again, with the stored replies of its model and no network; exits with 5 for another patch.

    An optimization, or a port that a model took part in.
    """
    from agent.port.record import has_port  # the engine is loaded when it is needed
    from agent.replay_job import replay_job

    stored = find_job(job, Settings())
    if has_port(stored):
        _replay_port(stored, out, progress, as_json)
    with tempfile.TemporaryDirectory(prefix="wavesmith-replay-") as scratch:
        folder = out or Path(scratch)
        replayed = replay_job(stored, folder, make_progress(progress))
        _show(replayed, folder, as_json)
    raise typer.Exit(replayed.report.exit_code if replayed.same_patch else 5)


def _replay_port(stored: Path, out: Path | None, style: ProgressStyle, as_json: bool) -> NoReturn:
    from agent.port.replay import replay_port  # the engine is loaded when it is needed

    with tempfile.TemporaryDirectory(prefix="wavesmith-replay-") as scratch:
        replayed = replay_port(stored, out or Path(scratch), make_progress(style).step)
    if as_json:
        show_json(
            {
                "same_files": replayed.same_files,
                "difference": replayed.difference,
                "result": replayed.result.to_json(),
            }
        )
    else:
        err.print(f"{replayed.result.outcome}: {replayed.result.summary}", markup=False)
        same = "Replayed: every file is that of the stored port, byte for byte."
        said = same if replayed.same_files else f"Replayed: not the same. {replayed.difference}"
        err.print(said, markup=False)
    raise typer.Exit(replayed.result.exit_code if replayed.same_files else 5)


def find_job(job: str, settings: Settings) -> Path:
    """The folder of a job: `job` itself, or the last attempt of the service's job of that id."""
    given = Path(job)
    if given.is_dir():
        return given
    if given.name == job:
        attempts = (settings.jobs_dir / job).glob(f"out-*/{REPLAY_FOLDER}/{RECORD_NAME}")
        found = sorted(attempts, key=lambda p: int(p.parent.parent.name.removeprefix("out-")))
        if found:
            return found[-1].parent.parent
    raise InputError(
        f"there is no finished job {job!r}.", remedy="Give an --out folder, or a job id and WAVESMITH_DATA_DIR."
    )


def _show(replayed: Replayed, folder: Path, as_json: bool) -> None:
    if as_json:
        show_json(
            {
                "same_patch": replayed.same_patch,
                "difference": replayed.difference,
                "report": replayed.report.model_dump(mode="json"),
            }
        )
        return
    show_result(replayed.report, folder)
    if replayed.same_patch:
        err.print("Replayed: the result is that of the stored job, byte for byte.", markup=False)
    else:
        err.print(f"Replayed: the patch is another one. {replayed.difference}", markup=False)
