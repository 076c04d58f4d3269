"""Point libdevice imports at the vendor-neutral module and write the functions HIP lacks in Triton."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, add_import, apply_edits, drop_element, drop_line, insert_function_before, replace, tl_name
from skills.facts import Facts
from skills.idioms import operand, vendor_guarded
from skills.library.port_cuda_libdevice.functions import (
    HELPERS,
    HIP_FUNCTIONS,
    NEEDED_HELPERS,
    TEMPLATES,
    TRITON_MATH,
    refusal_of,
)
from skills.skill import Refusal, Site
from skills.triton_source import TL, TritonSource, dotted_name, parse_triton, walk

NEUTRAL = f"{TL}.extra.libdevice"
CUDA = f"{TL}.extra.cuda.libdevice"
_WHOLE_ARGUMENT = re.compile(r"(?<=[\w][(])\{(\d)\}(?=[,)])|(?<=, )\{(\d)\}(?=[,)])")
"""Where a template hands an argument on as a whole, so that it needs no parentheses."""
_OLD_MODULES = (f"{TL}.libdevice", f"{TL}.extra.cuda.libdevice", f"{TL}.extra.hip.libdevice")


@dataclass(frozen=True, slots=True, eq=False)
class _Use:
    """A reference to one libdevice function; `call` when it is called on the spot."""

    name: str
    node: cst.CSTNode
    call: cst.Call | None
    neutral: bool
    """Spelt through the vendor-neutral module already."""


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site for the file, and one refusal for each function that cannot be written."""
    source = parse_triton(kernel)
    for use in _uses(source):
        if use.name not in HIP_FUNCTIONS and use.name not in TEMPLATES and not vendor_guarded(source, use.node):
            reason, route = refusal_of(use.name)
            yield Refusal(reason, source.line(use.node), route)
    edited = transform(kernel, Site(1, ""), target)
    if edited is not None:
        pairs = zip(kernel.source.splitlines(), edited.source.splitlines(), strict=False)
        first = next((i for i, (a, b) in enumerate(pairs, 1) if a != b), 1)
        yield Site(first, "vendor-neutral libdevice")


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """All calls of the file, nested ones from the inside, one level per pass; then the imports."""
    edited = kernel
    while (again := _with_calls(edited, parse_triton(edited))) is not None:
        edited = again
    source = parse_triton(edited)
    edited = apply_edits(edited, source, _import_edits(source)) or edited
    return None if edited is kernel else edited


def _with_calls(kernel: Kernel, source: TritonSource) -> Kernel | None:
    edits, helpers, needs_import = [], [], False
    tl, library = tl_name(source), _library_name(source)
    for use in _uses(source):
        if use.name in TEMPLATES:
            edit = _templated(source, use, tl, library)
            if edit is not None:
                edits.append(edit)
                helpers += [h for h in NEEDED_HELPERS.get(use.name, ()) if h not in source.functions]
                needs_import |= "{ld}" in TEMPLATES[use.name]
        elif use.name in HIP_FUNCTIONS and not use.neutral and not _is_bare_import(source, use, library):
            edits.append(replace(source, use.node, f"{library}.{use.name}"))
            needs_import = True
    if not edits:
        return None
    if needs_import and not _imports_library(source):
        extra = add_import(source, f"from {TL}.extra import libdevice")
        edits += [extra] if extra is not None else []
    if helpers:
        text = "\n\n".join(HELPERS[h].replace("{tl}", tl) for h in HELPERS if h in helpers)
        edits.append(insert_function_before(source, next(iter(source.functions.values())), text))
    return apply_edits(kernel, source, edits)


def _is_bare_import(source: TritonSource, use: _Use, library: str) -> bool:
    """Whether the edit of the import is enough: a name imported from the library, or `<library>.name` itself."""
    return isinstance(use.node, cst.Name) or source.code(use.node) == f"{library}.{use.name}"


def _templated(source: TritonSource, use: _Use, tl: str, library: str) -> Edit | None:
    """A call as its template; None for a bare reference, or when an argument holds another call to replace first."""
    if use.call is None or any(a.star for a in use.call.args):
        return None
    inner = {id(u.node) for u in _uses(source, use.call) if u.name in TEMPLATES and u.node is not use.node}
    if inner:
        return None
    args = [operand(source, a.value) for a in use.call.args]
    bare = {f"bare{i}": source.code(a.value) for i, a in enumerate(use.call.args)}
    template = _WHOLE_ARGUMENT.sub(lambda m: f"{{bare{m[1] or m[2]}}}", TEMPLATES[use.name])
    try:
        text = template.format(*args, tl=tl, ld=library, **bare)
    except (IndexError, KeyError):
        return None
    return replace(source, use.call, text)


