"""Kernels that launch kernels."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sandbox.hip_guards import live_text
from sandbox.hip_source import HipSource
from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import refusals
from skills.facts import Facts
from skills.skill import Refusal, Site

CONSTRUCTS = {
    r"\bcudaStream(TailLaunch|FireAndForget\w*|GraphTailLaunch|GraphFireAndForget)\b": "device-side streams",
    r"\bcudaGetParameterBuffer\w*|\bcudaLaunchDevice\w*": "device-side launch calls",
}
REASON = "kernels cannot launch kernels on AMD"
ROUTE = "Launch from the host: a work queue in global memory, filled by one kernel and drained by the next launch."


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """A launch inside a device function, and the calls that only exist for it."""
    source = HipSource(kernel.source)
    text = live_text(source)
    for body_start, body_end in _device_bodies(source):
        launch = re.search(r"<<<", text[body_start:body_end])
        if launch:
            line = source.line_of(body_start + launch.start())
            yield Refusal(f"a kernel launch in device code: {REASON}", line, ROUTE)
            break
    yield from refusals(kernel, CONSTRUCTS, REASON, ROUTE)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Nothing to rename: the construct has no counterpart."""
    return None


def _device_bodies(source: HipSource) -> Iterable[tuple[int, int]]:
    for k in source.kernels:
        yield k.body.start, k.body.end
    code = source.code
    for i, token in enumerate(code):
        if token.text != "__device__":
            continue
        for j in range(i + 1, min(i + 200, len(code))):
            if code[j].text in (";", "}", "="):
                break
            if code[j].text == "{":
                close = source.matching(j)
                if close is not None and "__host__" not in {t.text for t in code[max(0, i - 3) : j]}:
                    yield code[j].start, code[close].end
                break
