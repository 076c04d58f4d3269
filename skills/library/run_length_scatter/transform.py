"""Keep the sum of a row in registers while its index repeats, and send an atomic only where the row changes."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, apply_edits
from skills.facts import Facts
from skills.library.run_length_scatter import loop_form, program_form
from skills.scatter import scatter_of, sum_type
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, parse_triton

LOOP = "in its loop"
RUNS = tuple(f"runs of {n}" for n in (program_form.RUN, 2 * program_form.RUN, 4 * program_form.RUN))
"""Forms by their names; the longer runs are for indices that are known to be sorted."""
_FEWEST_PROGRAMS = 4 * program_form.RUN
"""At least four programs remain of a grid that is folded."""


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """The loop that walks over indices where there is one, else runs of a large grid of them."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    scatter = scatter_of(source, function) if function is not None else None
    dtype = sum_type(source, scatter, facts) if scatter is not None else None
    if function is None or scatter is None or dtype is None:
        return
    programs = facts.number("launch.grid_programs")
    for label in (LOOP, RUNS[0]):
        small = label != LOOP and programs is not None and programs < _FEWEST_PROGRAMS
        if not small and _edits(source, function, label, dtype) is not None:
            yield Site(source.line(scatter.call), label, function.name, {"dtype": dtype})


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The form that the site names."""
    return merged(kernel, site.kernel or "", site.label, str(site.variant["dtype"]))


def merged(kernel: Kernel, name: str, form: str, dtype: str) -> Kernel | None:
    """The kernel with its scatter in a form, `LOOP` or one of `RUNS`, and sums kept as `dtype`; None without one."""
    source = parse_triton(kernel)
    function = source.functions.get(name)
    edits = _edits(source, function, form, dtype) if function is not None else None
    return apply_edits(kernel, source, edits) if edits is not None else None


def _edits(source: TritonSource, function: JitFunction, label: str, dtype: str) -> list[Edit] | None:
    scatter = scatter_of(source, function)
    if scatter is None:
        return None
    if label == LOOP:
        loop = loop_form.in_loop(source, function, scatter)
        return loop_form.edits(source, function, loop, dtype) if loop is not None else None
    programs = program_form.over_programs(source, function, scatter)
    run = int(label.rsplit(" ", 1)[-1])
    return program_form.edits(source, function, programs, dtype, run) if programs is not None else None
