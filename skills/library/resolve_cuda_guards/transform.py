"""Conditions on `__CUDA_ARCH__`, `CUDART_VERSION` and relatives."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sandbox.hip_guards import ARCH_MACRO, KNOWN_ON_AMD, Conditional, chosen_arm, conditionals
from sandbox.hip_source import Edit, HipSource
from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import rewritten, sites
from skills.facts import Facts
from skills.skill import Refusal, Site

CAPABILITIES = (800, 900, 890, 860, 750, 700, 610, 600, 530, 350, 300)
"""Tried in this order: Ampere first, whose code neither needs Hopper's engines nor lacks much."""
VERSIONS = {
    "CUDART_VERSION": 12040,
    "CUDA_VERSION": 12040,
    "__CUDACC_VER_MAJOR__": 12,
    "__CUDACC_VER_MINOR__": 4,
    "__CUDA_API_VERSION": 12040,
}
VENDOR = re.compile(r"(?<!!)\bdefined\s*\(?\s*(?:USE_ROCM|__HIP_PLATFORM_AMD__)\b")
"""A condition that chooses for AMD, which one on the compiler (`__HIPCC__`) does not."""
HOPELESS = re.compile(
    r"\bw?gmma\.|\bmma\.|ldmatrix|stmatrix|tcgen05|\bnvcuda\b|\bwmma::|cp\.async\.bulk|mbarrier\.|cluster|setmaxnreg"
    r"|\bcutlass|\bcute\b|bar\.sync\s+[^0\s]"
)
"""An arm that holds one of these cannot be ported."""


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site for the whole file."""
    source = HipSource(kernel.source)
    return sites(source, _edits(source), "guards resolved")


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every condition on a CUDA macro gets an explicit value."""
    return rewritten(kernel, _edits(HipSource(kernel.source)))


def _edits(source: HipSource) -> list[Edit]:
    edits: dict[int, Edit] = {}
    for conditional in conditionals(source):
        names = {n for arm in conditional.arms for n in re.findall(r"[A-Za-z_]\w*", arm.condition)}
        if (ARCH_MACRO not in names and not names & VERSIONS.keys()) or _decided(source, conditional):
            continue
        capability = _capability(source, conditional) if ARCH_MACRO in names else CAPABILITIES[0]
        for arm in conditional.arms:
            d = arm.directive
            fresh = _rewritten(source.text[d.start : d.end], capability)
            if fresh != source.text[d.start : d.end]:
                edits[d.start] = Edit(d.start, d.end, fresh)
    return [*edits.values(), *_plain(source)]


def _decided(source: HipSource, conditional: Conditional) -> bool:
    """It asks for a capability in an arm that the file chooses for AMD, where it says itself that there is none.

    One that tells the device's pass from the host's (`defined(__CUDA_ARCH__)`) is none of these.
    """
    if any(re.search(rf"\bdefined\s*\(?\s*{ARCH_MACRO}\b", arm.condition) for arm in conditional.arms):
        return False
    arms = (c.arm_at(conditional.start) for c in conditionals(source) if c is not conditional)
    return any(arm is not None and VENDOR.search(arm.condition) for arm in arms)


def _capability(source: HipSource, conditional: Conditional) -> int:
    """Ampere, unless its arm cannot be ported and another's can, or it would leave a kernel without a body."""
    first = CAPABILITIES[0]
    only_code = _is_whole_body(source, conditional)
    for value in CAPABILITIES:
        arm = chosen_arm(conditional, {**KNOWN_ON_AMD, **VERSIONS, ARCH_MACRO: value})
        body = source.uncommented[arm.body.start : arm.body.end] if arm is not None else ""
        if HOPELESS.search(body) or re.match(r"\s*#\s*error", body) or (only_code and not body.strip()):
            continue
        return value
    return first


def _is_whole_body(source: HipSource, conditional: Conditional) -> bool:
    """The conditional is all the code of a kernel, so an arm without code makes the kernel do nothing."""
    kernel = source.enclosing_kernel(conditional.start)
    if kernel is None:
        return False
    inside = (t for t in source.code if kernel.body.start < t.start < kernel.body.end - 1)
    return all(conditional.start <= t.start < conditional.end for t in inside)


def _rewritten(directive: str, capability: int) -> str:
    text = re.sub(r"#(\s*)(el)?ifdef\s+__CUDA_ARCH__\b", r"#\1\2if defined(__HIP_DEVICE_COMPILE__)", directive)
    text = re.sub(r"#(\s*)(el)?ifndef\s+__CUDA_ARCH__\b", r"#\1\2if !defined(__HIP_DEVICE_COMPILE__)", text)
    text = re.sub(r"\bdefined\s*(\(\s*__CUDA_ARCH__\s*\)|__CUDA_ARCH__\b)", "defined(__HIP_DEVICE_COMPILE__)", text)
    text = re.sub(r"\b__CUDA_ARCH__\b", f"(__HIP_DEVICE_COMPILE__ * {capability})", text)
    for name, value in VERSIONS.items():
        text = re.sub(rf"#(\s*)(el)?ifdef\s+{name}\b", r"#\1\2if 1", text)
        text = re.sub(rf"#(\s*)(el)?ifndef\s+{name}\b", r"#\1\2if 0", text)
        text = re.sub(rf"\bdefined\s*(\(\s*{name}\s*\)|{name}\b)", "1", text)
        text = re.sub(rf"\b{name}\b", str(value), text)
    return text


def _plain(source: HipSource) -> list[Edit]:
    """Uses in ordinary code, where the macro stands for a number."""
    covered = [(d.start, d.end) for d in source.directives]
    values = {ARCH_MACRO: CAPABILITIES[0], **VERSIONS}
    return [
        Edit(t.start, t.end, str(values[t.text]))
        for t in source.code
        if t.kind == "word" and t.text in values and not any(s <= t.start < e for s, e in covered)
    ]
