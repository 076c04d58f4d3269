"""From repaired text to a HIP project: renamed, shimmed, with the compat header beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agent.port.rename import RenameTables, load_tables, rename_source
from agent.port.request import Project
from agent.port.result import Applied
from agent.shims.catalogue import entries_by_header
from agent.shims.generate import COMPAT_HEADER, ShimPlan, compat_header, plan_shims
from sandbox.hip_guards import dead_spans
from sandbox.hip_source import Edit, HipSource, Token, apply_edits
from sandbox.toolchain import Toolchain
from skills.cuda_edit import aliased_types, defined_names, plain_uses

SHIMS_FOLDER = "shims"


@dataclass(frozen=True)
class Assembled:
    """`files` maps the input path to the HIP text, `shims` paths below the output folder to texts."""

    files: Mapping[str, str]
    shims: Mapping[str, str]
    plan: ShimPlan


def new_path(path: str) -> str:
    """Where a ported file goes: `.cu` becomes `.hip`, headers keep their names."""
    return path.removesuffix(".cu") + ".hip" if path.endswith(".cu") else path


def rename_project(project: Project, texts: Mapping[str, str]) -> tuple[dict[str, str], list[Applied]]:
    """Every file's CUDA spellings replaced; what was replaced comes as one record per file."""
    tables: RenameTables = load_tables()
    own = frozenset([*project.sources, *project.others])
    own_names = frozenset(name for path in own for name in _suffixes(path))
    renamed: dict[str, str] = {}
    applied: list[Applied] = []
    for path, text in texts.items():
        fresh, renames, _ = rename_source(text, tables, torch=project.uses_torch, own_files=own_names)
        renamed[path] = fresh
        if renames:
            count = sum(r.count for r in renames)
            words = ", ".join(f"{r.old} -> {r.new}" for r in renames[:6])
            more = f" and {len(renames) - 6} more" if len(renames) > 6 else ""
            applied.append(Applied(path, "rename", f"{count} places: {words}{more} ({tables.origin})"))
    return renamed, applied


def _suffixes(path: str) -> Iterable[str]:
    parts = path.split("/")
    return ("/".join(parts[i:]) for i in range(len(parts)))


def assemble(texts: Mapping[str, str], toolchain: Toolchain) -> Assembled:
    """Shims planned over all files together, uses renamed, includes redirected. Idempotent."""
    sources = {path: HipSource(text) for path, text in texts.items()}
    words: set[str] = set()
    headers: dict[str, None] = {}
    for source in sources.values():
        words |= _live_words(source)
        headers |= dict.fromkeys(h for _, h in _shimmed_includes(source))
    own = frozenset().union(*(defined_names(s) for s in sources.values())) if sources else frozenset()
    types = frozenset().union(*(aliased_types(s) for s in sources.values()))
    plan = plan_shims(frozenset(words | _ptx_words(words, texts)), headers, toolchain, own=own, types=types)
    files = {path: _finish(path, source, plan, own) for path, source in sources.items()}
    shims: dict[str, str] = {}
    if plan.entries or any(COMPAT_HEADER in text for text in files.values()):
        shims[f"{SHIMS_FOLDER}/{COMPAT_HEADER}"] = compat_header(plan, toolchain)
    for header in headers:
        up = "../" * header.count("/")
        shims[f"{SHIMS_FOLDER}/{header}"] = f'#pragma once\n#include "{up}{COMPAT_HEADER}"\n'
    return Assembled(files, shims, plan)


def _live_words(source: HipSource) -> set[str]:
    dead = dead_spans(source)
    return {t.text for t in source.code if t.kind == "word" and not any(s.start <= t.start < s.end for s in dead)}


_PTX_ENTRIES: Mapping[str, str] = {
    r"wavesmith::ptx::": "ptx_arithmetic",
    r"ptx::(sqrt|rsqrt|rcp|sin|cos|lg2|ex2|tanh)<": "ptx_functions",
    r"ptx::\w+_r[mpz](_sat)?<": "ptx_directed",
    r"ptx::(at_|copy_to_shared|fence_|wait\(|address_|is_(shared|global|local)|plain|volatile_|streaming|system_|"
    r"(relaxed|acquire|release|acq_rel|sc)_)": "ptx_memory",
    r"ptx::(laneid|warpid|nwarpid|smid|nsmid|lanemask_|clock|globaltimer|gridid)": "ptx_registers",
    r"ptx::(shfl_|vote_|match_|redux_|activemask|sync_warp)": "ptx_warp",
}
"""What of the PTX functions a text calls, by pattern: their entries provide no CUDA name of their own."""


def _ptx_words(words: set[str], texts: Mapping[str, str]) -> set[str]:
    if "ptx" not in words:
        return set()
    joined = "\n".join(texts.values())
    return {f"entry:{entry}" for pattern, entry in _PTX_ENTRIES.items() if re.search(pattern, joined)}


def _shimmed_includes(source: HipSource) -> Iterable[tuple[Edit, str]]:
    for d in source.directives:
        if d.name != "include":
            continue
        line = source.text[d.start : d.end]
        m = re.search(r"<([^>]+)>|\"([^\"]+)\"", line)
        if m is None:
            continue
        name = m.group(1) or re.sub(rf"^(\.\./)*{SHIMS_FOLDER}/", "", m.group(2))
        if name in entries_by_header():
            yield Edit(d.start + m.start(), d.start + m.end(), name), name


def _finish(path: str, source: HipSource, plan: ShimPlan, project_own: frozenset[str]) -> str:
    up = "../" * path.count("/")
    edits = [Edit(e.start, e.end, f'"{up}{SHIMS_FOLDER}/{e.text}"') for e, _ in _shimmed_includes(source)]
    own = defined_names(source)
    uses: list[tuple[int, Token]] = list(plain_uses(source, frozenset(plan.renames)))
    edits += [Edit(t.start, t.end, plan.renames[t.text]) for _, t in uses if t.text not in own]
    edits += _unqualified(source, project_own)
    text = apply_edits(source.text, edits)
    include = f'#include "{up}{SHIMS_FOLDER}/{COMPAT_HEADER}"'
    if include in text or not _needs_compat(path, text, plan):
        return text
    if not plan.entries and "WAVESMITH_" not in text:
        return text if "hip/hip_runtime" in text else _with_first_include(text, "#include <hip/hip_runtime.h>")
    return _with_first_include(text, include)


def _unqualified(source: HipSource, own: frozenset[str]) -> list[Edit]:
    """`wavesmith::` in front of a name that another file of the project defines: there it is the project's."""
    code = source.code
    return [
        Edit(code[i - 2].start, t.start, "")
        for i, t in enumerate(code)
        if i >= 2 and t.text in own and code[i - 1].text == "::" and code[i - 2].text == "wavesmith"
    ]


def _needs_compat(path: str, text: str, plan: ShimPlan) -> bool:
    if path.endswith((".cu", ".hip")):
        return True
    symbols = {symbol for entry in plan.entries for symbol in entry.provides}
    return "wavesmith::" in text or "WAVESMITH_" in text or bool(symbols & HipSource(text).words)


def _with_first_include(text: str, line: str) -> str:
    """`line` before the first thing that is no comment."""
    source = HipSource(text)
    position = source.code[0].start if source.code else 0
    start = text.rfind("\n", 0, position) + 1
    return f"{text[:start]}{line}\n{text[start:]}"