def _uses(source: TritonSource, within: cst.CSTNode | None = None) -> Iterator[_Use]:
    """Every reference to a libdevice function, or to an old `tl.math` name that is one now."""
    nodes = source.nodes if within is None else walk(within)
    for node in nodes:
        if not isinstance(node, cst.Name | cst.Attribute) or _inside_name(source, node):
            continue
        full = source.qualified(node)
        if full is None:
            continue
        parent = source.parent(node)
        call = parent if isinstance(parent, cst.Call) and parent.func is node else None
        for module in (NEUTRAL, *_OLD_MODULES, "torch._inductor.runtime.triton_helpers.libdevice"):
            if full.startswith(f"{module}."):
                yield _Use(full.removeprefix(f"{module}."), node, call, module not in _OLD_MODULES)
        for module in (f"{TL}.math", TL):
            name = full.removeprefix(f"{module}.")
            old = name not in TRITON_MATH and (name in HIP_FUNCTIONS or name in TEMPLATES)
            if full == f"{module}.{name}" and old and name not in _TRITON_NAMES and source.in_jit(node) is not None:
                yield _Use(name, node, call, False)


_TRITON_NAMES = frozenset({"sigmoid", "softmax", "maximum", "minimum"})


def _inside_name(source: TritonSource, node: cst.CSTNode) -> bool:
    """Whether the node is only part of a longer dotted name, a keyword, or an import."""
    parent = source.parent(node)
    if isinstance(parent, cst.Attribute):
        return True
    if isinstance(parent, cst.Arg) and parent.keyword is node:
        return True
    return isinstance(parent, cst.ImportAlias | cst.AsName | cst.ImportFrom | cst.Param)


def _import_edits(source: TritonSource) -> Iterator[Edit]:
    """Imports that name CUDA's library, or one that newer Triton does not have, or functions that HIP lacks.

    Triton looks up every global that comes from the neutral module in the vendor's, used or not, so a name that HIP
    lacks may not stay behind.
    """
    for node in source.nodes:
        if isinstance(node, cst.ImportFrom) and node.module is not None and not isinstance(node.names, cst.ImportStar):
            module = dotted_name(node.module) or ""
            imported = {a.name.value for a in node.names if isinstance(a.name, cst.Name)}
            if module in (f"{TL}.extra.cuda", TL, f"{TL}.math") and imported == {"libdevice"}:
                yield replace(source, node.module, f"{TL}.extra")
            elif _names_functions(module, imported) and not _in_handler(source, node):
                yield from _function_import(source, node, node.module, imported)
        elif isinstance(node, cst.ImportAlias) and dotted_name(node.name) == CUDA:
            if isinstance(source.parent(node), cst.Import):
                yield replace(source, node.name, NEUTRAL)
        elif isinstance(node, cst.Assign) and source.enclosing_function(node) is None:
            name = (source.qualified(node.value) or "").removeprefix(f"{NEUTRAL}.").removeprefix(f"{CUDA}.")
            if (
                name in TEMPLATES
                and source.qualified(node.value) != name
                and isinstance(node.targets[0].target, cst.Name)
            ):
                line = source.statement(node)
                yield drop_line(source, line)


def _names_functions(module: str, imported: set[str]) -> bool:
    if module in (CUDA, NEUTRAL, f"{TL}.libdevice"):
        return True
    return module == f"{TL}.math" and bool(imported - TRITON_MATH)


def _function_import(
    source: TritonSource, node: cst.ImportFrom, module: cst.BaseExpression, imported: set[str]
) -> Iterator[Edit]:
    """`from <library> import a, b` without the functions that are written in Triton at their calls."""
    assert not isinstance(node.names, cst.ImportStar)
    gone = [a for a in node.names if isinstance(a.name, cst.Name) and a.name.value in TEMPLATES]
    if len(gone) == len(node.names):
        yield replace(source, node, f"from {TL}.extra import libdevice")
        return
    if dotted_name(module) != NEUTRAL:
        yield replace(source, module, NEUTRAL)
    elements: list[cst.CSTNode] = list(node.names)
    for alias in gone:
        yield drop_element(source, elements, alias)


def _in_handler(source: TritonSource, node: cst.CSTNode) -> bool:
    return any(isinstance(a, cst.ExceptHandler) for a in source.ancestors(node))


def _imports_library(source: TritonSource) -> bool:
    modules = (NEUTRAL, CUDA, f"{TL}.libdevice", f"{TL}.math.libdevice")
    return any(full in modules for full in source.imports.values())


def _library_name(source: TritonSource) -> str:
    modules = (NEUTRAL, CUDA, f"{TL}.libdevice", f"{TL}.math.libdevice")
    return next((local for local, full in source.imports.items() if full in modules), "libdevice")
