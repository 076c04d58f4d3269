"""The documentation page of a skill, written from its data alone."""

from __future__ import annotations

from skills.facts import VOCABULARY
from skills.skill import Library, Skill

_KIND = {"repair": "makes a file build or launch", "tune": "makes a kernel faster"}
_NUMERICS = {
    "exact": "results stay bit-identical",
    "rounding": "results may round differently",
    "approximate": "results may differ beyond rounding; needs `--allow-approx`",
}


def docs_page(skill: Skill) -> str:
    """Markdown: what it changes, when it applies, why it works, what must move, and what has been shown."""
    data = skill.data
    lines = [f"# {data.title}", "", f"`{data.id}` · {data.kind}: {_KIND[data.kind]} · {_NUMERICS[data.numerics]}", ""]
    lines += [
        f"Languages: {', '.join(data.languages)}. Targets: {', '.join(data.targets)}.",
        "",
        "## Why",
        "",
        data.why.strip(),
        "",
    ]
    lines += ["## Applies when", ""]
    lines += [f"- `{c.text}` ({VOCABULARY[c.fact]})" for c in skill.conditions] or ["- the source holds the construct"]
    lines += ["", "## What must move", ""]
    lines += [f"- `{e.metric}`: {e.direction}" for e in data.expects]
    if data.invisible_to_interpreter:
        lines += ["", "The interpreter does not see this edit: equivalence rests on the emulator or a GPU."]
    for title, ids in (
        ("Needs before it", data.requires),
        ("Comes after", data.after),
        ("Excludes", data.conflicts),
    ):
        if ids:
            lines += ["", f"{title}: {', '.join(f'`{i}`' for i in ids)}."]
    lines += ["", "## Shown on", ""]
    lines += [
        f"- {p.target}, {p.workload}: {p.metric} {p.before:g} -> {p.after:g} {p.unit} ({p.level}; {p.versions})"
        + (f". {p.note}" if p.note else "")
        for p in data.proven_on
    ] or ["- nothing yet: unproven"]
    lines += ["", "## References", ""] + [f"- {r}" for r in data.references]
    return "\n".join(lines) + "\n"


def docs_index(library: Library) -> str:
    """Markdown table of every skill."""
    rows = ["| skill | kind | what it does | shown |", "|---|---|---|---|"]
    for skill in library:
        shown = "measured" if skill.proven else skill.data.proven_on[0].level if skill.data.proven_on else "unproven"
        rows.append(f"| `{skill.id}` | {skill.data.kind} | {skill.data.title} | {shown} |")
    return "\n".join(rows) + "\n"
