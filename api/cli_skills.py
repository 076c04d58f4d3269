"""`wavesmith skills`: what the library holds, whether it is sound, and what its skills have achieved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from agent.skill_draft import propose_skills
from agent.stats import hit_rates
from api.cli_replay import find_job
from api.settings import Settings
from api.terminal import out, show_json
from api.views import skill_view
from sandbox.errors import InputError
from skills.skill import Skill, load_library

if TYPE_CHECKING:
    from skills.cases import Case

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
def test(
    skills: Annotated[list[str] | None, typer.Argument(metavar="SKILL...", help="All without any.")] = None,
) -> None:
    """Run the golden cases of skills: each edit gives its `after`, and what must not change does not."""
    from skills.cases import cases_of  # reads Python kernels, which takes a parser that other commands do without

    wrong = 0
    for skill in map(_find, skills) if skills else load_library():
        for case in cases_of(skill):
            problem = _problem(case)
            wrong += problem is not None
            out.print(
                f"{'ok  ' if problem is None else 'FAIL'} {skill.id} {case.name} {problem or ''}".rstrip(), markup=False
            )
    raise typer.Exit(4 if wrong else 0)


def _problem(case: Case) -> str | None:
    """What is wrong with a case; None when it holds."""
    found = case.matches(case.before)
    if case.spec.refuses is not None and not any(case.spec.refuses in r.reason for r in found.refusals):
        return f"does not refuse with {case.spec.refuses!r}"
    edits = [m for m in found.matches if m.apply() is not None]
    if case.after is None:
        return f"changes the file: {edits[0].id}" if edits else None
    chosen = [m for m in edits if case.spec.site in (None, m.site.label)]
    if not chosen:
        return "finds no place to edit"
    edited = chosen[0].apply()
    return None if edited is not None and edited.source == case.after.source else f"{chosen[0].id} gives something else"


@app.command()
def propose(
    job: Annotated[str, typer.Argument(metavar="JOB_OR_DIR", help="A job of the service, or an --out folder.")],
    drafts: Annotated[Path, typer.Option("--out", help="Folder of the drafts.")] = Path("wavesmith-out/skill-drafts"),
) -> None:
    """Draft skills from what a model's proposals won in a job: a folder for a person to finish. Nothing loads it."""
    for draft in propose_skills(find_job(job, Settings()), drafts):
        out.print(f"{draft.folder}: {draft.attempt.title}", markup=False)


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
