"""Memory that a host function makes for a launch and has handed to nothing else: `torch.zeros` and the like."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from skills.idioms import bound_argument, variables
from skills.triton_source import JitFunction, Launch, TritonSource, walk

_FILLS = frozenset({"empty", "zeros", "ones", "full"})
_ASKED = frozenset(
    {"shape", "size", "stride", "numel", "nelement", "dim", "ndim", "dtype", "device", "element_size", "is_contiguous",
     "is_cuda", "itemsize"}
)  # fmt: skip
"""Attributes of a tensor that tell of it and neither lead to its memory nor read what that holds."""
_REPEATS = (cst.For, cst.While, cst.BaseComp, cst.Lambda)
"""What may run a launch more than once, or, a lambda, after what follows it in the text."""


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """`name = torch.zeros(...)`, the only value that a host function gives a variable."""

    name: str
    call: cst.Call
    fill: str
    """What it holds when made: `empty`, `zeros`, `ones` or `full`. Its elements fill one piece of memory."""
    untouched: bool
    """Whether the launch is the first that it is passed to, and not repeated with the same memory."""


def fill_of(source: TritonSource, node: cst.CSTNode | None) -> str | None:
    """What the new memory holds that a call returns: `zeros` of torch.zeros, torch.zeros_like and x.new_zeros.

    None for other calls, and where `out=`, or what `**` spreads, may name memory that exists already.
    """
    name = source.qualified(node.func) if isinstance(node, cst.Call) else None
    if name is None or not isinstance(node, cst.Call):
        return None
    owner, _, last = name.rpartition(".")
    fill = last.removesuffix("_like") if owner == "torch" else last.removeprefix("new_")
    if fill not in _FILLS or (owner != "torch" and (not owner or fill == last)):
        return None
    given = [a for a in node.args if a.star == "**" or (a.keyword is not None and a.keyword.value == "out")]
    return None if given else fill


def allocation(source: TritonSource, function: JitFunction, launch: Launch, param: str) -> Allocation | None:
    """How the memory that a launch passes for a parameter was made in the host function.

    None where it may have been there before, or where anything else may have filled it, read it or kept a view of it by
    then: launches of the same kernel that pass it for the same parameter are all it may have been handed to.
    """
    given, host = bound_argument(function, launch, param), launch.host
    if not isinstance(given, cst.Name) or host is None or given.value in parameters(host):
        return None
    uses = sorted((n for n in variables(host.body) if n.value == given.value), key=source.span)
    made = [n for n in uses if is_bound(source, n)]
    call = _only_value(source, uses[0]) if made and made == uses[:1] else None
    fill = fill_of(source, call)
    if fill is None or not isinstance(call, cst.Call):
        return None
    around = set(source.ancestors(call))
    repeats = [a for a in source.ancestors(launch.call) if isinstance(a, _REPEATS) and a not in around]
    if any(isinstance(a, cst.Lambda) for a in repeats):
        return None
    until = source.span(repeats[-1] if repeats else launch.call)[1]
    handed = [n for n in uses[1:] if source.span(n)[0] < until and not _asks(source, n)]
    alike = [bound_argument(function, o, param) for o in source.launches_of(function.name) if o.host is host]
    if given not in handed or any(n not in alike for n in handed):
        return None
    return Allocation(given.value, call, fill, untouched=handed == [given] and not repeats)


def parameters(function: cst.FunctionDef) -> set[str]:
    """Names of a function's parameters, starred ones included."""
    return {n.name.value for n in walk(function.params) if isinstance(n, cst.Param)}


def is_bound(source: TritonSource, name: cst.Name) -> bool:
    """Whether a variable is given a value where it stands, alone or in a tuple that takes a value apart."""
    node: cst.CSTNode = name
    parent = source.parent(node)
    while isinstance(parent, cst.Tuple | cst.List | cst.BaseElement):
        node, parent = parent, source.parent(parent)
    if isinstance(parent, cst.AsName | cst.FunctionDef | cst.ClassDef | cst.Param):
        return parent.name is node
    targets = cst.AssignTarget | cst.AnnAssign | cst.AugAssign | cst.For | cst.CompFor | cst.NamedExpr
    return isinstance(parent, targets) and parent.target is node


def _only_value(source: TritonSource, name: cst.Name) -> cst.BaseExpression | None:
    """The value where the name alone is given it: `name = value`, annotated or not."""
    parent = source.parent(name)
    if isinstance(parent, cst.AssignTarget):
        parent = source.parent(parent)
        return parent.value if isinstance(parent, cst.Assign) and len(parent.targets) == 1 else None
    return parent.value if isinstance(parent, cst.AnnAssign) else None


def _asks(source: TritonSource, name: cst.Name) -> bool:
    """Whether a tensor is only asked what it is like: `x.shape`, `x.stride(0)`, `torch.empty_like(x)`."""
    parent = source.parent(name)
    if isinstance(parent, cst.Attribute):
        return parent.value is name and (parent.attr.value in _ASKED or parent.attr.value.startswith("new_"))
    call = source.parent(parent)
    if not isinstance(call, cst.Call) or fill_of(source, call) is None or call.args[0] is not parent:
        return False
    return (source.qualified(call.func) or "").endswith("_like")
