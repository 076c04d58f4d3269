"""Every corpus kernel, by name."""

from __future__ import annotations

from corpus import hip_arithmetic, hip_kernels, triton_atomics, triton_dot, triton_elementwise, triton_lanes
from corpus.case import Case


def all_cases() -> list[Case]:
    """All kernels, names unique."""
    modules = (triton_elementwise, triton_lanes, triton_atomics, triton_dot, hip_kernels, hip_arithmetic)
    cases = [case for module in modules for case in module.cases()]
    assert len({case.name for case in cases}) == len(cases), "two corpus kernels share a name"
    return cases
