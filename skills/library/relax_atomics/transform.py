"""`sem="relaxed"` on atomics that signal nothing, and an fp32 buffer where 16-bit values are accumulated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, apply_edits, insert_after, replace, set_keyword
from skills.facts import Facts
from skills.idioms import base_param, bound_argument, tl_call
from skills.literals import string_value
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, Launch, TritonSource, argument, dotted_name, parse_triton, walk

_REDUCTIONS = ("atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor")
_SIGNAL_NAME = re.compile(r"lock|flag|sem|sync|barrier|signal|ready|done|ticket|mutex", re.IGNORECASE)
_HALF = ("bf16", "fp16", "bfloat16", "float16", "torch.bfloat16", "torch.float16")


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """The fp32 buffer first where 16-bit atomics are at work, then relaxed ordering alone."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is None:
        return
    half = any(d in _HALF for d in facts.names("launch.arg_dtypes")) or facts["launch.arg_dtypes"] is None
    if half and facts["cas_loop_count"] != 0:
        for name in _buffer_params(source, function):
            line = source.line(function.node)
            yield Site(line, f"fp32 buffer for {name}", function.name, {"mode": "buffer", "param": name})
    calls = list(_relaxable(source, function))
    if calls:
        yield Site(source.line(calls[0]), "relaxed", function.name, {"mode": "relaxed"}, invisible_to_interpreter=True)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """One variant, for the site's kernel and the jit functions it calls."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    if function is None:
        return None
    edits = [set_keyword(source, call, "sem", '"relaxed"') for call in _relaxable(source, function)]
    if site.variant["mode"] == "buffer":
        buffers = _buffers(source, function, str(site.variant["param"]))
        if buffers is None:
            return None
        edits += buffers
    return apply_edits(kernel, source, edits)


def _relaxable(source: TritonSource, function: JitFunction) -> Iterator[cst.Call]:
    """Reductions whose value nobody reads, in a kernel where nobody waits."""
    reached = source.callees(function)
    if any(_waits(source, f) for f in reached):
        return
    for f in reached:
        for node in walk(f.node.body):
            call = tl_call(source, node, *_REDUCTIONS)
            if call is None or not isinstance(source.parent(call), cst.Expr):
                continue
            sem = argument(call, "sem", 3)
            if sem is not None and string_value(sem.value) in ("relaxed", None):
                continue
            if sem is not None and sem.keyword is None:
                continue
            pointer = argument(call, "pointer", 0)
            if pointer is None or not _SIGNAL_NAME.search(source.code(pointer.value)):
                yield call


def _waits(source: TritonSource, function: JitFunction) -> bool:
    """Locks, spin loops and volatile reads: the order of memory operations may be what makes them work."""
    for node in walk(function.node.body):
        if tl_call(source, node, "atomic_cas", "atomic_xchg") is not None:
            return True
        if isinstance(node, cst.While) and any(
            tl_call(source, n, "load", *_REDUCTIONS) is not None for n in (*walk(node.test), *walk(node.body))
        ):
            return True
        load = tl_call(source, node, "load")
        if load is not None and argument(load, "volatile", -1) is not None:
            return True
    return False


def _atomic_adds(source: TritonSource, function: JitFunction) -> Iterator[tuple[cst.Call, str]]:
    """Unused `tl.atomic_add` calls of the kernel itself, with the parameter they write to."""
    for node in walk(function.node.body):
        call = tl_call(source, node, "atomic_add")
        pointer = argument(call, "pointer", 0) if call is not None else None
        if call is None or pointer is None or not isinstance(source.parent(call), cst.Expr):
            continue
        name = base_param(source, function, pointer.value)
        if name is not None and not _SIGNAL_NAME.search(name):
            yield call, name


def _buffer_params(source: TritonSource, function: JitFunction) -> list[str]:
    names = dict.fromkeys(name for _, name in _atomic_adds(source, function))
    return [name for name in names if _buffers(source, function, name) is not None]


def _buffers(source: TritonSource, function: JitFunction, name: str) -> list[Edit] | None:
    """Edits of every host function that launches the kernel: allocate in fp32, cast once afterwards.

    None when one of them does not allocate the tensor itself, or the kernel also reads it.
    """
    if _reads(source, function, name):
        return None
    edits: list[Edit] = []
    by_buffer: dict[tuple[int, str], Launch] = {}
    for launch in source.launches_of(function.name):
        value = bound_argument(function, launch, name)
        variable = dotted_name(value) if value is not None else None
        if variable is None or "." in variable or launch.host is None:
            return None
        by_buffer[source.span(launch.host)[0], variable] = launch
    for (_, variable), launch in by_buffer.items():
        assert launch.host is not None
        allocation = _allocation(source, launch.host, variable)
        if allocation is None:
            return None
        call, dtype, edit = allocation
        if dtype.startswith("torch.") and dtype not in _HALF:
            return None
        edits += [
            edit,
            insert_after(source, _outermost(source, launch.call, call), [f"{variable} = {variable}.to({dtype})"]),
        ]
    return edits or None


def _reads(source: TritonSource, function: JitFunction, name: str) -> bool:
    for node in walk(function.node.body):
        call = tl_call(source, node, "load", "store")
        pointer = argument(call, "pointer", 0) if call is not None else None
        if pointer is not None and base_param(source, function, pointer.value) == name:
            return True
    return False


def _allocation(source: TritonSource, host: cst.FunctionDef, variable: str) -> tuple[cst.Call, str, Edit] | None:
    """(call, dtype text, edit to fp32) of the one assignment `variable = torch.zeros(..., dtype=...)`."""
    found: list[cst.Assign] = [
        node
        for node in walk(host.body)
        if isinstance(node, cst.Assign) and any(dotted_name(t.target) == variable for t in node.targets)
    ]
    if len(found) != 1 or not isinstance(found[0].value, cst.Call) or len(found[0].targets) != 1:
        return None
    call = found[0].value
    made = (dotted_name(call.func) or "").split(".")
    if made[-1] not in ("zeros", "zeros_like", "new_zeros"):
        return None
    dtype = argument(call, "dtype", -1)
    if dtype is not None:
        return call, source.code(dtype.value), replace(source, dtype.value, "torch.float32")
    if made[-1] == "zeros_like" and call.args:
        like: str | None = source.code(call.args[0].value)
    else:
        like = ".".join(made[:-1]) if made[-1] == "new_zeros" else None
    if like is None:
        return None
    return call, f"{like}.dtype", set_keyword(source, call, "dtype", "torch.float32")


def _outermost(source: TritonSource, launch: cst.Call, allocation: cst.Call) -> cst.CSTNode:
    """The statement after which the buffer is complete: the launch, or the outermost loop or branch it alone stands
    in."""
    outer: cst.CSTNode = source.statement(launch)
    block = source.parent(source.statement(allocation))
    for ancestor in source.ancestors(launch):
        if ancestor is block:
            break
        if isinstance(ancestor, cst.BaseCompoundStatement):
            outer = ancestor
    return outer
