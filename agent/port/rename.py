"""CUDA spellings to HIP spellings: identifiers, namespaces and include names, in code only.

The tables are those of the hipify that comes with torch, read in a process of its own; without torch a table of our own
covers the runtime. Comments and strings are never touched, and entries known to be wrong are replaced.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from agent.shims.catalogue import entries_by_header
from sandbox.errors import SandboxError
from sandbox.hip_source import Edit, HipSource, apply_edits

CORRECTIONS: Mapping[str, str] = {
    "cudaDevAttrMaxSharedMemoryPerBlockOptin": "hipDeviceAttributeSharedMemPerBlockOptin",
    "cudaSharedmemCarveoutDefault": "(-1)",
    "cudaSharedmemCarveoutMaxShared": "100",
    "cudaSharedmemCarveoutMaxL1": "0",
    "cudaStreamPerThread": "hipStreamPerThread",
    "cudaStreamLegacy": "((hipStream_t)0)",
    "__nv_bfloat16": "__hip_bfloat16",
    "__nv_bfloat162": "__hip_bfloat162",
    "__nv_bfloat16_raw": "__hip_bfloat16_raw",
    "__nv_bfloat162_raw": "__hip_bfloat162_raw",
    "CUDART_CB": "",
    "CUDARTAPI": "",
    "CUDAAPI": "",
    "__CUDACC_RTC__": "__HIPCC_RTC__",
    "__CUDA_RUNTIME_H__": "HIP_INCLUDE_HIP_HIP_RUNTIME_H",
    "__CUDA_RUNTIME_API_H__": "HIP_INCLUDE_HIP_HIP_RUNTIME_API_H",
    "__DRIVER_TYPES_H__": "HIP_INCLUDE_HIP_DRIVER_TYPES_H",
    "__CUDA_FP16_H__": "HIP_INCLUDE_HIP_HIP_FP16_H",
    "cudaMemPoolAttrReleaseThreshold": "hipMemPoolAttrReleaseThreshold",
    "CUDA_VERSION": "CUDA_VERSION",
}
"""Replaces what torch's tables map wrongly or not at all. `CUDA_VERSION` is resolved by a rule, not renamed."""
_KEPT = re.compile(r"nvtx|nvml|roctx|CUDNN|cudnn|NVSHMEM|nvshmem")
"""Families whose names stay: a shim or a refusal deals with them."""
_TORCH_TABLES = ("PYTORCH_SPECIFIC_MAPPINGS", "C10_MAPPINGS")


@dataclass(frozen=True)
class RenameTables:
    """`words` maps identifiers, `includes` header names; `origin` says where they came from."""

    words: Mapping[str, str]
    includes: Mapping[str, str]
    torch_words: Mapping[str, str]
    torch_includes: Mapping[str, str]
    origin: str


