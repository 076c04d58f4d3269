"""`asm` statements become blocks of `wavesmith::ptx` calls."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sandbox.hip_asm import AMD_REGISTERS, AsmError, AsmStatement, asm_statements
from sandbox.hip_guards import KNOWN_ON_AMD, dead_spans
from sandbox.hip_ptx import translate_asm
from sandbox.hip_source import Edit, HipSource
from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import rewritten, sites
from skills.facts import Facts
from skills.skill import Refusal, Site

ELSEWHERE = re.compile(
    r"\bw?mma|wgmma|ldmatrix|stmatrix|movmatrix|mbarrier|tcgen05|cp\.(reduce\.)?async\.bulk|cluster|setmaxnreg|bar(rier)?\.(cta\.)?(sync|arrive)"
)
"""Instructions that a rule of their own refuses."""
ROUTE = "Write the statement in C++, or ask for the instruction to be added to the PTX table."


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site for all statements that can be translated, a refusal for each that cannot."""
    source = HipSource(kernel.source)
    edits, refused = _edits(source)
    yield from sites(source, edits, "PTX translated")
    yield from refused


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The statements that can be translated, replaced; the others stay."""
    return rewritten(kernel, _edits(HipSource(kernel.source))[0])


def _edits(source: HipSource) -> tuple[list[Edit], list[Refusal]]:
    dead = dead_spans(source, KNOWN_ON_AMD)
    edits: list[Edit] = []
    refused: list[Refusal] = []
    for found in asm_statements(source):
        if isinstance(found, tuple):
            line, reason = found
            refused.append(Refusal(f"an asm statement cannot be read: {reason}", line, ROUTE))
        elif any(s.start <= found.start < s.end for s in dead) or _is_amd(found):
            continue
        else:
            try:
                edits.append(Edit(found.start, found.end, translate_asm(found)))
            except AsmError as e:
                if ELSEWHERE.search(found.template):
                    continue
                refused.append(Refusal(f"inline PTX: {e}", found.line, ROUTE))
    return edits, refused


def _is_amd(statement: AsmStatement) -> bool:
    """Already AMD assembly: a register constraint NVIDIA does not have, an AMD mnemonic, an intrinsic as a label."""
    kinds = {o.kind for o in statement.operands}
    text = statement.template.strip()
    return (
        bool(kinds & AMD_REGISTERS)
        or text.startswith(("v_", "s_", "ds_", "global_", "buffer_", "flat_", "llvm.amdgcn.", ";"))
        or not text
    )
