"""Run each kernel's port in the emulator against the original under the 32-lane reference."""

from __future__ import annotations

from collections.abc import Sequence

from agent.port.assemble import Assembled
from agent.port.build import UnitBuild
from agent.port.detectors import kernel_function
from agent.port.request import PortRequest, Project
from agent.port.result import KernelVerdict
from sandbox.hip import HOST
from sandbox.hip_source import HipSource
from sandbox.toolchain import Toolchain
from sandbox.verdict import Correctness


def compiled_only(builds: Sequence[UnitBuild], project: Project, reason: str) -> tuple[KernelVerdict, ...]:
    """Every compiled kernel of the user's with the evidence `compiled`, for the given reason."""
    verdicts: list[KernelVerdict] = []
    for build in builds:
        functions = HipSource(project.sources[build.unit].text).kernels
        device = next(b for p, b in build.passes.items() if p != HOST and b.code_object is not None)
        for kernel in device.kernels:
            function = kernel_function(functions, kernel)
            if function is not None:  # others come from library headers
                verdicts.append(KernelVerdict(kernel.name, build.unit, function.line, Correctness.COMPILED, reason))
    return tuple(verdicts)


def validate(
    builds: Sequence[UnitBuild], project: Project, assembled: Assembled, request: PortRequest, toolchain: Toolchain
) -> tuple[KernelVerdict, ...]:
    """Verdicts of all kernels of all units."""
    return compiled_only(builds, project, "the emulator is not available")
