"""Sort the indices of a scatter beforehand, so that equal ones stand side by side and are summed in registers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.allocation import fill_of, is_bound, parameters
from skills.edit import Edit, add_argument, append_param, apply_edits, insert_before, replace
from skills.facts import Facts
from skills.fold import grid_elements
from skills.idioms import assigned, bound_argument, names_in, program_axis, taken_names, tl_call, variables
from skills.library.run_length_scatter.transform import LOOP, RUNS, merged
from skills.library.sort_before_scatter.lookups import Lookups, lookups_of, merges, parts_of, values_of
from skills.names import fresh_name
from skills.scatter import replaced, scatter_of, sum_type
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, Launch, TritonSource, dotted_name, parse_triton, walk

_SORTS = ("sort", "argsort", "gather", "index_select", "arange")


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """The order alone where equal neighbours are merged already; else with the forms that merge them.

    Each waits for a clock: counts of the kernel leave the cost of the sort out.
    """
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    found = lookups_of(source, function, facts) if function is not None else None
    if function is None or found is None or not _same_length(found, facts):
        return
    variant: dict[str, bool | int | float | str] = dict.fromkeys(found.params, "integer")
    ordered = _ordered(kernel, function.name, facts)
    if ordered is None:
        return
    line = source.line(found.loads[0].call)
    if merges(source, function, found.key):
        yield Site(line, "sorted", function.name, variant, needs_timing=True)
        return
    scatter = scatter_of(source, function)
    dtype = sum_type(source, scatter, facts) if scatter is not None else None
    for label in (LOOP, *RUNS) if dtype is not None else ():
        if merged(ordered, function.name, label, str(dtype)) is not None:
            named = variant | {"form": label, "dtype": str(dtype)}
            yield Site(line, f"sorted, {label}", function.name, named, needs_timing=True)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The sort before each launch, and the form that the site names."""
    integers = tuple(f"{p}=int64" for p, kind in site.variant.items() if kind == "integer")
    facts = Facts({"launch.pointer_dtypes": integers})
    ordered = _ordered(kernel, site.kernel or "", facts)
    if ordered is None or "form" not in site.variant:
        return ordered
    return merged(ordered, site.kernel or "", str(site.variant["form"]), str(site.variant["dtype"]))


def _same_length(found: Lookups, facts: Facts) -> bool:
    """Whether the arrays hold as many elements as far as is known."""
    counts = facts.pairs("launch.pointer_elements")
    return len({tuple(sorted(counts[p])) for p in found.params if p in counts}) <= 1


def _ordered(kernel: Kernel, name: str, facts: Facts) -> Kernel | None:
    """The kernel with its elements in the order of their indices; None where a launch does not show what it passes."""
    source = parse_triton(kernel)
    function = source.functions[name]
    found = lookups_of(source, function, facts)
    if found is None:
        return None
    taken = taken_names(function.node)
    order = fresh_name("order_ptr", taken) if found.others else ""
    edits = list(_in_kernel(source, function, found, order, fresh_name(f"source_{found.position}", taken)))
    if found.others and not edits:
        return None
    launches = source.launches_of(name)
    for launch in launches:
        before = _before_launch(source, function, found, launch, order)
        if before is None:
            return None
        edits += before
    return apply_edits(kernel, source, edits) if launches else None


def _in_kernel(source: TritonSource, function: JitFunction, found: Lookups, order: str, element: str) -> Iterator[Edit]:
    """The element of a place loaded from the order, and read where the place stood for it; nothing where it may be
    read before it is known."""
    if not found.others:
        return
    places: dict[cst.CSTNode, cst.CSTNode] = {}
    for load in (n for n in found.loads if n.param == found.keys):
        if len(load.call.args) != 1:
            return
        line = source.statement(load.call)
        block = source.parent(line)
        after = [s for s in block.children if source.span(s)[0] >= _defined(source, block, found.position)]
        reads = [s for s in after if s is line or _holds(s, found)]
        if isinstance(block, cst.IndentedBlock) and reads:
            places.setdefault(block, reads[0])
    if any(
        not any(b in places and _within(source, o, b, places[b]) for b in source.ancestors(o)) for o in found.others
    ):
        return
    load = next(n for n in found.loads if n.param == found.keys)
    text = replaced(source, load.call, {found.keys: order})
    yield append_param(source, function, order)
    yield from (insert_before(source, line, [f"{element} = {text}"]) for line in places.values())
    yield from (replace(source, name, element) for name in found.others)


