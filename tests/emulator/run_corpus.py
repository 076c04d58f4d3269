"""Run a corpus kernel in the emulator: tensors in, tensors out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from compile_corpus import Built, build
from corpus.case import Case, TritonSource, Values

from sandbox.emulator import fast, reference
from sandbox.emulator.launch import Argument, Launch, prepare
from sandbox.emulator.loader import load_code_object
from sandbox.emulator.memory import Memory
from sandbox.emulator.result import EmulationResult

BUDGET = 20_000_000


def prepare_case(case: Case, arch: str, inputs: Values, copied_lanes: bool = False) -> Launch:
    """A launch over the bytes of `inputs`: what the kernel stores appears in these tensors."""
    built: Built = build(case, arch)
    memory = Memory()
    arguments: list[Argument] = []
    for name in built.parameters:
        value = inputs[name]
        if isinstance(value, torch.Tensor):
            arguments.append(memory.allocate(name, bytes_of(value)))
        else:
            arguments.append(value)
    code = load_code_object(built.code)
    dynamic = built.shared_bytes
    if isinstance(case.source, TritonSource):
        dynamic -= code.kernel(built.kernel).descriptor.group_segment_bytes
    launch = prepare(code, built.kernel, case.grid, built.block, arguments, memory, max(0, dynamic))
    return replace(launch, copied_lanes=copied_lanes or isinstance(case.source, TritonSource))


def bytes_of(tensor: torch.Tensor) -> np.ndarray:
    """The tensor's own storage as bytes, without a copy."""
    assert tensor.is_contiguous()
    flat = tensor.reshape(-1) if tensor.dim() == 0 else tensor.view(-1)
    return flat.view(torch.uint8).numpy()


def run_case(
    case: Case, arch: str, schedule: str, core: str = "fast", seed: int = 0, *, copied_lanes: bool = False
) -> tuple[EmulationResult, Values]:
    """The result and the values after the run. Inputs are generated anew, so runs do not see each other."""
    values = case.inputs(arch)
    launch = prepare_case(case, arch, values, copied_lanes)
    numbers = range(launch.workgroups)
    runner = fast.run if core == "fast" else reference.run
    return runner(launch, numbers, schedule, seed, BUDGET), values


def check_case(case: Case, arch: str, schedule: str, core: str = "fast", seed: int = 0) -> EmulationResult:
    """Run and judge: it must end, find nothing and be right."""
    result, outputs = run_case(case, arch, schedule, core, seed)
    assert result.completed, f"{result.status}: {result.reason}"
    assert not result.findings, "; ".join(str(f) for f in result.findings)
    case.check(case.inputs(arch), outputs)
    return result
