"""A HIP file as a program for one target: its text as a project, compiled, with the resources of its kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from agent.candidate import Failure
from agent.port.assemble import Assembled
from agent.port.build import options_for, reached_text, source_tree
from agent.port.intake import CUDA_WORDS, check_project
from agent.port.launches import Found, executable_text, found_kernels, spell
from agent.port.request import PortRequest, Project, ProjectFile
from agent.shims.generate import ShimPlan
from sandbox.emulator.loader import CodeObject, load_code_object
from sandbox.errors import InputError
from sandbox.hip import HipBuild, compile_hip
from sandbox.hip_checks import check_balanced
from sandbox.hip_source import HipSource
from sandbox.kernel import Kernel
from sandbox.profiler.amdgcn import instructions
from sandbox.profiler.metrics import Profile
from sandbox.profiler.static import asm_profile
from sandbox.target import Target
from sandbox.toolchain import Toolchain

_NO_SHIMS = ShimPlan((), {}, (), ())


def project_of(kernel: Kernel) -> Project:
    """The file and those beside it; of these the ones that hold device code count as sources."""
    texts = {kernel.filename: kernel.source, **kernel.companions}
    sources = {
        path: ProjectFile(path, text, text.encode())
        for path, text in texts.items()
        if path == kernel.filename or CUDA_WORDS.search(text)
    }
    others = {path: text for path, text in texts.items() if path not in sources}
    return Project(kernel.filename, sources, others, asked=frozenset({kernel.filename}))


def check_source(kernel: Kernel) -> None:
    """Raises `InputError` for a file of another kind, without a kernel, with odd brackets or foreign includes."""
    if not kernel.filename.endswith((".hip", ".cu")):
        raise InputError("kernels are optimized in a .hip or .cu file.", file=kernel.filename)
    if not HipSource(kernel.source).kernels:
        check_balanced(HipSource(kernel.source), kernel.filename)
        raise InputError(
            "it holds no __global__ function with a body.",
            file=kernel.filename,
            remedy="Give the file that defines the kernels.",
        )
    check_project(project_of(kernel))


@dataclass(frozen=True, slots=True)
class DeviceKernel:
    """One compiled kernel of the file. `name` is its C++ spelling, `k<float, 256>`."""

    name: str
    found: Found
    profile: Profile
    code: tuple[str, ...]
    """Its instructions as text."""

    @property
    def function(self) -> str:
        """Name of the `__global__` function."""
        return self.found.function.name

    @property
    def symbol(self) -> str:
        return self.found.kernel.symbol


@dataclass(frozen=True)
class Program:
    """One version of the file, compiled for one target. `failures` say why there is no code."""

    kernel: Kernel
    kernels: Mapping[str, DeviceKernel]
    """By symbol."""
    failures: tuple[Failure, ...] = ()
    object_bytes: bytes = field(default=b"", repr=False)

    @cached_property
    def code(self) -> CodeObject:
        return load_code_object(self.object_bytes)

    @property
    def profiles(self) -> dict[str, Profile]:
        """Static profile of each kernel, by its C++ spelling."""
        return {k.name: k.profile for k in self.kernels.values()}

    def changed_from(self, other: Program) -> tuple[str, ...]:
        """Symbols of the other's kernels whose code is not the same here, missing ones among them."""
        mine = self.kernels
        return tuple(s for s, k in other.kernels.items() if s not in mine or mine[s].code != k.code)


@dataclass(frozen=True)
class Compiler:
    """Compiles versions of one file for one target, each with the same instantiations of its templates."""

    target: Target
    toolchain: Toolchain

    def program(self, kernel: Kernel, threads: Mapping[str, int] | None = None) -> Program:
        """The file compiled. `threads` maps `__global__` functions to the threads of a block they are launched with.

        Raises `SandboxError` when the compiler itself fails.
        """
        build, assembly = self._build(kernel, kernel.source)
        if not build.ok:
            return Program(kernel, {}, _failures(build))
        source = HipSource(kernel.source)
        text = executable_text(kernel.source, source, build.kernels)
        if text != kernel.source:
            again, text_assembly = self._build(kernel, text)
            build, assembly = (again, text_assembly) if again.ok else (build, assembly)
        code = build.code_object or b""
        kernels: dict[str, DeviceKernel] = {}
        for found in found_kernels(build.kernels, kernel.filename, project_of(kernel)):
            symbol = found.kernel.symbol
            block = (threads or {}).get(found.function.name)
            profile = asm_profile(assembly, symbol, self.target, threads_per_workgroup=block)
            kernels[symbol] = DeviceKernel(spell(found.kernel.name), found, profile, _code_of(assembly, symbol))
        return Program(kernel, kernels, object_bytes=code)

    def _build(self, kernel: Kernel, text: str) -> tuple[HipBuild, str]:
        """The code object, and the same code as text."""
        project = project_of(kernel.with_source(text))
        assembled = Assembled({p: f.text for p, f in project.sources.items()}, {}, _NO_SHIMS)
        tree = source_tree(project, assembled, PortRequest(kernel.filename), kernel.filename)
        options = options_for(reached_text(kernel.filename, project, assembled))
        options = replace(options, assembly=True)
        build = compile_hip(tree, kernel.filename, self.target.arch, self.toolchain, options)
        return build, build.assembly or ""


def _failures(build: HipBuild) -> tuple[Failure, ...]:
    """The compiler's errors, the first of each line."""
    seen: dict[tuple[str, int], Failure] = {}
    for d in build.errors:
        seen.setdefault((d.file, d.line), Failure(d.file, d.message, d.line or None))
    return tuple(seen.values())


def _code_of(assembly: str, symbol: str) -> tuple[str, ...]:
    """A kernel's instructions as text, the same wherever in the file it stands."""
    code = (f"{i.mnemonic} {i.operands}" for i in instructions(assembly, symbol))
    return tuple(re.sub(r"\.LBB\d+_", ".LBB_", line) for line in code)
