"""`sem="relaxed"` on atomics that signal nothing, and an fp32 buffer where 16-bit values are accumulated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.allocation import Allocation, allocation
from skills.edit import Edit, apply_edits, insert_after, replace, set_keyword
from skills.facts import Facts
from skills.idioms import base_param, tl_call
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
    by_buffer: dict[cst.Call, tuple[Allocation, Launch]] = {}
    for launch in source.launches_of(function.name):
        made = allocation(source, function, launch, name)
        if made is None:
            return None
        by_buffer[made.call] = made, launch
    for made, launch in by_buffer.values():
        widened = _widened(source, made)
        if widened is None:
            return None
        dtype, edit = widened
        if dtype.startswith("torch.") and dtype not in _HALF:
            return None
        edits += [
            edit,
            insert_after(
                source, _outermost(source, launch.call, made.call), [f"{made.name} = {made.name}.to({dtype})"]
            ),
        ]
    return edits or None


def _reads(source: TritonSource, function: JitFunction, name: str) -> bool:
    for node in walk(function.node.body):
        call = tl_call(source, node, "load", "store")
        pointer = argument(call, "pointer", 0) if call is not None else None
        if pointer is not None and base_param(source, function, pointer.value) == name:
            return True
    return False


def _widened(source: TritonSource, made: Allocation) -> tuple[str, Edit] | None:
    """(dtype text, edit to fp32) of memory that starts at zero; None where its type is not written there."""
    owner, _, last = (dotted_name(made.call.func) or "").rpartition(".")
    if made.fill != "zeros":
        return None
    dtype = argument(made.call, "dtype", -1)
    if dtype is not None:
        return source.code(dtype.value), replace(source, dtype.value, "torch.float32")
    like: str | None = owner if last.startswith("new_") else None
    if last.endswith("_like") and made.call.args:
        like = source.code(made.call.args[0].value)
    return (f"{like}.dtype", set_keyword(source, made.call, "dtype", "torch.float32")) if like is not None else None


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
