"""Libraries that are recognised, not adapted."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import refusals
from skills.facts import Facts
from skills.skill import Refusal, Site

CONSTRUCTS = {
    r"^[ \t]*#[ \t]*include[ \t]*[<\x22]nvml\.h": "NVML (counterpart: AMD SMI, amd_smi/amdsmi.h)",
    r"^[ \t]*#[ \t]*include[ \t]*[<\x22]nvjpeg\.h": "nvJPEG (counterpart: rocJPEG, rocjpeg/rocjpeg.h)",
    r"^[ \t]*#[ \t]*include[ \t]*[<\x22](nvcuvid|cuviddec|nvEncodeAPI)\.h": "video codecs (counterpart: rocDecode)",
    r"^[ \t]*#[ \t]*include[ \t]*[<\x22]npp\w*\.h": "NPP (counterpart: RPP, rpp/rpp.h)",
    r"^[ \t]*#[ \t]*include[ \t]*[<\x22]cudnn(_frontend)?[\w./]*\.h": "cuDNN (counterpart: MIOpen, miopen/miopen.h)",
    r"^[ \t]*#[ \t]*include[ \t]*[<\x22]cutensor\w*\.h": "cuTENSOR (counterpart: hipTensor, hiptensor/hiptensor.hpp)",
    r"^[ \t]*#[ \t]*include[ \t]*[<\x22]cusparseLt\.h": "cuSPARSELt (counterpart: hipSPARSELt)",
    r"^[ \t]*#[ \t]*include[ \t]*[<\x22]nvshmemx?\.h": "NVSHMEM (counterpart: rocSHMEM, rocshmem/rocshmem.hpp)",
    r"^[ \t]*#[ \t]*include[ \t]*[<\x22]optix\w*\.h": "OptiX (counterpart: HIP RT)",
    r"^[ \t]*#[ \t]*include[ \t]*[<\x22]cufile\.h": "cuFile (counterpart: hipFile)",
}
REASON = "the ROCm library has other objects and calls"
ROUTE = "Write a small adapter on the counterpart, with a fall-back where it is not installed."


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """A refusal at the first live use of each construct."""
    return refusals(kernel, CONSTRUCTS, REASON, ROUTE)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Nothing to rename: the construct has no counterpart."""
    return None
