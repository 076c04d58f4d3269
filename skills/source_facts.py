"""Facts that the source text alone gives, and the one function that puts all facts of a file together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import libcst as cst

from sandbox.hip_source import HipSource, KernelFunction
from sandbox.kernel import Kernel, Language
from sandbox.target import Target
from skills.condition import Value
from skills.facts import Facts, build_facts, worst
from skills.triton_source import TL, JitFunction, TritonSource, parse_triton, walk

AMD_OPTIONS = ("waves_per_eu", "matrix_instr_nonkdim", "kpack")


def collect_facts(
    kernel: Kernel,
    target: Target,
    *,
    observed: Mapping[str, Iterable[Mapping[str, Value]]] | None = None,
    file_values: Mapping[str, Value] | None = None,
    missing: Mapping[str, str] | None = None,
    allow_approx: bool = False,
) -> Facts:
    """Everything known about a file.

    `observed` maps a jit kernel to facts of its launches (`facts.launch_facts`), compile results and profiles
    (`facts.profile_facts`); `file_values` holds facts of the whole build, such as `compile.status` when importing
    the file already failed; `missing` says why others could not be collected.
    """
    parts: dict[str, list[Mapping[str, Value]]] = {n: list(v) for n, v in (observed or {}).items()}
    whole: dict[str, Value] = {}
    if kernel.language is Language.TRITON:
        source = parse_triton(kernel)
        for name, function in source.functions.items():
            if source.launches_of(name) or name in parts:
                parts.setdefault(name, []).append(kernel_source_facts(source, function))
        whole = worst(kernel_source_facts(source, f) for f in source.functions.values())
        whole.pop("kernel.name", None)
    elif kernel.language is Language.HIP:
        for device in HipSource(kernel.source).kernels:
            parts.setdefault(device.name, []).append(hip_source_facts(kernel, device))
    return build_facts(
        parts, target, file_values={**whole, **dict(file_values or {})}, missing=missing, allow_approx=allow_approx
    )


def kernel_source_facts(source: TritonSource, function: JitFunction) -> dict[str, Value]:
    """What a jit kernel and the jit functions it calls hold."""
    bodies = [f.node.body for f in source.callees(function)]
    called = {name for body in bodies for _, name in source.calls(body)}
    inner = {n.removeprefix(f"{TL}.") for n in called if n.startswith(f"{TL}.")}
    loops = [n for body in bodies for n in walk(body) if isinstance(n, cst.For)]
    options = {
        k
        for launch in source.launches_of(function.name)
        for a in launch.call.args
        if a.keyword is not None
        for k in (a.keyword.value,)
    }
    options |= {k for c in source.configs_of(function) for k in (*c.constants, *c.options)}
    return {
        "kernel.name": function.name,
        "source.has_dot": "dot" in inner,
        "source.has_dot_scaled": "dot_scaled" in inner,
        "source.has_inline_asm": "inline_asm_elementwise" in inner,
        "source.has_libdevice": any("libdevice." in n or n.startswith("math.") for n in inner),
        "source.has_atomic": any(n.startswith("atomic_") for n in inner),
        "source.has_range_loop": any(_loads_in(source, loop) for loop in loops),
        "source.has_store": "store" in inner,
        "source.is_autotuned": function.autotune is not None,
        "source.has_amd_options": any(o in options for o in AMD_OPTIONS),
        "source.uses_int64": any(
            isinstance(n, cst.Attribute) and n.attr.value == "int64" for b in bodies for n in walk(b)
        ),
    }


def hip_source_facts(kernel: Kernel, function: KernelFunction) -> dict[str, Value]:
    """What a `__global__` function holds."""
    body = HipSource(kernel.source).masked[function.body.start : function.body.end]
    return {
        "kernel.name": function.name,
        "source.has_atomic": re.search(r"\b(?:atomic|unsafeAtomic)[A-Z]\w*\s*\(|__hip_atomic_", body) is not None,
        "source.has_range_loop": re.search(r"\b(?:for|while)\s*\(", body) is not None,
    }


def imported_jit(kernel: Kernel) -> list[tuple[str, str]]:
    """Jit functions of the files beside it that the kernels of a file call, as (name, path of the file)."""
    if kernel.language is not Language.TRITON:
        return []
    source = parse_triton(kernel)
    imported = {name.rpartition(".")[2] for f in source.functions.values() for _, name in source.calls(f.node.body)}
    imported -= source.functions.keys()
    return [
        (name, path)
        for name in sorted(imported)
        for path, text in sorted(kernel.companions.items())
        if re.search(rf"\bjit\b.*\n(?:@.*\n)*def {re.escape(name)}\(", text)
    ]


def _loads_in(source: TritonSource, loop: cst.For) -> bool:
    return any(name == f"{TL}.load" for _, name in source.calls(loop.body))
