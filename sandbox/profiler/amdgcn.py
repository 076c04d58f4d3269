"""Reads AMDGCN assembly: kernels, their resources, and each instruction with its class, loop depth and source line.

Works on what LLVM prints for Triton kernels and for HIP (`clang++ -S`): the syntax is the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from sandbox.yaml_text import FAST_LOADER

_LABEL = re.compile(r"^([\w.$@]+):")
_BLOCK = re.compile(r"^(?:\.LBB\d+_\d+:|; %bb\.\d+:)")
_DEPTH = re.compile(r"(?:Loop Header|in Loop: Header=\S+):? ?Depth=(\d+)")
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)[^;]*;?(.*)$")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+(?:"([^"]*)"\s+)?"([^"]+)"')
_INLINED = re.compile(r"([\w.+\-]+):(\d+):\d+")
_LIBRARY = "triton/language"
_INSTRUCTION = re.compile(r"^\s+([a-z][a-z0-9_]+)(?:\s+([^;]*))?(?:;(.*))?$")
_TRANSCENDENTAL = re.compile(r"^v_(?:exp|log|rcp|rsq|sqrt|sin|cos|rcp_iflag|exp_legacy|log_legacy|prng)_")
_MATRIX = re.compile(r"^v_(?:s?mfma|smfmac|mfma_scale)_")
_MEMORY = re.compile(r"^(global|buffer|flat|scratch)_(load|store|atomic)_(\w+)$")
_WIDTH = re.compile(r"_(dwordx[234]|dword|[us]?byte|[us]?short|[biuf](?:8|16|32|64|96|128))(?=_|$)")
_DWORDS = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}


@dataclass(frozen=True, slots=True)
class Instruction:
    """One machine instruction. `kind` is its class; `width_bytes` per lane for memory operations, else 0."""

    mnemonic: str
    operands: str
    kind: str
    width_bytes: int
    depth: int
    """Loop nesting depth, 0 outside loops."""
    line: tuple[str, int] | None
    """Source file (base name) and line, where debug information names one."""
    block: str
    """The comment of its basic block, for example `%atomicrmw.start`."""
    spill: bool
    """Whether the compiler marks it as a register spill or reload."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What the code object asks for, from the assembler directives and the kernel metadata."""

    vgpr_count: int
    """Per lane, AccVGPRs included."""
    agpr_count: int
    sgpr_count: int
    vgpr_spill_count: int
    sgpr_spill_count: int
    scratch_bytes: int
    """Private segment per lane."""
    lds_bytes: int
    """Statically allocated LDS per workgroup. Triton's is allocated at launch and is not in here."""
    max_flat_workgroup_size: int
    kernarg_bytes: int
    wavefront_size: int
    dynamic_stack: bool


def resources(asm: str, kernel: str) -> Resources:
    """Raises ValueError when the text has no metadata for `kernel`."""
    start, end = asm.find(".amdgpu_metadata"), asm.find(".end_amdgpu_metadata")
    if start < 0 or end < 0:
        raise ValueError("the assembly holds no .amdgpu_metadata section")
    data: Mapping[str, Any] = yaml.load(asm[start:end].split("\n", 1)[1].rstrip(), Loader=FAST_LOADER)
    for entry in data.get("amdhsa.kernels", ()):
        if entry[".name"] == kernel:
            return Resources(
                vgpr_count=entry[".vgpr_count"],
                agpr_count=entry.get(".agpr_count", 0),
                sgpr_count=entry[".sgpr_count"],
                vgpr_spill_count=entry.get(".vgpr_spill_count", 0),
                sgpr_spill_count=entry.get(".sgpr_spill_count", 0),
                scratch_bytes=entry[".private_segment_fixed_size"],
                lds_bytes=entry[".group_segment_fixed_size"],
                max_flat_workgroup_size=entry[".max_flat_workgroup_size"],
                kernarg_bytes=entry[".kernarg_segment_size"],
                wavefront_size=entry[".wavefront_size"],
                dynamic_stack=bool(entry.get(".uses_dynamic_stack", False)),
            )
    raise ValueError(f"the assembly holds no kernel named {kernel}")


def code_bytes(asm: str, kernel: str) -> int | None:
    """Size of the machine code, from LLVM's comment after the function."""
    body = asm.find(f"\n{kernel}:")
    match = re.compile(r"; codeLenInByte = (\d+)").search(asm, max(body, 0))
    return int(match[1]) if match else None


