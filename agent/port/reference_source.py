"""The original CUDA source made ready for the CPU model: device code kept, host code that talks to a GPU left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources

from agent.port.host_code import host_names, without_host_code, without_launch_macros
from agent.port.repair import port_rules
from agent.port.request import Project
from agent.shims.catalogue import load_catalogue
from sandbox.hip_source import Edit, HipSource, apply_edits
from sandbox.kernel import Kernel, Language
from sandbox.target import load_target
from skills.facts import Facts, target_facts
from skills.match import match
from skills.skill import Library

MODEL_FOLDER = "wavesmith_reference"
_SHARED_RULES = ("resolve-cuda-guards", "translate-inline-ptx", "fence-lockstep")
"""Rules that make the text one program for one compiler without touching what a warp is."""
_STANDARD = re.compile(
    r"^[a-z_]+$|^c[a-z]+$|^(stdint|stdio|stdlib|string|math|assert|float|limits|stddef|stdbool|inttypes)\.h$"
)


def reference_tree(project: Project, unit: str, kernels: Sequence[str], defines: Sequence[str] = ()) -> dict[str, str]:
    """Files of a program that describes and runs `kernels` (C++ spellings of instantiations) of `unit`, built with the
    build's own definitions."""
    files = {f"{MODEL_FOLDER}/{name}": text for name, text in _model_files().items()}
    host = host_names([*(f.text for f in project.sources.values()), *project.others.values()])
    for path, text in {**{p: f.text for p, f in project.sources.items()}, **project.others}.items():
        if path != unit and path.endswith((".cuh", ".h", ".hpp", ".hh", ".inl", ".cu", ".inc")):
            files[path] = device_text(path, text, project, host)
    up = "../" * unit.count("/")
    main = [
        f'#include "{up}{MODEL_FOLDER}/ptx_host.h"', *(_definition(d) for d in defines), '#line 1 "original"',
        device_text(unit, project.sources[unit].text, project, host),
        f'#include "{up}{MODEL_FOLDER}/driver.h"', _table(kernels),
    ]  # fmt: skip
    files[unit] = "\n".join(main) + "\n"
    return files


def _definition(given: str) -> str:
    name, equals, value = given.partition("=")
    return f"#define {name} {value if equals else 1}"


def _model_files() -> Mapping[str, str]:
    folder = resources.files("agent.port") / "reference"
    files = {r.name: r.read_text(encoding="utf-8") for r in folder.iterdir() if r.name.endswith(".h")}
    arithmetic = load_catalogue()["ptx_arithmetic"].text
    macros = {"WAVESMITH_FN": "static inline", "WAVESMITH_FN_PLAIN": "inline", "WAVESMITH_CTOR": "inline"}
    head = "#pragma once\n" + "".join(f"#define {name} {text}\n" for name, text in macros.items())
    files["ptx_arithmetic.h"] = head + arithmetic + "\n"
    files["ptx_host.h"] = files["ptx_host.h"].replace(
        '#include "cub.h"', '#include "cub.h"\n#include "ptx_arithmetic.h"'
    )
    return files


def _table(kernels: Sequence[str]) -> str:
    describe = "".join(
        f'  printf("{"," if i else ""}"); wavesmith_driver::describe(&{name});\n' for i, name in enumerate(kernels)
    )
    cases = "".join(f"    case {i}: return wavesmith_driver::bound(&{name}, args);\n" for i, name in enumerate(kernels))
    return f"""
int main(int argc, char** argv) {{
  if (argc < 3 || strcmp(argv[1], "run")) {{
  printf("[");
{describe}  printf("]\\n");
  return 0;
  }}
  return wavesmith_driver::run(argv[2], argv[3], [](unsigned kernel, void** args) -> std::function<void()> {{
    switch (kernel) {{
{cases}    }}
    wavesmith_reference::stop(wavesmith_reference::unsupported, "no such kernel");
  }});
}}
"""


def device_text(path: str, text: str, project: Project, host: frozenset[str] = frozenset()) -> str:
    """One file as the CPU model compiles it; lines keep their numbers. `host` are names only a host could use."""
    kernel = Kernel(text, path.rsplit("/", 1)[-1], Language.CUDA)
    target = load_target("gfx942")
    for rule in port_rules():
        if rule.id in _SHARED_RULES:
            found = match(kernel, Facts(target_facts(target)), target, Library({rule.id: rule}))
            for candidate in found.matches:
                kernel = candidate.apply() or kernel
    text = _without_foreign_includes(kernel.source, project)
    text = _dynamic_shared(text)
    return without_launch_macros(without_host_code(text, host))


def _without_foreign_includes(text: str, project: Project) -> str:
    source = HipSource(text)
    own = {name for path in (*project.sources, *project.others) for name in _suffixes(path)}
    edits = []
    for d in source.directives:
        m = re.search(r"[<\"]([^>\"]+)[>\"]", source.text[d.start : d.end]) if d.name == "include" else None
        if (
            m is not None
            and m.group(1) not in own
            and m.group(1).lstrip("./") not in own
            and not _STANDARD.match(m.group(1))
        ):
            edits.append(Edit(d.start, d.end, "//"))
    return apply_edits(text, edits)


def _suffixes(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[i:]) for i in range(len(parts)))


_EXTERN_SHARED = re.compile(
    r"extern\s+__shared__\s+(?P<align>(?:__align__\s*\([^)]*\)|alignas\s*\([^)]*\)|__attribute__\s*\(\([^)]*\)\))\s*)?"
    r"(?P<type>[\w:<>,\s]+?)\s*(?P<align2>__align__\s*\([^)]*\)\s*)?\b(?P<name>\w+)\s*\[\s*\]\s*;"
)


def _dynamic_shared(text: str) -> str:
    masked = HipSource(text).masked
    edits = [
        Edit(
            m.start(),
            m.end(),
            f"{m['type'].strip()}* const {m['name']} = ({m['type'].strip()}*)wavesmith_reference::dynamic_shared;",
        )
        for m in _EXTERN_SHARED.finditer(masked)
    ]
    return apply_edits(text, edits)
