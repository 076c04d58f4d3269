"""The original as a program for the CPU: what the kernels reach, less what a CPU's compiler cannot take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from agent.port.build import include_folders
from agent.port.reference_model import model_namespaces
from agent.port.reference_run import Complaint, ReferenceBuildError, ReferenceProgram, build_reference
from agent.port.reference_source import TABLE, device_files, reference_tree
from agent.port.request import PortRequest, Project
from agent.port.slice import Slice
from sandbox.toolchain import Toolchain

MAX_ROUNDS = 8


@dataclass(frozen=True)
class Original:
    """A built program, where it has each kernel, and why it has not the others (by number of the request)."""

    program: ReferenceProgram | None
    places: Mapping[int, int]
    left_out: Mapping[int, str]
    words: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """All words of the source that each kernel leads to."""
    _racing: Callable[[], ReferenceProgram] | None = None

    @cached_property
    def racing(self) -> ReferenceProgram | None:
        """The same program, watching for threads that use the same memory in no order; None when it does not build."""
        try:
            return self._racing() if self._racing is not None else None
        except ReferenceBuildError:
            return None


def build_original(
    project: Project, unit: str, kernels: Sequence[str], request: PortRequest, toolchain: Toolchain, lanes: int = 32
) -> Original:
    """The program of as many of `kernels` (C++ spellings) as build. Warps have 32 `lanes` in CUDA, 64 in HIP.

    What the compiler complains of is left out: a host's function, type or variable as such, of device code every kernel
    that leads to it, too. So no kernel is compared with an original that lacks a part of it.
    """
    sliced = Slice(device_files(project, unit, lanes), model_namespaces())
    left_out: dict[int, str] = {}
    for _ in range(MAX_ROUNDS):
        wanted = [i for i in range(len(kernels)) if i not in left_out]
        if not wanted:
            break
        names = [kernels[i] for i in wanted]
        tree = reference_tree(sliced.texts(names), unit, names, request.defines)
        try:
            program = build_reference(tree, unit, toolchain, include_folders(project), lanes=lanes)
        except ReferenceBuildError as e:
            if not _left_out(e.complaints, sliced, wanted, kernels, left_out):
                return Original(None, {}, {**dict.fromkeys(wanted, str(e)), **left_out})
            continue
        places = {number: place for place, number in enumerate(wanted)}
        racing = partial(build_reference, tree, unit, toolchain, include_folders(project), races=True, lanes=lanes)
        words = {number: sliced.words_reached(kernels[number]) for number in wanted}
        return Original(program, places, left_out, words, racing)
    rest = "what it uses still does not build after several rounds of leaving things out"
    return Original(None, {}, {**dict.fromkeys(range(len(kernels)), rest), **left_out})


def amd_original(
    project: Project, unit: str, kernels: Sequence[str], request: PortRequest, toolchain: Toolchain
) -> Original:
    """The program of what the unit says to HIP on a CDNA GPU, where it has code of its own for AMD."""
    device = ("__gfx942__", "__GFX9__", "__AMDGCN__", "USE_ROCM")
    return build_original(
        project, unit, kernels, replace(request, defines=(*request.defines, *device)), toolchain, lanes=64
    )


def _left_out(
    complaints: Sequence[Complaint],
    sliced: Slice,
    wanted: Sequence[int],
    kernels: Sequence[str],
    reasons: dict[int, str],
) -> bool:
    """Leave out what the complaints are about; False when nothing could be."""
    before = len(sliced.dropped), len(reasons)
    broken: dict[str, Complaint] = {}
    for complaint in complaints:
        lines = [n for f, n in [(complaint.file, complaint.line), *complaint.via] if f == TABLE]
        if lines:
            if lines[0] <= len(wanted):
                reasons.setdefault(wanted[lines[0] - 1], str(complaint))
            continue
        item = sliced.blame(complaint.file, complaint.line)
        if item is None:
            continue
        sliced.dropped.add((complaint.file, item.start))
        if item.kind in ("function", "declaration") and sliced.is_device(item):
            broken |= {name: complaint for name in item.names - {"operator"} if name not in broken}
    for number in wanted:
        words = sliced.words_reached(kernels[number]) if broken else frozenset()
        for name, complaint in broken.items():
            if name in words:
                reasons.setdefault(number, str(complaint))
    return before != (len(sliced.dropped), len(reasons))
