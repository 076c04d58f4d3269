"""A further grid axis that divides the loop over k; parts go to a buffer that a second kernel sums."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, apply_edits, insert_function_before, tl_name
from skills.facts import Facts
from skills.gemm_loop import GemmLoop, gemm_loop, split_tiles
from skills.knobs import launch_knobs, set_knobs, variant_label, variant_values
from skills.library.split_k.host import host_edits
from skills.library.split_k.loop import divided_loop
from skills.names import fresh_name
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, parse_triton

_VARIANTS = 3
_PARTS, _KNOWN = "k_parts", "known"
"""Keys of a variant: how many parts at most, and the launch's numbers as they were seen."""
_SUM = '''@triton.jit
def {name}(partial_ptr, out_ptr, elements, parts, BLOCK: {tl}.constexpr):
    """out = the sum of `parts` buffers of `elements` each, in order."""
    offs = {tl}.program_id(0) * BLOCK + {tl}.arange(0, BLOCK)
    total = {tl}.zeros((BLOCK,), {tl}.float32)
    for _ in range(0, parts):
        total += {tl}.load(partial_ptr + offs, mask=offs < elements, other=0.0)
        partial_ptr += elements
    {tl}.store(out_ptr + offs, total.to(out_ptr.dtype.element_ty), mask=offs < elements)
'''


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per tile and number of parts that rank first, where dividing k may pay."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    launches = source.launches_of(function.name) if function is not None else ()
    if function is None or not launches:
        return
    knobs, recorded = launch_knobs(source, function, launches[0]), facts.largest("launch.constants")
    values = {name: knob.value if knob.value is not None else recorded.get(name) for name, knob in knobs.items()}
    current = {name: value for name, value in values.items() if value is not None}
    loop = gemm_loop(source, function, current)
    if loop is None or _edits(source, function, loop, 2) is None:
        return
    given = all(knobs[n].value is not None for n in (loop.block_m, loop.block_n, loop.block_k))
    for settings, parts in split_tiles(loop, current, facts, target, _VARIANTS, fixed=not given):
        if not settings or set_knobs(source, function, settings) is not None:
            label = ", ".join(filter(None, [f"k in {parts} parts", variant_label(settings)]))
            known = variant_label(current)
            yield Site(source.line(function.node), label, function.name, {**settings, _PARTS: parts, _KNOWN: known})


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The tile first, then kernel, launches and the kernel that sums."""
    settings = {name: value for name, value in variant_values(site.variant).items() if name != _PARTS}
    tiled: Kernel | None = kernel
    if settings:
        source = parse_triton(kernel)
        function = source.functions.get(site.kernel or "")
        edits = set_knobs(source, function, settings) if function is not None else None
        tiled = apply_edits(kernel, source, edits or [])
    if tiled is None:
        return None
    source = parse_triton(tiled)
    function = source.functions.get(site.kernel or "")
    pairs = (pair.partition("=") for pair in str(site.variant[_KNOWN]).split(", "))
    known = {name: int(value) for name, _, value in pairs} | settings
    loop = gemm_loop(source, function, known) if function is not None else None
    if function is None or loop is None:
        return None
    return apply_edits(tiled, source, _edits(source, function, loop, int(site.variant[_PARTS])) or [])


def _edits(source: TritonSource, function: JitFunction, gemm: GemmLoop, parts: int) -> list[Edit] | None:
    """None where the kernel or a launch of it does not allow that k is divided."""
    launches = source.launches_of(function.name)
    divided = divided_loop(source, function, gemm)
    if divided is None or "torch" not in source.imports or source.imports.get("triton") != "triton":
        return None
    total = fresh_name("sum_partials", set(source.functions) | set(source.imports))
    edits = [*divided.edits, insert_function_before(source, function, _SUM.format(name=total, tl=tl_name(source)))]
    for launch in launches:
        host = host_edits(source, function, launch, gemm, divided, total, parts)
        if host is None:
            return None
        edits += host
    return edits
