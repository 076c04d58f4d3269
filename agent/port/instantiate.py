"""Instantiations for kernel templates that no code of the file instantiates, so that they can be compiled and tried."""

from __future__ import annotations

import itertools
import re

from sandbox.hip_source import HipSource, KernelFunction


def instantiation_names(function: KernelFunction) -> list[str]:
    """Spellings such as `k<float, 256>`; empty when a parameter is a template itself or a pack."""
    choices: list[str] = []
    for parameter in function.template:
        value = _choice(parameter.type, parameter.name)
        if value is None:
            return []
        choices.append(value)
    prefix = f"{function.namespace}::" if function.namespace else ""
    return [f"{prefix}{function.name}<{', '.join(choices)}>"]


def _choice(kind: str, name: str) -> str | None:
    if "..." in kind or "..." in name or kind.startswith("template"):
        return None
    if kind in ("typename", "class"):
        return "int" if re.search(r"int|idx|index|offset|size", name, re.I) else "float"
    if kind == "bool":
        return "true"
    if re.search(r"block|thread|tpb|\bnt\b|bdim", name, re.I):
        return "128"
    if re.search(r"warp", name, re.I):
        return "4"
    if re.search(r"vec|item|unroll|ilp|per", name, re.I):
        return "4"
    if re.fullmatch(r"(unsigned\s*)?(int|unsigned|size_t|short|long|int\d+_t|uint\d+_t|auto)(\s*(int|long))?", kind):
        return "32"
    return None


def with_instantiations(text: str, names: list[str]) -> str:
    """The text with host code that takes each instantiation's address, which makes the compiler emit it."""
    lines = [
        f"extern const void* const wavesmith_instance_{i};\n"
        f"const void* const wavesmith_instance_{i} = (const void*)&{name};"
        for i, name in zip(itertools.count(), names, strict=False)
    ]
    return text + "\n" + "\n".join(lines) + "\n"


def without_prints(text: str) -> str:
    """The text with `printf` of no effect behind its includes: it asks for a host, which the emulator is not."""
    source = HipSource(text)
    if not re.search(r"\bprintf\s*\(", source.masked):
        return text
    includes = [d for d in source.directives if d.name == "include"]
    if not includes:
        return text
    end = includes[-1].end
    return f"{text[:end]}\n#undef printf\n#define printf(...) (0)\n{text[end:].removeprefix(chr(10))}"
