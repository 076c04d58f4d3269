"""`wavesmith memory`: what earlier jobs with a model taught, and whether it still holds."""

from __future__ import annotations

from typing import Annotated

import typer

from agent.memory import Memory, memory_path, toolchain
from api.terminal import ProgressStyle, make_progress, out, show_json
from sandbox.errors import InputError

app = typer.Typer(no_args_is_help=True, help="What earlier jobs taught.", rich_markup_mode=None)
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ProgressOption = Annotated[ProgressStyle, typer.Option(help="How progress is shown.")]
_WIN = ("arch", "bottleneck", "title", "why", "effect", "level", "toolchain")
_FAILURE = ("arch", "bottleneck", "title", "reason", "count")


def _open() -> Memory:
    path = memory_path()
    if path is None:
        raise InputError("the memory is switched off.", remedy="Unset WAVESMITH_MEMORY.")
    return Memory(path)


@app.command("list")
def list_memory(as_json: JsonOption = False) -> None:
    """Wins that held twice, with the toolchain they were shown with, and ideas that did not help."""
    memory = _open()
    wins, failures = memory.wins(), memory.failures()
    if as_json:
        told = [{name: getattr(w, name) for name in _WIN} for w in wins]
        show_json({"wins": told, "failures": [dict(zip(_FAILURE, f, strict=True)) for f in failures]})
        return
    if not wins and not failures:
        out.print("Nothing is remembered yet.")
    for win in wins:
        stale = "" if win.toolchain == toolchain() else f" (shown with {win.toolchain}; run `wavesmith memory check`)"
        out.print(f"win      {win.arch}  {win.title}: {win.effect}{stale}", markup=False)
    for arch, _, title, reason, count in failures:
        out.print(f"failure  {arch}  {title}: {reason} ({count} times)", markup=False)


@app.command()
def check(progress: ProgressOption = ProgressStyle.AUTO) -> None:
    """Judge every win anew that was shown with other versions of the tools; one that no longer holds is dropped."""
    from agent.remember import check_wins  # the engine is loaded when it is needed

    results = check_wins(_open(), make_progress(progress))
    for win, holds, why in results:
        out.print(f"{'holds  ' if holds else 'dropped'} {win.arch}  {win.title}: {why}", markup=False)
    if not results:
        out.print("Every win was shown with the present tools.")
