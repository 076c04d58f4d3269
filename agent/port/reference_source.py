"""The original CUDA source made ready for the CPU model: guards resolved, PTX as functions, no foreign headers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from agent.port.given import with_given_clocks
from agent.port.includes import PathIndex, closure
from agent.port.repair import port_rules
from agent.port.request import Project
from sandbox.hip_source import Edit, HipSource, apply_edits
from sandbox.kernel import Kernel, Language
from sandbox.target import load_target
from skills.facts import Facts, target_facts
from skills.match import match
from skills.skill import Library

_SHARED_RULES = ("resolve-cuda-guards", "translate-inline-ptx", "fence-lockstep")
"""Rules that make the text one program for one compiler without touching what a warp is."""
_SUFFIXES = (".cuh", ".h", ".hpp", ".hh", ".inl", ".cu", ".hip", ".inc")
_STANDARD = re.compile(
    r"^[a-z_]+$|^c[a-z]+$|^(stdint|stdio|stdlib|string|math|assert|float|limits|stddef|stdbool|inttypes)\.h$"
)


TABLE = "wavesmith_table"
"""What the compiler calls the lines that name the kernels, one a line, in its messages."""


def device_files(project: Project, unit: str, lanes: int = 32) -> dict[str, str]:
    """What `unit` includes of the project, itself too, in terms that the CPU model has; lines keep their numbers.

    With 64 `lanes` it is HIP, which has no guards for one compiler to resolve and no PTX.
    """
    texts = {**project.others, **{p: f.text for p, f in project.sources.items()}}
    paths = closure([unit], PathIndex.of(texts), texts.get)
    return {
        path: _device_text(path, texts[path], texts, lanes)
        for path in paths
        if path == unit or path.endswith(_SUFFIXES)
    }


def reference_tree(
    sliced: Mapping[str, str], unit: str, kernels: Sequence[str], defines: Sequence[str] = ()
) -> dict[str, str]:
    """Files of a program that describes and runs `kernels` (C++ spellings of instantiations) of `unit`, built with the
    build's own definitions. `sliced`: what they reach of the project."""
    main = [
        *(_definition(d) for d in defines), f'#line 1 "{unit}"', sliced[unit], f'#line 1 "{TABLE}"', _table(kernels),
    ]  # fmt: skip
    return {**sliced, unit: "\n".join(main) + "\n"}


def _definition(given: str) -> str:
    name, equals, value = given.partition("=")
    return f"#define {name} {value if equals else 1}"


def _table(kernels: Sequence[str]) -> str:
    """Kernel `i` is named on line `i + 1` and nowhere else."""
    lines = "".join(
        f"void wavesmith_describe_{i}() {{ wavesmith_driver::describe(&{name}); }} "
        f"std::function<void()> wavesmith_bound_{i}(void** args) {{ return wavesmith_driver::bound(&{name}, args); }}\n"
        for i, name in enumerate(kernels)
    )
    describe = "".join(f'  printf("{"," if i else ""}"); wavesmith_describe_{i}();\n' for i in range(len(kernels)))
    cases = "".join(f"    case {i}: return wavesmith_bound_{i}(args);\n" for i in range(len(kernels)))
    return f"""{lines}
int main(int argc, char** argv) {{
  if (argc < 4 || strcmp(argv[1], "run")) {{
  printf("[");
{describe}  printf("]\\n");
  return 0;
  }}
  return wavesmith_driver::several(argc - 2, argv + 2, [](unsigned kernel, void** args) -> std::function<void()> {{
    switch (kernel) {{
{cases}    }}
    wavesmith_reference::stop(wavesmith_reference::unsupported, "no such kernel");
  }});
}}
"""


def _device_text(path: str, text: str, own: Iterable[str], lanes: int) -> str:
    if lanes == 64:
        return _dynamic_shared(_without_foreign_includes(text, own))
    kernel = Kernel(with_given_clocks(text), path.rsplit("/", 1)[-1], Language.CUDA)
    target = load_target("gfx942")
    for rule in port_rules():
        if rule.id in _SHARED_RULES:
            found = match(kernel, Facts(target_facts(target)), target, Library({rule.id: rule}))
            for candidate in found.matches:
                kernel = candidate.apply() or kernel
    return _dynamic_shared(_without_foreign_includes(kernel.source, own))


def _without_foreign_includes(text: str, paths: Iterable[str]) -> str:
    source = HipSource(text)
    own = {name for path in paths for name in _suffixes(path)}
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


_ALIGN = r"(?:__align__\s*\([^)]*\)|alignas\s*\([^)]*\)|__attribute__\s*\(\([^)]*\)\))\s*"
_EXTERN_SHARED = re.compile(
    rf"extern\s+(?:{_ALIGN}|volatile\s+)*(?:__shared__\s+)?(?:{_ALIGN})?(?P<type>[A-Za-z_][\w:<>,\s]*?)\s*(?:__shared__\s+)?"
    rf"(?:{_ALIGN})?\b(?P<name>\w+)\s*\[\s*\]\s*;"
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
        if "__shared__" in m.group()
    ]
    return apply_edits(text, edits)
