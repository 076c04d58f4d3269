"""`tl.exp`, `/` and `tl.sigmoid` of fp32 blocks by their fast forms; the type checker of Triton has the last word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, add_import, apply_edits, replace, tl_name
from skills.facts import Facts
from skills.idioms import operand, tl_call
from skills.literals import float_value, int_value
from skills.skill import Refusal, Site
from skills.triton_source import TL, JitFunction, TritonSource, parse_triton, walk
from skills.uniform import Uniformity

_LOG2_E = "1.4426950408889634"
_MODES = ("exp and divide", "exp", "divide")


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """Both together, and each alone."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is None:
        return
    counts = {mode: len(_edits(source, function, mode)) for mode in _MODES}
    for mode in _MODES:
        if counts[mode] and (mode == "exp and divide" or counts[mode] != counts["exp and divide"]):
            bound_by_it = facts["bottleneck.worst"] == "transcendental"  # elsewhere the arithmetic may be free
            line = source.line(function.node)
            yield Site(line, f"fast {mode}", function.name, {"mode": mode}, needs_timing=not bound_by_it)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """All calls and divisions of the kernel, nested ones in further passes."""
    edited: Kernel | None = None
    for _ in range(8):
        current = edited or kernel
        source = parse_triton(current)
        function = source.functions.get(site.kernel or "")
        edits = _edits(source, function, str(site.variant["mode"])) if function is not None else []
        library = _library(source)
        if any(f"{library}." in e.text for e in edits) and library not in source.imports:
            added = add_import(source, f"from {TL}.extra import libdevice")
            edits += [added] if added is not None else []
        step = apply_edits(current, source, edits)
        if step is None:
            break
        edited = step
    return edited


def _library(source: TritonSource) -> str:
    return next((name for name, full in source.imports.items() if full == f"{TL}.extra.libdevice"), "libdevice")


def _edits(source: TritonSource, function: JitFunction, mode: str) -> list[Edit]:
    found: list[Edit] = []
    for f in source.callees(function):
        found += _of_function(source, f, mode)
    return found


def _of_function(source: TritonSource, function: JitFunction, mode: str) -> Iterator[Edit]:
    tl, library = tl_name(source), _library(source)
    uniform = Uniformity(source, function)
    covered = -1
    for node in walk(function.node.body):
        if not isinstance(node, cst.Call | cst.BinaryOperation):
            continue
        start, end = source.span(node)
        if start < covered:
            continue
        text: str | None = None
        if isinstance(node, cst.BinaryOperation):
            if "divide" in mode and isinstance(node.operator, cst.Divide) and _is_block_division(uniform, node):
                text = f"{library}.fast_dividef({source.code(node.left)}, {source.code(node.right)})"
        elif (call := tl_call(source, node, "exp")) is not None and "exp" in mode and len(call.args) == 1:
            text = f"{tl}.exp2({operand(source, call.args[0].value)} * {_LOG2_E})"
        elif (call := tl_call(source, node, "sigmoid")) is not None and "divide" in mode and len(call.args) == 1:
            power = f"{tl}.exp2({operand(source, call.args[0].value)} * -{_LOG2_E})"
            text = f"{library}.fast_dividef(1.0, 1.0 + {power})"
        if text is not None:
            yield replace(source, node, text)
            covered = end


def _is_block_division(uniform: Uniformity, node: cst.BinaryOperation) -> bool:
    """Lanes divide lanes: a division by a literal is a product already, one by a scalar is done once."""
    if int_value(node.right) is not None or float_value(node.right) is not None:
        return False
    return uniform.is_block(node.right)
