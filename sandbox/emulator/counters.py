"""Instruction counts named as rocprofv3 names them, from how often each instruction ran: exact for what was run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sandbox.emulator.instruction import Instruction

_BRANCHES = ("s_branch", "s_cbranch", "s_setpc", "s_swappc", "s_call")
_SALU = frozenset({"SOP1", "SOP2", "SOPC", "SOPK"})
_VALU = frozenset({"VOP1", "VOP2", "VOPC", "VOP3", "VOP3P", "MAI"})


def classes_of(i: Instruction) -> tuple[str, ...]:
    """The SQ_INSTS_* counters one execution of an instruction adds to, without the prefix."""
    if i.encoding in _VALU:
        return ("VALU", "MFMA") if i.mnemonic.startswith(("v_mfma", "v_smfmac")) else ("VALU",)
    if i.mnemonic.startswith(_BRANCHES):
        return ("BRANCH",)
    if i.encoding in _SALU:
        return ("SALU",)
    if i.encoding == "SMEM":
        return ("SMEM",)
    if i.encoding == "DS":
        return ("LDS",)
    if i.encoding in ("GLOBAL", "SCRATCH", "MUBUF", "FLAT"):
        if i.mnemonic in ("buffer_inv", "buffer_wbl2"):
            return ()
        flat = ("FLAT",) if i.encoding == "FLAT" else ()
        reads = "_load_" in i.mnemonic or ("_atomic_" in i.mnemonic and bool(i.dst))
        return (*flat, "VMEM_RD" if reads else "VMEM_WR", *(("VMEM_ATOMIC",) if "_atomic_" in i.mnemonic else ()))
    return ()


def instruction_counters(executed: Iterable[tuple[Instruction, int]], waves: int) -> dict[str, int]:
    """SQ_WAVES, SQ_INSTS (all) and SQ_INSTS_* from pairs of instruction and number of executions."""
    counts: Counter[str] = Counter({"SQ_WAVES": waves, "SQ_INSTS": 0})
    for name in ("VALU", "MFMA", "SALU", "SMEM", "LDS", "FLAT", "VMEM_RD", "VMEM_WR", "VMEM_ATOMIC", "BRANCH"):
        counts[f"SQ_INSTS_{name}"] = 0
    for instruction, times in executed:
        counts["SQ_INSTS"] += times
        for name in classes_of(instruction):
            counts[f"SQ_INSTS_{name}"] += times
    return dict(counts)
