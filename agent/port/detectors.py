"""What compiled code gives away: bodies that vanished, traps nobody wrote, registers spilled, LDS that does not fit."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.port.build import UnitBuild
from agent.port.result import Finding
from sandbox.hip import HOST, HipBuild, KernelResources, disassemble
from sandbox.hip_source import HipSource, KernelFunction
from sandbox.target import load_target
from sandbox.toolchain import Toolchain

_TRAPS = re.compile(
    r"\b__trap\b|\bassert\s*\(|\b__brkpt\b|\b__builtin_trap\b|\babort\s*\(|\bCUDA_KERNEL_ASSERT|\btrap;"
)
_PADDING = re.compile(r"^(s_endpgm|s_nop\b|s_code_end)")
_UNPINNED = re.compile(
    r"\bhipcub::Warp(?:Reduce|Scan)\s*<\s*[\w:\s]+>|(?<![\w:])__(?:shfl|shfl_up|shfl_down|shfl_xor|ballot|any|all|activemask)\s*\("
)


def detect(build: UnitBuild, text: str, toolchain: Toolchain) -> list[Finding]:
    """Findings of one unit; `text` is its HIP source."""
    source = HipSource(text)
    findings = _unpinned_widths(build.unit, source)
    for pass_name, compiled in build.passes.items():
        if pass_name != HOST and compiled.code_object is not None:
            findings += _of_code(build.unit, source, compiled, toolchain)
    return findings


def _of_code(unit: str, source: HipSource, build: HipBuild, toolchain: Toolchain) -> list[Finding]:
    findings: list[Finding] = []
    own = [(k, f) for k in build.kernels if (f := kernel_function(source.kernels, k)) is not None]
    if not own:
        return findings
    instructions = disassemble(build.code_object or b"", toolchain)
    may_trap = _TRAPS.search(source.uncommented) is not None
    for kernel, function in own:
        line = function.line
        body = [i for i in instructions.get(kernel.symbol, ()) if not _PADDING.match(i)]

        def add(kind: str, message: str, blocker: bool, line: int = line, name: str = kernel.name) -> None:
            findings.append(Finding(kind, unit, line, message, blocker, name, build.pass_name))

        if not body and _has_code(source, function):
            add("empty-kernel", "the compiled kernel does nothing, but its source has a body", True)
        if any(i.startswith("s_trap") for i in body) and not may_trap:
            add("new-trap", "the compiled kernel can trap, and the source asks for none", True)
        _resource_findings(add, kernel, build.pass_name)
    return findings


def _resource_findings(add: object, kernel: KernelResources, arch: str) -> None:
    report = add
    assert callable(report)
    limit = load_target(arch).lds_bytes_per_workgroup
    if kernel.lds_bytes > limit:
        report("lds-over-limit", f"{kernel.lds_bytes} bytes of LDS, the limit is {limit}", True)
    if kernel.vgpr_spill_count or kernel.sgpr_spill_count:
        spills = kernel.vgpr_spill_count + kernel.sgpr_spill_count
        report("spills", f"{spills} registers spilled: correct, but slow; look at launch bounds and unrolling", False)


def _unpinned_widths(unit: str, source: HipSource) -> list[Finding]:
    return [
        Finding("unpinned-warp-width", unit, source.line_of(m.start()), f"{m.group().strip('( ')} takes 64 lanes", True)
        for m in _UNPINNED.finditer(source.masked)
        if "#define" not in source.text[source.line_span(source.line_of(m.start())).start : m.start()]
    ]


def kernel_function(functions: Sequence[KernelFunction], kernel: KernelResources) -> KernelFunction | None:
    """The source function a compiled kernel comes from: by its bare name, the last one when there are several."""
    name = kernel.name.replace("(anonymous namespace)::", "")
    bare = re.sub(r"<.*", "", name.split("(")[0]).split("::")[-1].split()[-1:]
    named = [f for f in functions if [f.name] == bare]
    return named[-1] if named else None


def _has_code(source: HipSource, function: KernelFunction) -> bool:
    inside = [t for t in source.code if function.body.start < t.start < function.body.end - 1]
    return any(t.text in ("=", "+=", "(", "++", "--", "-=", "*=", "/=", "|=") for t in inside)
