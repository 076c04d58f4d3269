"""Several narrow rows per program: what keeps a kernel at one, which axis is taken, how it stands to `idle-warps`."""

import pytest

from sandbox.target import load_target
from skills.cases import cases_of
from skills.condition import Value
from skills.match import match
from skills.row_ranks import Names, Packed, pack
from skills.skill import Library, load_library
from skills.source_facts import collect_facts
from skills.triton_source import TritonSource

SKILL = load_library()["pack-rows"]
NAMES = Names("ROWS", "n_rows", "rows", "in_rows")
CASES = {case.name: case for case in cases_of(SKILL)}
REASONS = {
    "lengths_per_row": "a bound of a loop (line 10) differs by row or column",
    "branch_per_row": "a branch's condition (line 10) differs by row or column",
    "old_value_read": "line 9: the old value is read",
    "one_total": "line 11: every row counts at one address",
    "running_sum": "`tl.cumsum` is not known to be elementwise",
    "helper_that_loads": "`entry` is not elementwise",
    "rows_already_packed": "`rows[:, None]` is not understood",
    "inline_assembly": "`tl.inline_asm_elementwise` is not known to be elementwise",
    "block_pointer": "`tl.make_block_ptr` is not known to be elementwise",
    "persistent": "it reads the number of programs",
    "rows_share_an_address": "line 10: rows share an address but not what they do there",
}
HEAD = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols)
"""


def packed(body: str) -> Packed | str:
    source = TritonSource(HEAD + "".join(f"    {line}\n" for line in body.splitlines()))
    return pack(source, source.functions["kernel"], 0, NAMES)


@pytest.mark.parametrize("name", REASONS)
def test_reason_for_one_row_per_program(name: str) -> None:
    source = TritonSource(CASES[name].before.source)
    assert pack(source, source.functions["kernel"], 0, NAMES) == REASONS[name]


@pytest.mark.parametrize(
    "body",
    [
        "tl.store(y_ptr + row * n + cols, x if n > 0 else -x)",
        "tl.store(y_ptr + row, tl.argmax(x, axis=0))",
        "tl.store(y_ptr + row * n + cols, x, mask=None)",
        "a, b = x * 2, row\ntl.store(y_ptr + b * n + cols, a)",
        "tl.store(y_ptr + row * n + cols, tl.where(cols < n, tl.math.exp(x), 0.0))",
        "if n > 3:\n    y = x\nelif n > 2:\n    y = -x\nelse:\n    y = x * x\ntl.store(y_ptr + row * n + cols, y)",
    ],
)
def test_can_be_packed(body: str) -> None:
    assert isinstance(packed(body), Packed)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("tl.store(y_ptr + row, tl.sum(row))", "reduces what is no tile"),
        ("tl.store(y_ptr + row * n + cols, tl.max(x, axis=0, return_indices=True))", "in a way of its own"),
        ("tl.store(y_ptr + row * n + cols, tl.sum(x, keep_dims=True))", "in a way of its own"),
        ("if 0 < row < n:\n    tl.store(y_ptr + row * n + cols, x)", "chains comparisons"),
        ("while n > 0:\n    n -= 1", "no assignment, loop or branch"),
        ("tl.store(y_ptr + row * n + tl.arange(0, 8), 0.0)", "not of one width"),
        ("m = 0.0\nfor i in range(n):\n    m = m + x\ntl.store(y_ptr + row * n + cols, m)", "another shape"),
        ("y = row\nif n > 3:\n    y = x\ntl.store(y_ptr + row * n + cols, y)", "`y` has several shapes"),
        ("y = x.sum()\ntl.store(y_ptr + row, y)", "not known to be elementwise"),
        ("tl.debug_barrier()\ntl.store(y_ptr + row * n + cols, x)", "not known to be elementwise"),
        ("tl.multiple_of(row, 8)\ntl.store(y_ptr + row * n + cols, x)", "differs by row or column"),
        ("tl.store(y_ptr + row, x.shape[0])", "is not understood"),
        ("tl.store(y_ptr + row * n + cols, tl.load(x_ptr, mask=row < n))", "rows share an address"),
    ],
)
def test_cannot_be_packed(body: str, reason: str) -> None:
    found = packed(body)
    assert isinstance(found, str) and reason in found


def sites(name: str, **facts: bool | int | str) -> list[str]:
    case = CASES[name]
    raw = {**case.spec.facts, **{k.replace("__", "."): v for k, v in facts.items()}}
    given: dict[str, Value] = {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()}
    bare = collect_facts(case.before, case.target)
    known = collect_facts(case.before, case.target, observed={n: [given] for n in bare.kernels}, file_values=given)
    return [m.site.label for m in match(case.before, known, case.target, Library({SKILL.id: SKILL}))]


def test_a_grid_that_would_starve_keeps_smaller_tiles() -> None:
    wide = ["2048 elements per program"]
    assert sites("gathered_rows") == wide
    assert sites("gathered_rows", launch__grid_programs=40_000) == ["1024 elements per program", *wide]
    assert sites("gathered_rows", launch__grid_programs=300) == ["256 elements per program", *wide]


def test_rows_of_a_thousand_columns_are_left_alone() -> None:
    assert sites("gathered_rows", block_elements=1024) == []
    assert sites("gathered_rows", block_elements=512, launch__grid_programs=300) == wide_only()


def wide_only() -> list[str]:
    """Lanes are full already: only a clock tells whether wider accesses are worth fewer programs."""
    return ["2048 elements per program"]


def test_idle_warps_wait_for_it_and_have_nothing_left_to_do_behind_it() -> None:
    library = load_library()
    assert SKILL.id in library["idle-warps"].data.after
    target = load_target("gfx950")
    case = CASES["gathered_rows"]
    assert case.after is not None
    facts: dict[str, Value] = {"compile.status": "ok", "launch.threads_per_workgroup": 256}
    for kernel, elements, found in ((case.before, 32, ["idle-warps"]), (case.after, 2048, [])):
        observed = {"gather_kernel": [{**facts, "block_elements": elements}]}
        matches = match(
            kernel,
            collect_facts(kernel, target, observed=observed),
            target,
            Library({"idle-warps": library["idle-warps"]}),
        )
        assert [m.skill.id for m in matches] == found
