"""`wavesmith skills`: what the library holds, whether it is sound, and what its skills have achieved."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from agent.stats import hit_rates
from api.terminal import out, show_json
from api.views import skill_view
from sandbox.errors import InputError
from skills.skill import Skill, load_library

app = typer.Typer(no_args_is_help=True, help="The skill library.", rich_markup_mode=None)
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_skills(as_json: JsonOption = False) -> None:
    """Every skill: what it changes, for which languages and targets."""
    library = list(load_library())
    if as_json:
        show_json([skill_view(s) for s in library])
        return
    table = Table("skill", "kind", "languages", "targets", "title", box=None, padding=(0, 2, 0, 0))
    for skill in library:
        languages = ", ".join(skill.data.languages)
        table.add_row(skill.id, skill.data.kind, languages, ", ".join(skill.data.targets), skill.data.title)
    out.print(table)


def _find(skill_id: str) -> Skill:
    library = load_library()
    if skill_id not in library.skills:
        raise InputError(f"there is no skill {skill_id!r}.", remedy=f"Choose one of {', '.join(library.skills)}.")
    return library[skill_id]


@app.command()
def show(skill_id: Annotated[str, typer.Argument(metavar="SKILL")], as_json: JsonOption = False) -> None:
    """One skill in full: when it applies, why it works, what must move, where it was proven."""
    skill = _find(skill_id)
    if as_json:
        show_json(skill_view(skill))
        return
    data = skill.data
    lines = [f"{skill.id}: {data.title}", "", data.why.strip(), "", "Applies when:"]
    lines += [f"  {c}" for c in data.applies_when] or ["  the construct is found in the source"]
    lines += ["", "Must move:", *(f"  {e.metric} {e.direction}" for e in data.expects)]
    lines += ["", f"Numerics: {data.numerics}. {'Proven' if skill.proven else 'Unproven'} by timing."]
    lines += [
        f"  {p.target}, {p.workload}: {p.metric} {p.before:g} -> {p.after:g} {p.unit} ({p.level})"
        for p in data.proven_on
    ]
    lines += ["", "References:", *(f"  {r}" for r in data.references)]
    out.print("\n".join(lines), markup=False)


@app.command()
def stats(
    reports: Annotated[
        list[Path] | None, typer.Argument(help="Folders with reports; ./wavesmith-out without any.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Hit rates of the skills over the reports found below the given folders, with Wilson 95% intervals."""
    rates = hit_rates(reports or [Path("wavesmith-out")])
    if as_json:
        show_json([r.to_json() for r in rates])
        return
    table = Table("skill", "tried", "right", "kept", "kept share", box=None, padding=(0, 2, 0, 0))
    for r in rates:
        low, high = r.kept_interval
        table.add_row(
            r.skill, str(r.tried), str(r.equivalent), str(r.kept), f"{r.kept / r.tried:.0%} [{low:.0%}, {high:.0%}]"
        )
    out.print(table)
