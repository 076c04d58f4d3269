"""Refuse `tl.dot_scaled` where it does not compile."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.facts import Facts
from skills.idioms import tl_call, vendor_guarded
from skills.skill import Refusal, Site
from skills.triton_source import parse_triton


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """A refusal per call that no test of the vendor guards."""
    source = parse_triton(kernel)
    for node in source.nodes:
        call = tl_call(source, node, "dot_scaled")
        if call is not None and not vendor_guarded(source, call):
            yield Refusal(
                f"tl.dot_scaled has no matrix instruction on {target.arch}, and Triton cannot decode two "
                "narrow operands there",
                source.line(call),
                "run this kernel on gfx950, or decode one operand to bfloat16 before the product",
            )


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Nothing to do: this skill only refuses."""
    return None
