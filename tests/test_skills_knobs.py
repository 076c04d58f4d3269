"""Launch numbers: which can be set and how, which tiles may grow, and which variants are tried first."""

import pytest

from sandbox.kernel import Kernel, Language
from sandbox.target import load_target
from skills.edit import apply_edits
from skills.facts import Facts, Value, target_facts
from skills.knobs import set_knobs, tied_axes
from skills.launch_variants import bounded_tiles, first_variants, launch_sizes
from skills.skill import Site, load_library
from skills.triton_source import JitFunction, TritonSource, parse_triton

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BLOCKS: tl.constexpr = 0):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) + 1, mask=offs < n)


@triton.jit
def other(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 0)


"""
HALF = "max(1, {} // 2)"


def edited(host: str, **values: int | str) -> str | None:
    """The host code with these values set, or None."""
    kernel = Kernel(KERNEL + host, "add.py", Language.TRITON)
    source = parse_triton(kernel)
    edits = set_knobs(source, source.functions["add"], values)
    made = apply_edits(kernel, source, edits) if edits is not None else None
    return made.source[len(KERNEL) :] if made is not None else None


def test_a_computed_tile_is_changed_where_the_grid_follows_it() -> None:
    host = """def run(x, y, n):
    block, warps = pick(n)
    grid = (triton.cdiv(n, block),)
    add[grid](x, y, n, block, num_warps=warps)
"""
    changed = host.replace("pick(n)\n", "pick(n)\n    block = max(1, block // 2)\n")
    assert edited(host, BLOCK=HALF) == changed
    assert edited(changed, BLOCK=HALF) is None, "once is enough"
    assert edited(host, num_warps=HALF) == host.replace("num_warps=warps", "num_warps=max(1, warps // 2)")


def test_a_parameter_of_the_host_is_changed_on_entry() -> None:
    host = '''def run(x, y, n, block):
    """Adds one."""
    add[(triton.cdiv(n, block),)](x, y, n, block)
'''
    assert edited(host, BLOCK=HALF) == host.replace('one."""\n', 'one."""\n    block = max(1, block // 2)\n')


def test_an_argument_that_counts_blocks_follows_the_block() -> None:
    host = """def run(x, y, n):
    if n > 9:
        block = pick(n)
    else:
        block = 16
    count = triton.cdiv(n, block)
    add[lambda meta: (count,)](x, y, n, BLOCK=block, BLOCKS=count)
"""
    assert edited(host, BLOCK=HALF) is None, "nothing shows how the grid depends on it"
    by_meta = host.replace("(count,)", 'triton.cdiv(n, meta["BLOCK"]),')
    assert edited(by_meta, BLOCK=HALF) == by_meta.replace("    count =", "    block = max(1, block // 2)\n    count =")


@pytest.mark.parametrize(
    "host",
    [
        "def run(x, y, n):\n    add[(triton.cdiv(n, pick(n)),)](x, y, n, BLOCK=pick(n))\n",
        "def run(x, y, n, b):\n    other[(1,)](x, BLOCK=b)\n    add[(triton.cdiv(n, b),)](x, y, n, b)\n",
        "def run(x, y, n):\n    block = pick(n)\n    add[(n,)](x, y, n, block)\n",
    ],
    ids=["no variable", "another kernel's, too", "grid unrelated"],
)
def test_a_computed_tile_stays_where_not_all_of_it_is_in_sight(host: str) -> None:
    assert edited(host, BLOCK=HALF) is None


def test_options_that_are_an_expression() -> None:
    host = "def run(x, y, n):\n    add[(n,)](x, y, n, BLOCK=1, num_warps=8 if fast(x) else 4)\n"
    assert edited(host, num_warps=HALF) == host.replace("8 if fast(x) else 4", "max(1, (8 if fast(x) else 4) // 2)")
    assert edited(host, num_warps=2) == host.replace("8 if fast(x) else 4", "2")


ROWS = """
import triton
import triton.language as tl


@triton.jit
def rows(x_ptr, y_ptr, rows, cols, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    x = {id} * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    for start in range(0, cols, RBLOCK):
        r = start + tl.arange(0, RBLOCK)[None, :]
        tl.store(y_ptr + x * cols + r, tl.load(x_ptr + x * cols + r, {mask}), {mask})


def run(x, y):
    rows[(2, triton.cdiv(x.shape[0], 32))](x, y, *x.shape, XBLOCK=32, RBLOCK=32)
"""


def parsed(
    mask: str = "(x < rows) & (r < cols)", program: str = "tl.program_id(1)"
) -> tuple[TritonSource, JitFunction]:
    text = ROWS.replace("{mask}", mask).replace("{id}", program)
    source = parse_triton(Kernel(text, "rows.py", Language.TRITON))
    return source, source.functions["rows"]


@pytest.mark.parametrize(
    ("mask", "bounded"),
    [("(x < rows) & (r < cols)", {"XBLOCK", "RBLOCK"}), ("r < cols", {"RBLOCK"}), ("None", set())],
)
def test_only_masked_tiles_may_grow(mask: str, bounded: set[str]) -> None:
    assert bounded_tiles(*parsed(mask), ["XBLOCK", "RBLOCK"]) == bounded


def test_the_grid_axis_of_a_tile() -> None:
    source, function = parsed()
    assert tied_axes(source, function) == {"XBLOCK": 1}
    edits = set_knobs(source, function, {"XBLOCK": 64})
    assert edits is not None and [e.text for e in edits] == ["64", "64"]


def known(target: str, **values: Value) -> Facts:
    return Facts({**target_facts(load_target(target)), **{k.replace("__", "."): v for k, v in values.items()}}, {})


def test_variants_keep_the_grid_full_and_the_loop_filled() -> None:
    source, function = parsed()
    now = {"XBLOCK": 32, "RBLOCK": 32, "num_warps": 4}
    target = load_target("gfx950")

    def variants(programs: int, cols: int) -> list[dict[str, int]]:
        facts = known("gfx950", launch__grid_programs=programs, launch__integers=(f"cols={cols}", "rows=1"))
        return first_variants(launch_sizes(source, function, now, facts), target, 99)

    assert all(v.get("XBLOCK", 32) <= 32 for v in variants(256, 4096)), "a larger one would leave units idle"
    assert any(v.get("XBLOCK", 32) > 32 for v in variants(10**6, 4096))
    assert all(v.get("RBLOCK", 32) <= 64 for v in variants(10**6, 60)), "no longer than a row"


def test_an_autotuned_product_gets_the_tiles_that_rank_first() -> None:
    case = next(iter(sorted((load_library()["occupancy-and-mfma-options"].folder / "cases").glob("autotuned"))))
    kernel = Kernel((case / "before.py").read_text(), "before.py", Language.TRITON)
    name = next(f.name for f in parse_triton(kernel).functions.values() if f.autotune is not None)
    facts = known(
        "gfx950",
        kernel__name=name,
        source__has_dot=True,
        launch__integers=("K=8192", "M=16", "N=8192"),
        launch__arg_dtypes=("bfloat16",),
    )
    skill = load_library()["config-retune"]
    (site,) = skill.module.find(kernel, facts, load_target("gfx950"))
    assert isinstance(site, Site)
    texts = str(site.variant["configs"]).splitlines()
    assert any('"BM": 16' in text for text in texts), texts
