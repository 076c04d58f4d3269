"""Rename calls of library functions that Triton lowers natively, and combine `1 / sqrt`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, apply_edits, replace, tl_name
from skills.facts import Facts
from skills.idioms import tl_call
from skills.literals import float_value
from skills.skill import Refusal, Site
from skills.triton_source import TL, TritonSource, parse_triton
from skills.uniform import Uniformity

_NATIVE = ("rsqrt", "exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "abs", "floor", "ceil", "erf", "fma")
_LIBRARIES = (f"{TL}.extra.libdevice", f"{TL}.extra.cuda.libdevice", "torch._inductor.runtime.triton_helpers.libdevice")
_HELPERS = {
    "torch._inductor.runtime.triton_helpers.maximum": "maximum",
    "torch._inductor.runtime.triton_helpers.minimum": "minimum",
}


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site for the file."""
    source = parse_triton(kernel)
    edits = list(_edits(source))
    if edits:
        yield Site(source.line_at(min(e.start for e in edits)), "native functions")


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """All calls, nested ones in further passes."""
    edited: Kernel | None = None
    for _ in range(8):
        source = parse_triton(edited or kernel)
        step = apply_edits(edited or kernel, source, _edits(source))
        if step is None:
            break
        edited = step
    return edited


def _edits(source: TritonSource) -> Iterator[Edit]:
    tl = tl_name(source)
    covered = -1
    for node in source.nodes:
        if not isinstance(node, cst.Call | cst.BinaryOperation):
            continue
        function = source.in_jit(node)
        if function is None:
            continue
        start, end = source.span(node)
        if start < covered:
            continue
        if isinstance(node, cst.BinaryOperation):
            root = tl_call(source, node.right, "sqrt") if isinstance(node.operator, cst.Divide) else None
            whole = root is not None and float_value(node.left) == 1.0 and len(root.args) == 1
            if whole and root is not None and Uniformity(source, function).is_block(root.args[0].value):
                yield replace(source, node, f"{tl}.rsqrt({source.code(root.args[0].value)})")
                covered = end
            continue
        name = source.qualified(node.func) or ""
        library, _, short = name.rpartition(".")
        if library in _LIBRARIES and short in _NATIVE:
            yield replace(source, node.func, f"{tl}.{short}")
        elif name in _HELPERS and len(node.args) == 2:
            args = ", ".join(source.code(a.value) for a in node.args)
            yield replace(source, node, f"{tl}.{_HELPERS[name]}({args}, propagate_nan={tl}.PropagateNan.ALL)")
            covered = end