def _defined(source: TritonSource, block: cst.CSTNode, position: str) -> int:
    """Where the statement of a block ends that gives the position its value; 0 where none of it does."""
    lines = (s for s in block.children if isinstance(s, cst.SimpleStatementLine))
    ends = (source.span(s)[1] for s in lines for small in s.body if position in _given_a_value(small))
    return max(ends, default=0)


def _given_a_value(statement: cst.CSTNode) -> set[str]:
    return {name for target in assigned(statement)[0] for name in names_in(target)}


def _holds(statement: cst.CSTNode, found: Lookups) -> bool:
    own = set(map(id, found.others))
    return any(id(n) in own for n in walk(statement))


def _within(source: TritonSource, node: cst.CSTNode, block: cst.CSTNode, first: cst.CSTNode) -> bool:
    return source.span(node)[0] >= source.span(first)[0]


def _before_launch(
    source: TritonSource, function: JitFunction, found: Lookups, launch: Launch, order: str
) -> list[Edit] | None:
    """The order found, the arrays gathered by it, and both passed instead; None where the host does not show them."""
    given = {p: bound_argument(function, launch, p) for p in found.params}
    names = {p: v.value for p, v in given.items() if isinstance(v, cst.Name)}
    host = launch.host
    if len(names) != len(given) or host is None or any(a.star for a in launch.call.args):
        return None
    if any(_is_unfit(source, host, name) for name in names.values()):
        return None
    if found.base and not _rows_shown(source, function, found, launch, names[found.keys]):
        return None
    taken = taken_names(host)
    by = fresh_name("order", taken)
    new = {p: fresh_name(f"ordered_{n}", taken) for p, n in names.items()}
    keys = found.keys
    lines = [f"{new[keys]}, {by} = {names[keys]}.sort(dim=-1, stable=True)"]
    lines += [f"{new[p]} = {names[p]}.gather(-1, {by})" for p in found.params if p != keys]
    edits = [insert_before(source, launch.call, lines)]
    edits += [replace(source, value, new[p]) for p, value in given.items() if value is not None]
    return [*edits, add_argument(source, launch.call, f"{order}={by}")] if order else edits


def _is_unfit(source: TritonSource, host: cst.FunctionDef, name: str) -> bool:
    """Whether an array is made or put in order here already, comes from elsewhere, or its strides are passed along."""
    uses = [n for n in variables(host.body) if n.value == name]
    bound = [n for n in uses if is_bound(source, n)]
    given = [v for n in walk(host.body) if isinstance(n, cst.Assign) for t in n.targets if name in names_in(t.target)
             for v in walk(n.value) if isinstance(v, cst.Call)]  # fmt: skip
    strided = any(dotted_name(source.parent(n)) == f"{name}.stride" for n in uses)
    unknown = not bound and name not in parameters(host)
    return strided or unknown or any(_orders(v) or fill_of(source, v) is not None for v in given)


def _orders(call: cst.Call) -> bool:
    """Whether a call gives elements in an order of its own: `x.sort()`, `torch.gather(...)`, `torch.arange(...)`."""
    last = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    return isinstance(last, cst.Name) and last.value in _SORTS


def _rows_shown(source: TritonSource, function: JitFunction, found: Lookups, launch: Launch, name: str) -> bool:
    """Whether the host takes the array apart as rows of as many elements as the position counts: `rows, n = x.shape`
    with `n` on the grid."""
    elements = grid_elements(source, launch)
    parts = parts_of(source, function, found.position)
    counted = [n for name in parts for v in values_of(source, function, name) for n in walk(v)]
    axes = {program_axis(c) for n in counted if (c := tl_call(source, n, "program_id")) is not None}
    axis = next(iter(axes)) if len(axes) == 1 else None
    if elements is None or axis is None or axis >= len(elements) or launch.host is None:
        return False
    return any(last in names_in(elements[axis]) for last in _last_sizes(launch.host, name))


def _last_sizes(host: cst.FunctionDef, name: str) -> Iterator[str]:
    """Names of the last size where an array of two axes is taken apart."""
    for node in walk(host.body):
        if isinstance(node, cst.Assign) and dotted_name(node.value) == f"{name}.shape":
            target = node.targets[0].target
            if isinstance(target, cst.Tuple) and len(target.elements) == 2:
                last = target.elements[-1].value
                if isinstance(last, cst.Name):
                    yield last.value