def instructions(asm: str, function: str) -> Iterator[Instruction]:
    """The instructions of one function, in order."""
    files: dict[str, str] = {}
    library: set[str] = set()
    inside = False
    depth, block, line = 0, "", None
    fresh_block = False
    for text in asm.split("\n"):
        if match := _FILE.match(text):
            files[match[1]] = match[3].rsplit("/", 1)[-1]
            if _LIBRARY in f"{match[2]}/{match[3]}":
                library.add(files[match[1]])
            continue
        if not inside:
            inside = text.startswith(f"{function}:")
            continue
        if text.startswith(".Lfunc_end"):
            return
        if _BLOCK.match(text):
            depth, fresh_block = 0, True
            block = text.split(";", 1)[1].strip() if ";" in text else ""
        if fresh_block and (found := _DEPTH.search(text)):
            depth = int(found[1])
        if match := _LOC.match(text):
            line = _source_line(match, files, library)
            continue
        if _LABEL.match(text) or not (match := _INSTRUCTION.match(text)):
            continue
        fresh_block = False
        yield _instruction(match, depth, line, block)


def _source_line(match: re.Match[str], files: Mapping[str, str], library: set[str]) -> tuple[str, int] | None:
    """The user's line of a `.loc`: the innermost of the inlined chain that is not Triton's own library."""
    chain = [(files.get(match[1], ""), int(match[2])), *((m[1], int(m[2])) for m in _INLINED.finditer(match[3]))]
    return next(((file, line) for file, line in chain if file and file not in library and line), None)


def _instruction(match: re.Match[str], depth: int, line: tuple[str, int] | None, block: str) -> Instruction:
    mnemonic, operands, comment = match[1], (match[2] or "").strip(), match[3] or ""
    spill = "Folded Spill" in comment or "Folded Reload" in comment
    kind, width = classify(mnemonic, operands)
    if spill and kind in ("global_load", "global_store"):
        kind = "scratch"
    return Instruction(mnemonic, operands, kind, width, depth, line, block, spill)


def classify(mnemonic: str, operands: str = "") -> tuple[str, int]:
    """The class of an instruction and, for memory operations, the bytes each lane moves."""
    if mnemonic[0] == "v":
        return _vector_kind(mnemonic), 0
    if match := _MEMORY.match(mnemonic):
        space, action, rest = match[1], match[2], match[3]
        if action == "atomic":
            return "global_atomic", _width(rest) if "cmpswap" not in rest else 4
        if space == "scratch":
            return "scratch", _width(rest)
        if action == "load" and (rest.startswith("lds_") or re.search(r"\blds\b", operands)):
            return "global_load_lds", _width(rest)
        return f"global_{action}", _width(rest)
    if mnemonic.startswith("ds_"):
        return _lds_kind(mnemonic)
    if mnemonic.startswith(("buffer_wbl2", "buffer_inv", "buffer_wbinv", "buffer_gl", "global_wb", "global_inv")):
        return "cache_maintenance", 0
    if mnemonic.startswith("s_"):
        return _scalar_kind(mnemonic), 0
    return "other", 0


def _vector_kind(mnemonic: str) -> str:
    if _MATRIX.match(mnemonic):
        return "mfma"
    if mnemonic.startswith("v_accvgpr_"):
        return "accvgpr_move"
    if _TRANSCENDENTAL.match(mnemonic):
        return "transcendental"
    if mnemonic.startswith("v_cvt_"):
        return "conversion"
    if "_f64" in mnemonic:
        return "fp64"
    return "valu"


def _scalar_kind(mnemonic: str) -> str:
    if mnemonic.startswith(("s_waitcnt", "s_wait_")):
        return "waitcnt"
    if mnemonic.startswith("s_barrier"):
        return "barrier"
    if mnemonic.startswith(("s_load_", "s_buffer_load_", "s_scratch_load_", "s_store_", "s_dcache")):
        return "scalar_memory"
    if mnemonic.startswith(("s_branch", "s_cbranch", "s_setpc")):
        return "branch"
    if mnemonic.startswith("s_swappc"):
        return "call"
    if mnemonic.startswith(("s_nop", "s_sleep", "s_setprio", "s_endpgm", "s_sethalt", "s_sched", "s_code_end")):
        return "scheduling"
    return "salu"


def _lds_kind(mnemonic: str) -> tuple[str, int]:
    pairs = 2 if re.match(r"ds_(read|write|load|store)2|ds_\w+_2addr", mnemonic) else 1
    if mnemonic.startswith(("ds_bpermute", "ds_permute", "ds_swizzle")):
        return "lane_permute", 4
    if mnemonic.startswith(("ds_read", "ds_load")):
        return "lds_load", _width(mnemonic) * pairs
    if mnemonic.startswith(("ds_write", "ds_store")):
        return "lds_store", _width(mnemonic) * pairs
    return "lds_atomic", _width(mnemonic)


def _width(rest: str) -> int:
    """Bytes per lane from the type in a mnemonic: `dwordx4`, `ubyte`, `b64`; the first one, as in `read_b64_tr_b16`."""
    found = _WIDTH.search(f"_{rest}")
    if found is None:
        return 4
    word = found[1]
    if word in _DWORDS:
        return _DWORDS[word]
    if "byte" in word:
        return 1
    return 2 if "short" in word else int(word[1:]) // 8
