"""The original CUDA source made ready for the CPU model: device code kept, host code that talks to a GPU left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources

from agent.port.repair import port_rules
from agent.port.request import Project
from agent.shims.catalogue import load_catalogue
from sandbox.hip_source import Edit, HipSource, Token, apply_edits
from sandbox.kernel import Kernel, Language
from sandbox.target import load_target
from skills.facts import Facts, target_facts
from skills.match import match
from skills.skill import Library

MODEL_FOLDER = "wavesmith_reference"
_SHARED_RULES = ("resolve-cuda-guards", "translate-inline-ptx", "fence-lockstep")
"""Rules that make the text one program for one compiler without touching what a warp is."""
_HOST_WORDS = re.compile(
    r"^(cuda[A-Z]\w*|cu[A-Z]\w+|CU[a-z]\w+|cublas\w*|cudnn\w*|cufft\w*|cusparse\w*|cusolver\w*|nvtx\w*|nccl\w*|curandGenerator\w*"
    r"|thrust|torch|at|c10|py|pybind11|TORCH_\w+|AT_DISPATCH\w*|PYBIND11_\w+|CUDA_CHECK\w*|TORCH_CHECK|CHECK_\w+|CUmodule)$"
)
_STANDARD = re.compile(
    r"^[a-z_]+$|^c[a-z]+$|^(stdint|stdio|stdlib|string|math|assert|float|limits|stddef|stdbool|inttypes)\.h$"
)


def reference_tree(project: Project, unit: str, kernels: Sequence[str], defines: Sequence[str] = ()) -> dict[str, str]:
    """Files of a program that describes and runs `kernels` (C++ spellings of instantiations) of `unit`, built with the
    build's own definitions."""
    files = {f"{MODEL_FOLDER}/{name}": text for name, text in _model_files().items()}
    for path, text in {**{p: f.text for p, f in project.sources.items()}, **project.others}.items():
        if path != unit and path.endswith((".cuh", ".h", ".hpp", ".hh", ".inl", ".cu", ".inc")):
            files[path] = device_text(path, text, project)
    up = "../" * unit.count("/")
    main = [
        f'#include "{up}{MODEL_FOLDER}/ptx_host.h"', *(_definition(d) for d in defines), '#line 1 "original"',
        device_text(unit, project.sources[unit].text, project),
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


def device_text(path: str, text: str, project: Project) -> str:
    """One file as the CPU model compiles it; lines keep their numbers."""
    kernel = Kernel(text, path.rsplit("/", 1)[-1], Language.CUDA)
    target = load_target("gfx942")
    for rule in port_rules():
        if rule.id in _SHARED_RULES:
            found = match(kernel, Facts(target_facts(target)), target, Library({rule.id: rule}))
            for candidate in found.matches:
                kernel = candidate.apply() or kernel
    text = _without_foreign_includes(kernel.source, project)
    text = _dynamic_shared(text)
    return _without_launch_macros(_without_host_code(text))


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


def _without_launch_macros(text: str) -> str:
    """Bodies of macros that launch kernels, and file-scope uses of such macros, blanked."""
    source = HipSource(text)
    edits = [Edit(d.start, d.end, _blanked(text[d.start : d.end])) for d in source.directives
             if d.name == "define" and "<<<" in d.body]  # fmt: skip
    return apply_edits(text, edits)


def _blanked(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _launch_macros(source: HipSource) -> frozenset[str]:
    """Macros that expand to a launch: whoever calls one is host code."""
    names = [re.match(r"\w+", d.body) for d in source.directives if d.name == "define" and "<<<" in d.body]
    return frozenset(m.group() for m in names if m is not None)


def _without_host_code(text: str) -> str:
    """Functions and declarations at namespace scope that only a host with a GPU could run, blanked."""
    source = HipSource(text)
    spans = [(d.start, d.end) for d in source.directives]
    launching = _launch_macros(source)
    code = [t for t in source.code if not any(s <= t.start < e for s, e in spans)] if spans else list(source.code)
    blank: list[tuple[int, int]] = []
    i = start = 0
    while i < len(code):
        text_ = code[i].text
        if text_ == "{":
            declaration = [t.text for t in code[start:i]]
            close = _matching(code, i)
            if "namespace" in declaration or ("extern" in declaration and '"C"' in declaration):
                i += 1
                start = i
                continue
            if _is_host_function(declaration, code[i : close + 1], launching):
                blank.append((code[start].start, code[min(close, len(code) - 1)].end))
            i = close + 1
            if i < len(code) and code[i].text == ";":
                i += 1
            start = i
            continue
        if text_ == "}":
            start = i + 1
        elif text_ == ";":
            if _is_host_declaration([t.text for t in code[start : i + 1]]):
                blank.append((code[start].start, code[i].end))
            start = i + 1
        i += 1
    pieces = list(text)
    for begin, end in blank:
        for k in range(begin, end):
            if pieces[k] != "\n":
                pieces[k] = " "
    return "".join(pieces)


def _matching(code: Sequence[Token], opening: int) -> int:
    depth = 0
    for i in range(opening, len(code)):
        depth += (code[i].text == "{") - (code[i].text == "}")
        if depth == 0:
            return i
    return len(code) - 1


_DEVICE_WORDS = {"__device__", "__global__", "__constant__", "__shared__"}


def _is_host_function(declaration: Sequence[str], body: Sequence[Token], launching: frozenset[str]) -> bool:
    words = set(declaration)
    if words & _DEVICE_WORDS or ({"struct", "class", "union", "enum"} & words and ")" not in declaration[-3:]):
        return False
    if "main" in words or any(_HOST_WORDS.match(w) for w in words):
        return True
    if any(t.text in launching for t in body):
        return True
    return any(t.text == "<<<" or (t.kind == "word" and _HOST_WORDS.match(t.text)) for t in body)


def _is_host_declaration(words: Sequence[str]) -> bool:
    if _DEVICE_WORDS & set(words) or (words and words[0] in ("using", "typedef") and "cuda" not in "".join(words)):
        return False
    if words[:1] == ["template"] and "__global__" in words:
        return False
    return any(_HOST_WORDS.match(w) for w in words) or "<<<" in words
