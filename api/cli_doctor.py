"""`wavesmith doctor`: what this machine can prove, and how to make it prove more."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from api.terminal import ProgressStyle, err, make_progress, out, show_json

_REPORT = Path("wavesmith-selftest.json")


def add_commands(app: typer.Typer) -> None:
    app.command()(doctor)


def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Prepare the HIP compiler and the emulator's core.")] = False,
    selftest: Annotated[bool, typer.Option("--selftest", help="Run known kernels and write a report.")] = False,
    report: Annotated[Path, typer.Option("--out", help="File of the self-test's report.")] = Path(
        "wavesmith-selftest.json"
    ),
    sdc: Annotated[
        bool, typer.Option("--sdc", help="Repeat kernels on every GPU and vote on their results: silent corruption.")
    ] = False,
    file: Annotated[Path | None, typer.Option("--file", help="With --sdc: a kernel file to repeat instead.")] = None,
    repeats: Annotated[int, typer.Option("--repeats", min=2, help="With --sdc: repetitions on each GPU.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Look at this machine: tools, devices, isolation, and the evidence it allows per target."""
    from agent import doctor as machine  # the engine is loaded when it is needed

    if fix:
        machine.fix(lambda line: err.print(line, markup=False))
    if selftest:
        _selftest(report, as_json)
        return
    if sdc:
        _sdc(file, repeats, as_json)
        return
    found = list(machine.findings())
    gpus = machine.visible_gpus()
    reach = machine.reach(gpus)
    if as_json:
        levels = [{"arch": r.arch, "correctness": str(r.correctness), "speed": str(r.speed)} for r in reach]
        show_json({"findings": [asdict(f) for f in found], "gpus": [asdict(g) for g in gpus], "reach": levels})
    else:
        for finding in found:
            mark = "[green]✓[/green]" if finding.ok else "[red]✗[/red]"
            out.print(f"{mark} {finding.name}: {escape(finding.detail)}")
            if finding.remedy:
                out.print(f"    {escape(finding.remedy)}")
        table = Table("target", "correctness up to", "speed up to", box=None, padding=(0, 2, 0, 0))
        for r in reach:
            table.add_row(r.arch, str(r.correctness), str(r.speed))
        out.print(table)
    failed = fix and any(f.name == "hip compiler" and not f.ok for f in found)
    raise typer.Exit(1 if failed else 0)


def _selftest(report: Path, as_json: bool) -> None:
    import json

    from agent.selftest import selftest

    result = selftest(make_progress(ProgressStyle.AUTO))
    report.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if as_json:
        show_json(result)
    else:
        for kernel in result["kernels"]:
            mark = "[green]✓[/green]" if kernel["passed"] else "[red]✗[/red]"
            out.print(
                f"{mark} {kernel['kernel']} for {kernel['arch']} ({kernel['executor']}): {escape(kernel['detail'])}"
            )
        err.print(f"Report: {report}", markup=False)
    raise typer.Exit(0 if result["passed"] else 1)


def _sdc(file: Path | None, repeats: int, as_json: bool) -> None:
    from agent.corruption import check_machine

    results = check_machine(file, repeats, make_progress(ProgressStyle.AUTO))
    if as_json:
        show_json({name: asdict(report) for name, report in results.items()})
    else:
        for name, report in results.items():
            mark = {"clean": "[green]✓[/green]", "corrupt": "[red]✗[/red]"}.get(report.outcome, "[yellow]?[/yellow]")
            where = f"{report.results} results x {report.repeats} on {', '.join(report.devices)}"
            out.print(f"{mark} {escape(name)}: {report.outcome}; {escape(where)}")
            for sentence in report.sentences:
                out.print(f"    {sentence}", markup=False)
    outcomes = {report.outcome for report in results.values()}
    raise typer.Exit(4 if "corrupt" in outcomes else 5 if outcomes != {"clean"} else 0)
