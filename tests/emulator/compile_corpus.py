"""Compile corpus kernels for a gfx target without any GPU or driver, with an on-disk cache.

Run as a script to fill the cache: `compile_corpus.py [ARCH ...]`.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from corpus.case import Case, HipSource, TritonSource, Values
from llvm_tools import llvm_tool

WAVEFRONT_SIZE = 64
CORPUS = Path(__file__).parent / "corpus"
CACHE = Path(os.environ.get("WAVESMITH_CORPUS_CACHE", Path.home() / ".cache" / "wavesmith" / "corpus"))

TRITON_TYPES = {
    torch.float32: "fp32", torch.float64: "fp64", torch.float16: "fp16", torch.bfloat16: "bf16",
    torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8",
    torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64", torch.bool: "i1",
    torch.float8_e4m3fn: "fp8e4nv", torch.float8_e4m3fnuz: "fp8e4b8",
    torch.float8_e5m2: "fp8e5", torch.float8_e5m2fnuz: "fp8e5b16",
}  # fmt: skip


@dataclass(frozen=True)
class Built:
    """A code object and what its launch needs to know. `parameters` are the arguments the kernel really takes."""

    code: bytes
    kernel: str
    parameters: tuple[str, ...]
    block: tuple[int, int, int]
    shared_bytes: int  # dynamic LDS the launch has to ask for


def find_clang() -> str | None:
    """The clang++ that knows the amdgcn back end, or None: `WAVESMITH_CLANG`, else see `llvm_tools`."""
    named = os.environ.get("WAVESMITH_CLANG")
    return shutil.which(named) if named else llvm_tool("clang++")


def build(case: Case, arch: str) -> Built:
    """The case compiled for `arch`, from the cache when neither its source nor its compiler changed."""
    inputs = case.inputs(arch)
    source = case.source
    key = _triton_key(source, inputs, arch) if isinstance(source, TritonSource) else _hip_key(source, arch)
    folder = CACHE / hashlib.sha256(key.encode()).hexdigest()[:32]
    if not (folder / "built.json").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(dir=CACHE))
        compiled = (
            _compile_triton(source, inputs, arch, staging)
            if isinstance(source, TritonSource)
            else _compile_hip(source, inputs, arch, staging)
        )
        (staging / "built.json").write_text(json.dumps(compiled))
        try:
            staging.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(staging)
    facts = json.loads((folder / "built.json").read_text())
    return Built(
        code=(folder / "code.hsaco").read_bytes(),
        kernel=facts["kernel"],
        parameters=tuple(facts["parameters"]),
        block=tuple(facts["block"]),
        shared_bytes=facts["shared_bytes"],
    )


def _signature(source: TritonSource, inputs: Values) -> tuple[dict[str, str], dict[str, Any], dict[Any, Any]]:
    """Signature, constants and attributes, specialised on values as Triton's own launcher does."""
    signature: dict[str, str] = {}
    constants = dict(source.constants)
    attributes: dict[Any, Any] = {}
    for index, name in enumerate(source.function.arg_names):
        if name in constants:
            signature[name] = "constexpr"
            continue
        value = inputs[name]
        if isinstance(value, torch.Tensor):
            signature[name] = "*" + TRITON_TYPES[value.dtype]
            attributes[(index,)] = [["tt.divisibility", 16]]
            if source.small_pointers:
                attributes[(index,)].append(["tt.pointer_range", 32])
        elif isinstance(value, float):
            signature[name] = "fp32"
        elif value == 1:
            signature[name], constants[name] = "constexpr", 1
        else:
            signature[name] = "i32" if -(2**31) <= value < 2**31 else "i64"
            if value % 16 == 0:
                attributes[(index,)] = [["tt.divisibility", 16]]
    return signature, constants, attributes


def _triton_key(source: TritonSource, inputs: Values, arch: str) -> str:
    import triton

    text = Path(source.function.fn.__code__.co_filename).read_text()
    shape = [source.function.__name__, *map(repr, _signature(source, inputs)), source.num_warps, repr(source.options)]
    return json.dumps([triton.__version__, arch, text, shape])


def _compile_triton(source: TritonSource, inputs: Values, arch: str, folder: Path) -> dict[str, Any]:
    """In a process of its own: the first architecture that a process compiles for decides how Triton 3.6 converts fp8,
    and the others end in an assertion."""
    child = multiprocessing.get_context("fork").Process(target=_compile_here, args=(source, inputs, arch, folder))
    child.start()
    child.join()
    if child.exitcode != 0:
        raise RuntimeError(f"{source.function.__name__} does not compile for {arch}; see what Triton printed")
    facts: dict[str, Any] = json.loads((folder / "built.json").read_text())
    return facts


def _compile_here(source: TritonSource, inputs: Values, arch: str, folder: Path) -> None:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature, constants, attributes = _signature(source, inputs)
    kernel = triton.compile(
        ASTSource(source.function, signature, constants, attributes),
        target=GPUTarget("hip", arch, WAVEFRONT_SIZE),
        options={"num_warps": source.num_warps, **source.options},
    )
    (folder / "code.hsaco").write_bytes(kernel.asm["hsaco"])
    (folder / "code.s").write_text(kernel.asm["amdgcn"])
    facts = {
        "kernel": kernel.metadata.name,
        "parameters": [name for name, kind in signature.items() if kind != "constexpr"],
        "block": [source.num_warps * WAVEFRONT_SIZE, 1, 1],
        "shared_bytes": kernel.metadata.shared,
    }
    (folder / "built.json").write_text(json.dumps(facts))


def _hip_command(source: HipSource, arch: str) -> list[str]:
    clang = find_clang()
    if clang is None:
        raise FileNotFoundError("No clang++ with the amdgcn back end; install clang-22 and lld-22.")
    return [
        clang, "-x", "hip", f"--offload-arch={arch}", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc",
        "-nogpulib", "-O3", "-std=c++17", "-ffp-contract=off", *source.flags, "-c", str(source.path),
    ]  # fmt: skip


def _hip_key(source: HipSource, arch: str) -> str:
    header = (CORPUS / "device.h").read_text()
    command = [part for part in _hip_command(source, arch) if part != str(source.path)]
    return json.dumps([command, header, source.path.read_text(), source.kernel, list(source.block)])


def _compile_hip(source: HipSource, inputs: Values, arch: str, folder: Path) -> dict[str, Any]:
    command = [*_hip_command(source, arch), "-o", str(folder / "code.hsaco")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{source.path.name} does not compile for {arch}:\n{done.stderr}")
    return {
        "kernel": source.kernel,
        "parameters": list(inputs),
        "block": list(source.block),
        "shared_bytes": source.dynamic_lds_bytes,
    }


def main(archs: list[str]) -> None:
    from corpus.catalogue import all_cases

    for arch in archs or ["gfx942", "gfx950"]:
        for case in all_cases():
            if arch in case.archs:
                built = build(case, arch)
                print(f"{arch} {case.name}: {built.kernel}, {len(built.code)} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
