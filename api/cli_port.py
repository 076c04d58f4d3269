"""`wavesmith port`: CUDA in, HIP out."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.events import Phase
from agent.job import Options
from api.model_options import AskedModel, repairer_of, with_model
from api.terminal import ProgressStyle, err, make_progress, out, show_json
from sandbox.errors import InputError

if TYPE_CHECKING:
    from agent.port.result import PortResult


def add_commands(app: typer.Typer) -> None:
    app.command()(port)


def port(
    path: Annotated[str, typer.Argument(help="A .cu file, folder, archive, Python file or repository URL.")],
    target: Annotated[list[str] | None, typer.Option("--target", "-t", help="One or more, with commas.")] = None,
    style: Annotated[str, typer.Option(help="hip: new .hip files; inplace: one file for both vendors.")] = "hip",
    to: Annotated[Path | None, typer.Option("--out", help="Folder for files, patch and report.")] = None,
    log: Annotated[Path | None, typer.Option(help="Text of a failed build.")] = None,
    include: Annotated[list[str] | None, typer.Option(help="Glob of files to port.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Glob of files to leave alone.")] = None,
    include_folder: Annotated[list[Path] | None, typer.Option("-I", help="Include folder of the build.")] = None,
    define: Annotated[list[str] | None, typer.Option("-D", help="Definition of the build.")] = None,
    contained: Annotated[bool, typer.Option("--contained", hidden=True)] = False,
    rules: Annotated[
        list[Path] | None, typer.Option(envvar="WAVESMITH_PORT_RULES", help="Rules of your own that you accepted.")
    ] = None,
    execute: Annotated[bool, typer.Option(help="Compare with the original in emulation.")] = True,
    model: Annotated[
        str | None, typer.Option(metavar="PROVIDER:NAME", help="Language model that may propose repairs.")
    ] = None,
    model_base_url: Annotated[str | None, typer.Option(help="Another server that speaks the same.")] = None,
    budget_usd: Annotated[str | None, typer.Option(help="Dollars the model may cost; 1 without.")] = None,
    budget_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens the model may use.")] = None,
    progress: Annotated[ProgressStyle, typer.Option(help="How progress is shown.")] = ProgressStyle.AUTO,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")] = False,
) -> None:
    """Port CUDA sources to HIP: rewritten, repaired until they build, and compared with the original."""
    from agent.port.loop import port as run_port  # the engine is loaded when it is needed
    from agent.port.request import PortRequest
    from agent.port.rule_table import accepted_rules

    if style not in ("hip", "inplace"):
        raise InputError(f"{style!r} is not a style.", remedy="Choose hip or inplace.")
    folder = to or Path("wavesmith-out") / f"{Path(path.rstrip('/')).stem or 'port'}-port"
    request = PortRequest(
        path=path,
        targets=tuple(t for given in target or ["gfx942,gfx950"] for t in given.split(",") if t),
        style="inplace" if style == "inplace" else "hip",
        out=folder,
        log=_log_text(log) if log is not None else None,
        include=tuple(include or ()),
        exclude=tuple(exclude or ()),
        include_folders=tuple(include_folder or ()),
        defines=tuple(define or ()),
        contained=contained,
        execute=execute,
        rules=tuple(rule for file in rules or () for rule in accepted_rules(file)),
    )
    shown = make_progress(progress)
    asked = AskedModel(model, model_base_url, budget_usd, budget_tokens)
    repairer = repairer_of(with_model(Options(), asked, os.environ), request.targets, folder, shown.step)
    request = replace(request, proposer=repairer)
    with shown.phase(Phase.VALIDATE):
        result = run_port(request, shown.step)
    shown.result(result.summary, outcome=result.outcome, exit_code=result.exit_code)
    if as_json:
        show_json(result.to_json())
    else:
        _show(result, folder)
    raise typer.Exit(result.exit_code)


def _log_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as e:
        raise InputError(
            f"the log cannot be read ({e.strerror}).", file=path, remedy="Give the text a failed build printed."
        ) from None


def _show(result: PortResult, folder: Path) -> None:
    """Summary and refusals on stderr, the patch on stdout."""
    from agent.port.rule_drafts import DRAFTS_FILE

    err.print(f"{result.outcome}: {result.summary}", markup=False)
    for refusal in result.refusals:
        err.print(f"  {refusal.file}:{refusal.line}: {refusal.reason} {refusal.route}", markup=False)
    for kernel in result.kernels:
        reason = f" ({kernel.reason})" if kernel.reason else ""
        err.print(f"  {kernel.kernel}: {kernel.evidence}{reason}", markup=False)
    for program in result.programs:
        reason = f" ({program.reason})" if program.reason else ""
        err.print(f"  {program.what} of {program.file}: {program.evidence}{reason}", markup=False)
    if result.exit_code == 0:
        if out.is_terminal:
            out.print(result.patch, markup=False)
        else:
            sys.stdout.buffer.write(result.patch.encode("utf-8", "replace"))
            sys.stdout.buffer.flush()
    if result.proposed_rules:
        err.print(f"Proposed rules, to be read and accepted: {folder / DRAFTS_FILE}", markup=False)
    err.print(f"Report: {folder / 'report.md'}", markup=False)
