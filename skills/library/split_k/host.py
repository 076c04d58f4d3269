"""The host's side of a divided k: how many parts, the buffer they go to, the launch that sums them."""

from __future__ import annotations

import libcst as cst

from skills.allocation import allocation
from skills.edit import Edit, add_argument, insert_after, insert_before, replace
from skills.gemm_loop import LEAST_STEPS, PROGRAMS_PER_UNIT, GemmLoop
from skills.idioms import bound_argument, operand, taken_names
from skills.knobs import grid_expression
from skills.library.split_k.loop import DividedLoop
from skills.names import fresh_name
from skills.triton_source import JitFunction, Launch, TritonSource

_BLOCK = 1024


def host_edits(
    source: TritonSource,
    function: JitFunction,
    launch: Launch,
    gemm: GemmLoop,
    divided: DividedLoop,
    total: str,
    parts: int,
) -> list[Edit] | None:
    """Edits of one launch; None where its result is no whole tensor that its function makes, or sizes are not
    written at the launch."""
    out, host = bound_argument(function, launch, divided.output), launch.host
    made = allocation(source, function, launch, divided.output)
    if out is None or host is None or made is None or not made.untouched or made.fill not in ("empty", "zeros"):
        return None
    if not isinstance(source.parent(launch.call), cst.Expr) or any(a.star for a in launch.call.args):
        return None
    wanted = (gemm.m, gemm.n, gemm.k, gemm.block_m, gemm.block_n, gemm.block_k)
    given = [bound_argument(function, launch, one) for one in wanted]
    if any(g is None for g in given):
        return None
    m, n, k, block_m, block_n, block_k = (operand(source, g) for g in given if g is not None)
    name, taken = made.name, taken_names(host)
    units, count, partial = (fresh_name(stem, taken) for stem in ("units", "k_parts", "partial"))
    tiles = f"(triton.cdiv({m}, {block_m}) * triton.cdiv({n}, {block_n}))"
    fewest = f"{k} // ({LEAST_STEPS} * {block_k})"
    before = [
        f"{units} = torch.cuda.get_device_properties({name}.device).multi_processor_count",
        f"{count} = max(1, min({parts}, {PROGRAMS_PER_UNIT} * {units} // {tiles}, {fewest}))",
        f"{partial} = {name} if {count} == 1 else "
        f"torch.{made.fill}(({count}, {name}.numel()), device={name}.device, dtype=torch.float32)",
    ]
    summed = f"{total}[(triton.cdiv({name}.numel(), {_BLOCK}),)]"
    after = [
        f"if {count} > 1:",
        f"    {summed}({partial}, {name}, {name}.numel(), {count}, BLOCK={_BLOCK})",
    ]
    return [
        insert_before(source, launch.call, before),
        _longer_grid(source, launch, count),
        replace(source, out, partial),
        add_argument(source, launch.call, f"{divided.stride}={name}.numel()"),
        insert_after(source, launch.call, after),
    ]


def _longer_grid(source: TritonSource, launch: Launch, count: str) -> Edit:
    """One axis more: in the tuple where it is written at the launch or in its lambda, around the variable else."""
    grid = grid_expression(source, launch)
    inner = grid.body if isinstance(grid, cst.Lambda) else grid
    if grid is launch.grid or isinstance(grid, cst.Lambda):
        assert isinstance(inner, cst.Tuple)
        elements = ", ".join(source.code(e.value) for e in inner.elements)
        start, end = source.outer_span(inner)
        return Edit(start, end, f"({elements}, {count})")
    return replace(source, launch.grid, f"(*{source.code(launch.grid)}, {count})")
