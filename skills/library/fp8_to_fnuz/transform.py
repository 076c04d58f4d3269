"""Rename fp8 operands on the host and scale the product in the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import (
    Edit,
    add_argument,
    add_constexpr_param,
    apply_edits,
    insert_after,
    insert_before,
    insert_function_before,
    replace,
)
from skills.facts import Facts
from skills.idioms import assignments, base_param, bound_argument, needs_parentheses, tl_call
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, argument, dotted_name, parse_triton, walk

FACTOR = "FP8_FACTOR"
_HELPER = '''def _as_fnuz(x):
    """(x, factor): e4m3fn codes as e4m3fnuz, which mean half as much, where the device wants those; else x and 1."""
    if x.dtype != torch.float8_e4m3fn or torch.version.hip is None:
        return x, 1
    if "gfx942" not in torch.cuda.get_device_properties(x.device).gcnArchName:
        return x, 1
    codes = x.view(torch.uint8)
    renamed = torch.empty_strided(x.shape, x.stride(), dtype=torch.uint8, device=x.device)
    renamed.copy_(codes.masked_fill(codes == 0x80, 0).masked_fill((codes & 0x7F) == 0x7F, 0x80))  # minus zero, NaN
    return renamed.view(torch.float8_e4m3fnuz), 2
'''


@dataclass(frozen=True, slots=True, eq=False)
class _Dot:
    """A dot of two operands loaded from pointers, and what it adds to."""

    call: cst.Call
    params: tuple[str, str]
    accumulator: str | None
    """The name the loop accumulates into, when the dot is all that changes it."""
    loop: cst.For | None


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per kernel whose dots all take loaded operands."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is not None and _edits(source, function) is not None:
        yield Site(source.line(function.node), "fnuz operands", function.name)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Host and kernel together."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    edits = _edits(source, function) if function is not None else None
    return apply_edits(kernel, source, edits or [])


def _edits(source: TritonSource, function: JitFunction) -> list[Edit] | None:
    if any(p.name == FACTOR for p in function.params) or "_as_fnuz" in source.text or "torch" not in source.imports:
        return None
    dots = list(_dots(source, function))
    launches = source.launches_of(function.name)
    if not dots or None in dots or not launches:
        return None
    known = [d for d in dots if d is not None]
    params = dict.fromkeys(name for d in known for name in d.params)
    if len(params) != 2 or any(set(d.params) != set(params) for d in known):
        return None
    edits: list[Edit] = [add_constexpr_param(source, function, {FACTOR: 1})]
    for dot in known:
        edits += _scaled(source, dot)
    for launch in launches:
        names = [bound_argument(function, launch, name) for name in params]
        variables = [dotted_name(n) if n is not None else None for n in names]
        if launch.host is None or any(v is None or "." in v for v in variables) or source.parent(launch.call) is None:
            return None
        factors = [f"{v}_factor" for v in variables]
        lines = [f"{v}, {f} = _as_fnuz({v})" for v, f in zip(variables, factors, strict=True)]
        edits.append(insert_before(source, launch.call, lines))
        edits.append(add_argument(source, launch.call, f"{FACTOR}={' * '.join(factors)}"))
    edits.append(insert_function_before(source, function, _HELPER))
    return edits


def _dots(source: TritonSource, function: JitFunction) -> Iterator[_Dot | None]:
    """Every dot of the kernel; None for one whose operands are computed."""
    for node in walk(function.node.body):
        call = tl_call(source, node, "dot")
        if call is None:
            continue
        operands = [argument(call, name, position) for position, name in enumerate(("input", "other"))]
        params = [_loaded_from(source, function, o.value) if o is not None else None for o in operands]
        if params[0] is None or params[1] is None:
            yield None
            continue
        accumulator, loop = _accumulator(source, call)
        yield _Dot(call, (params[0], params[1]), accumulator, loop)


def _loaded_from(source: TritonSource, function: JitFunction, node: cst.BaseExpression) -> str | None:
    """The parameter whose memory an operand was loaded from, unconverted."""
    values = list(assignments(source, function.node.body, node.value)) if isinstance(node, cst.Name) else [node]
    found = set()
    for value in values:
        load = tl_call(source, value, "load")
        pointer = argument(load, "pointer", 0) if load is not None else None
        found.add(base_param(source, function, pointer.value) if pointer is not None else None)
    return found.pop() if len(found) == 1 else None


def _accumulator(source: TritonSource, call: cst.Call) -> tuple[str | None, cst.For | None]:
    """The name and loop of `acc = tl.dot(a, b, acc)` or `acc += tl.dot(a, b)`, if nothing else in the loop uses it."""
    statement = source.statement(call)
    parent = source.parent(call)
    loop = source.parent(source.parent(statement))
    third = argument(call, "acc", 2)
    name: str | None = None
    if isinstance(parent, cst.AugAssign) and isinstance(parent.operator, cst.AddAssign) and third is None:
        name = dotted_name(parent.target)
    elif isinstance(parent, cst.Assign) and third is not None:
        added = dotted_name(third.value)
        name = added if added == dotted_name(parent.targets[0].target) else None
    if name is None or not isinstance(loop, cst.For) or len(list(assignments(source, loop.body, name))) != 1:
        return None, None
    reads = [n for n in walk(loop.body) if isinstance(n, cst.Name) and n.value == name]
    return (name, loop) if len(reads) == (1 if third is None else 2) else (None, None)


def _scaled(source: TritonSource, dot: _Dot) -> list[Edit]:
    """Once after the loop when the accumulator starts from nothing, else at the dot itself."""
    if dot.accumulator is not None and dot.loop is not None:
        return [insert_after(source, dot.loop, [f"{dot.accumulator} *= {FACTOR}"])]
    third = argument(dot.call, "acc", 2)
    text = source.code(dot.call)
    if third is not None:
        added = source.code(third.value)
        added = f"({added})" if needs_parentheses(third.value) else added
        bare = f"{source.code(dot.call.func)}({', '.join(source.code(a.value) for a in dot.call.args[:2])})"
        return [replace(source, dot.call, f"({bare} * {FACTOR} + {added})")]
    return [replace(source, dot.call, f"({text} * {FACTOR})")]