@cache
def load_tables() -> RenameTables:
    """The rename tables of this machine: torch's when it is installed, else our own."""
    folder = _hipify_folder()
    if folder is None:
        return _own_tables()
    worker = Path(__file__).with_name("hipify_worker.py")
    done = subprocess.run(
        [sys.executable, "-I", "-W", "ignore", str(worker), str(folder)], capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise SandboxError(f"torch's hipify tables cannot be read: {done.stderr.strip()[-300:]}")
    loaded = json.loads(done.stdout)
    tables: dict[str, dict[str, str]] = loaded["tables"]
    words: dict[str, str] = {}
    for name in ("CUDA_IDENTIFIER_MAP", "CUDA_SPECIAL_MAP", "CUDA_TYPE_NAME_MAP"):
        words |= {k: v for k, v in tables[name].items() if re.fullmatch(r"\w+", k) and not _KEPT.match(k) and k != v}
    torch_words = {k: v for t in _TORCH_TABLES for k, v in tables[t].items() if re.fullmatch(r"\w+", k)}
    torch_includes = {k: v for t in _TORCH_TABLES for k, v in tables[t].items() if k.endswith((".h", ".hpp", ".cuh"))}
    includes = {k: v for k, v in tables["CUDA_INCLUDE_MAP"].items() if k.endswith((".h", ".hpp", ".cuh"))}
    return RenameTables(
        {**words, **CORRECTIONS}, {**includes, **_OWN_INCLUDES},
        {k: v for k, v in torch_words.items() if k not in CORRECTIONS}, torch_includes,
        f"torch hipify {loaded['version']}",
    )  # fmt: skip


def _hipify_folder() -> Path | None:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "utils" / "hipify"
    return folder if (folder / "cuda_to_hip_mappings.py").exists() else None


_OWN_INCLUDES: Mapping[str, str] = {
    "cuda.h": "hip/hip_runtime.h",
    "cuda_runtime.h": "hip/hip_runtime.h",
    "cuda_runtime_api.h": "hip/hip_runtime_api.h",
    "cuda_profiler_api.h": "hip/hip_runtime_api.h",
    "cuda_fp16.h": "hip/hip_fp16.h",
    "cuda_fp16.hpp": "hip/hip_fp16.h",
    "cuda_bf16.h": "hip/hip_bf16.h",
    "cuda_bf16.hpp": "hip/hip_bf16.h",
    "cuComplex.h": "hip/hip_complex.h",
    "vector_types.h": "hip/hip_vector_types.h",
    "cublas_v2.h": "hipblas/hipblas.h",
    "cublas.h": "hipblas/hipblas.h",
    "curand.h": "hiprand/hiprand.h",
    "curand_kernel.h": "hiprand/hiprand_kernel.h",
    "cufft.h": "hipfft/hipfft.h",
    "cusparse.h": "hipsparse/hipsparse.h",
    "cusolverDn.h": "hipsolver/hipsolver.h",
    "cusolver_common.h": "hipsolver/hipsolver.h",
    "nvrtc.h": "hip/hiprtc.h",
    "nccl.h": "rccl/rccl.h",
}


def _own_tables() -> RenameTables:
    words = {name: re.sub(r"^cuda", "hip", name) for name in _OWN_RUNTIME.split()}
    words |= {
        "cudaError_t": "hipError_t", "cudaDeviceProp": "hipDeviceProp_t", "cudaMallocHost": "hipHostMalloc",
        "cudaFreeHost": "hipHostFree", "cudaHostAlloc": "hipHostMalloc", "cudaHostRegister": "hipHostRegister",
        "cudaPointerAttributes": "hipPointerAttribute_t", "__CUDACC__": "__HIPCC__",
        "cudaDevAttrMultiProcessorCount": "hipDeviceAttributeMultiprocessorCount",
    }  # fmt: skip
    return RenameTables({**words, **CORRECTIONS}, _OWN_INCLUDES, {}, {}, "own table")


_OWN_RUNTIME = """
cudaSuccess cudaErrorMemoryAllocation cudaErrorInvalidValue cudaErrorNotReady cudaMalloc cudaFree cudaMemcpy
cudaMemcpyAsync cudaMemset cudaMemsetAsync cudaMemcpyHostToDevice cudaMemcpyDeviceToHost cudaMemcpyDeviceToDevice
cudaMemcpyDefault cudaMemcpyToSymbol cudaMemcpyFromSymbol cudaDeviceSynchronize cudaStreamSynchronize cudaStreamCreate
cudaStreamCreateWithFlags cudaStreamNonBlocking cudaStreamDestroy cudaStream_t cudaEvent_t cudaEventCreate
cudaEventCreateWithFlags cudaEventDisableTiming cudaEventRecord cudaEventSynchronize cudaEventElapsedTime
cudaEventDestroy cudaGetLastError cudaPeekAtLastError cudaGetErrorString cudaGetErrorName cudaGetDevice cudaSetDevice
cudaGetDeviceCount cudaGetDeviceProperties cudaDeviceGetAttribute cudaFuncSetAttribute
cudaFuncAttributeMaxDynamicSharedMemorySize cudaOccupancyMaxActiveBlocksPerMultiprocessor cudaMallocManaged
cudaMallocAsync cudaFreeAsync cudaMemGetInfo cudaLaunchKernel cudaLaunchCooperativeKernel cudaStreamWaitEvent
"""


@dataclass(frozen=True, slots=True)
class Rename:
    """One kind of replacement in one file."""

    old: str
    new: str
    count: int


def rename_source(
    text: str, tables: RenameTables, *, torch: bool, own_files: frozenset[str]
) -> tuple[str, list[Rename], list[str]]:
    """The renamed text, what was renamed, and the CUDA headers that a shim stands for.

    `own_files` are include names the project has itself: those stay (a `.cu` one becomes `.hip`).
    """
    text, counted, headers = _rename_includes(text, tables, torch=torch, own_files=own_files)
    source = HipSource(text)
    words = {**tables.words, **tables.torch_words} if torch else tables.words
    inside_include = [(d.start, d.end) for d in source.directives if d.name == "include"]
    edits: list[Edit] = []
    for i, token in enumerate(source.code):
        if token.kind != "word" or any(s <= token.start < e for s, e in inside_include):
            continue
        fresh = _word(source, i, words)
        if fresh is not None and fresh != token.text:
            edits.append(Edit(token.start, token.end, fresh))
            counted[(token.text, fresh)] = counted.get((token.text, fresh), 0) + 1
    renames = [Rename(old, new, count) for (old, new), count in sorted(counted.items())]
    return apply_edits(text, edits), renames, headers


def _word(source: HipSource, index: int, words: Mapping[str, str]) -> str | None:
    token = source.code[index]
    before = source.code[index - 1].text if index else ""
    after = source.code[index + 1].text if index + 1 < len(source.code) else ""
    if token.text == "cub" and before not in (".", "->"):
        qualified = after == "::" and (before != "::" or source.code[index - 2].kind != "word")
        return "hipcub" if qualified or before == "namespace" or before == "=" else None
    if token.text == "cuda" and before == "::" and after in ("::", ";", "{"):
        outer = [source.code[j].text for j in range(max(0, index - 4), index)]
        return "hip" if "thrust" in outer else None
    if before in (".", "->"):
        return None
    return words.get(token.text) or _library_name(token.text)


_LIBRARY = re.compile(r"^cu(blas|sparse|fft|rand|solver)(?=[A-Z_])(?!Lt)|^CU(BLAS|SPARSE|FFT|RAND|SOLVER)_")


def _library_name(word: str) -> str | None:
    """A name of a library whose HIP interface has the same names with another prefix, where no table lists it."""
    m = _LIBRARY.match(word)
    if m is None:
        return None
    return f"hip{word[2:]}" if m.group(1) else f"HIP{word[2:]}"


def _rename_includes(
    text: str, tables: RenameTables, *, torch: bool, own_files: frozenset[str]
) -> tuple[str, dict[tuple[str, str], int], list[str]]:
    source = HipSource(text)
    includes = {**tables.includes, **tables.torch_includes} if torch else tables.includes
    edits: list[Edit] = []
    counted: dict[tuple[str, str], int] = {}
    headers: list[str] = []
    for d in source.directives:
        m = re.search(r"[<\"]([^>\"]+)[>\"]", source.text[d.start : d.end]) if d.name == "include" else None
        if m is None:
            continue
        name = m.group(1)
        start = d.start + m.start()
        if name in own_files or name.rsplit("/", 1)[-1] in {f.rsplit("/", 1)[-1] for f in own_files if "/" not in name}:
            fresh = f'"{name.removesuffix(".cu")}.hip"' if name.endswith(".cu") else None
        elif name in entries_by_header():
            headers.append(name)
            fresh = f"<{name}>"
        else:
            fresh = _mapped_include(name, includes, torch=torch)
        if fresh is not None and fresh != m.group(0):
            edits.append(Edit(start, d.start + m.end(), fresh))
            counted[(name, fresh.strip('<>"'))] = 1
    return apply_edits(text, edits), counted, headers


def _mapped_include(name: str, includes: Mapping[str, str], *, torch: bool) -> str | None:
    if name in includes:
        return f"<{includes[name]}>"
    if name.startswith("cub/"):
        return "<hipcub/hipcub.hpp>"
    if name.startswith("thrust/system/cuda"):
        return f"<{name.replace('/cuda', '/hip')}>"
    if torch and name.startswith(("ATen/cuda/", "ATen/native/cuda/", "c10/cuda/")):
        parts = name.split("/")
        parts = ["hip" if p == "cuda" else p for p in parts]
        parts[-1] = re.sub(r"^CUDA", "HIP", parts[-1])
        return f"<{'/'.join(parts)}>"
    return None
