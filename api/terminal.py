"""What the command line shows: progress while a job runs, the result at its end, errors in one line.

Progress and words for people go to stderr; stdout carries the product (the patch, or JSON), so that
`wavesmith optimize FILE --target gfx950 | git apply` works. Progress is shown only on a terminal.
"""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.syntax import Syntax
from rich.table import Table

from agent.events import Event, Progress, json_lines
from agent.report import Report

if TYPE_CHECKING:
    from agent.verify import Verification

_PIPED_WIDTH = None if sys.stdout.isatty() else 200
"""Tables keep their columns when nobody's terminal limits them."""

out = Console(highlight=False, soft_wrap=True, width=_PIPED_WIDTH)
err = Console(stderr=True, highlight=False, soft_wrap=True)


class ProgressStyle(StrEnum):
    AUTO = "auto"
    """`text` on a terminal, `none` when stderr is piped."""
    TEXT = "text"
    JSON = "json"
    """One JSON object per line on stderr."""
    NONE = "none"


class TextProgress:
    """Prints phases and attempts, and keeps the current step in one line that is rewritten."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None

    def __call__(self, event: Event) -> None:
        match event.kind:
            case "phase":
                self._console.print(f"[bold]{escape(event.message)}[/bold]")
            case "step":
                self._step(event.message)
            case "attempt":
                self._console.print(f"  {_MARKS.get(str(event.data.get('fate')), '·')} {escape(event.message)}")
            case _:
                self._stop()

    def _step(self, message: str) -> None:
        if not self._console.is_terminal:
            self._console.print(f"  · {escape(message)}")
        elif self._status is None:
            self._status = self._console.status(escape(message))
            self._status.start()
        else:
            self._status.update(escape(message))

    def _stop(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


_MARKS = {
    "kept": "[green]✓[/green]",
    "step": "[green]→[/green]",
    "dropped": "[red]✗[/red]",
    "unshown": "[yellow]?[/yellow]",
}


def make_progress(style: ProgressStyle) -> Progress:
    if style is ProgressStyle.JSON:
        return Progress(json_lines(sys.stderr))
    if style is ProgressStyle.TEXT or (style is ProgressStyle.AUTO and err.is_terminal):
        return Progress(TextProgress(err))
    return Progress()


_COLOURS = {0: "green", 3: "cyan", 4: "red", 5: "yellow"}


def show_result(report: Report, folder: Path) -> None:
    """The end of `optimize`: a summary for people on stderr, the patch on stdout."""
    colour = _COLOURS.get(report.exit_code, "red")
    err.print(f"[bold {colour}]{report.outcome}[/bold {colour}]: {escape(report.summary)}")
    for refusal in report.refusals:
        err.print(f"  line {refusal.line}: {escape(refusal.reason)} {escape(refusal.route)}")
    for offer in report.offers:
        err.print(f"  offered separately: {escape(offer.title)} ({folder / offer.patch}): {escape(offer.reason)}")
    if report.artifacts.patch is not None:
        _show_levels(report)
        patch = (folder / report.artifacts.patch).read_bytes()
        if out.is_terminal:
            out.print(Syntax(patch.decode(), "diff", background_color="default", word_wrap=False))
        else:
            sys.stdout.buffer.write(patch)
            sys.stdout.buffer.flush()
    err.print(f"Report: {folder / report.artifacts.markdown}")


def show_verification(result: Verification) -> None:
    """The end of `verify`: the verdict, the levels, and every check that was made."""
    colour = _COLOURS.get(result.exit_code, "red")
    out.print(f"[bold {colour}]{result.verdict}[/bold {colour}]: {escape(result.message)}")
    _show_levels(result)
    for check in result.correctness.checks:
        mark = "[green]✓[/green]" if check.passed else "[red]✗[/red]"
        out.print(f"  {mark} {escape(check.name)} {escape(check.detail)}")
    for statement in result.statements:
        out.print(f"  {escape(statement)}")


def _show_levels(report: Report | Verification) -> None:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    word = "validated" if report.correctness.validated else "not validated"
    table.add_row("correctness", f"{report.correctness.level} ({word})")
    table.add_row("speed", escape(f"{report.speed.level}  {report.speed.statement}"))
    for m in report.speed.metrics:
        table.add_row(
            "", escape(f"{m.name}: {m.before:g} → {m.after:g}" if None not in (m.before, m.after) else m.name)
        )
    err.print(table)


def show_json(data: Any) -> None:
    sys.stdout.write(json.dumps(data, indent=2, default=str) + "\n")


def show_error(message: str) -> None:
    err.print(f"[bold red]wavesmith:[/bold red] {escape(message)}")
