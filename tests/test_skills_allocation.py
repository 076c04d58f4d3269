"""When memory that a host passes to a launch is its own, and when the launch is the first to touch it."""

import pytest

from skills.allocation import Allocation, allocation
from skills.cases import cases_of
from skills.skill import load_library
from skills.triton_source import TritonSource

KERNELS = """
import numpy
import torch
import triton
import triton.language as tl
from torch import zeros


@triton.jit
def add(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + at, tl.load(x_ptr + at))


@triton.jit
def other(x_ptr, y_ptr):
    tl.store(y_ptr, tl.load(x_ptr))


"""
ZEROS = "out = torch.zeros(n)"
LAUNCH = "add[(n,)](x, out, n, BLOCK=64)"


def made(*lines: str, head: str = "def run(x, n):", launch: int = -1) -> Allocation | None:
    """What is read of `out_ptr` at a launch of `add`, by default the last, in a host function with these lines."""
    source = TritonSource(KERNELS + "\n".join([head, *(f"    {line}" for line in lines)]) + "\n")
    function = source.functions["add"]
    return allocation(source, function, source.launches_of("add")[launch], "out_ptr")


@pytest.mark.parametrize(
    ("value", "fill"),
    [
        ("torch.zeros(n, dtype=x.dtype)", "zeros"),
        ("torch.zeros_like(x)", "zeros"),
        ("x.new_zeros(n)", "zeros"),
        ("zeros(n)", "zeros"),
        ("torch.empty((n, 4), device=x.device)", "empty"),
        ("x.new_empty(n)", "empty"),
        ("torch.ones(n)", "ones"),
        ("torch.full_like(x, 2.0)", "full"),
    ],
)
def test_memory_that_a_host_makes(value: str, fill: str) -> None:
    found = made(f"out = {value}", LAUNCH)
    assert found is not None and found.name == "out"
    assert found.fill == fill and found.untouched


@pytest.mark.parametrize(
    "value",
    [
        "numpy.zeros(n)",
        "pool.zeros(n)",  # a project's own function may hand out what it has
        "torch.zeros(n, out=x)",
        "torch.zeros(n, **options)",  # `out` may be among them
        "torch.empty_strided((n, 4), (0, 1))",  # elements share places
        "x.new_tensor(values)",
        "torch.zeros(n)[1:]",
        "torch.zeros(2 * n).view(2, n)",
        "torch.zeros(n) if x is None else x",
        "x",
    ],
)
def test_values_that_are_no_new_memory_as_a_whole(value: str) -> None:
    assert made(f"out = {value}", LAUNCH) is None


@pytest.mark.parametrize(
    "lines",
    [
        (ZEROS, "size = out.numel() * out.element_size()", LAUNCH),
        (ZEROS, "add[(out.shape[0],)](x, out, out.stride(0), BLOCK=64)"),
        (ZEROS, "second = torch.empty_like(out)", LAUNCH),
        (ZEROS, "second = out.new_empty(n)", LAUNCH),
        (ZEROS, "grid = lambda meta: (triton.cdiv(out.numel(), meta['BLOCK']),)", "add[grid](x, out, n, BLOCK=64)"),
        (ZEROS, "add[(n,)](x_ptr=x, out_ptr=out, n=n, BLOCK=64)"),
        ("out: torch.Tensor = torch.zeros(n)", LAUNCH),
        ("if n > 4:", f"    {ZEROS}", f"    {LAUNCH}"),
        ("for x in xs:", f"    {ZEROS}", f"    {LAUNCH}", "    results.append(out)"),
        (ZEROS, LAUNCH, "other[(1,)](out, x)", "return out[1:]"),
    ],
)
def test_what_leaves_memory_untouched(lines: tuple[str, ...]) -> None:
    found = made(*lines)
    assert found is not None and found.untouched


@pytest.mark.parametrize(
    "lines",
    [
        (ZEROS, LAUNCH, LAUNCH),
        (ZEROS, "for part in x:", "    add[(n,)](part, out, n, BLOCK=64)"),
        (ZEROS, "while n:", f"    {LAUNCH}"),
        (ZEROS, f"[{LAUNCH} for x in xs]"),
        ("for x in xs:", f"    {ZEROS}", "    for _ in range(2):", f"        {LAUNCH}"),
    ],
)
def test_launches_of_the_kernel_share_memory_that_is_not_untouched(lines: tuple[str, ...]) -> None:
    found = made(*lines)
    assert found is not None and not found.untouched


def test_the_first_of_two_launches_finds_memory_untouched() -> None:
    found = made(ZEROS, LAUNCH, LAUNCH, launch=0)
    assert found is not None and found.untouched


@pytest.mark.parametrize(
    "lines",
    [
        (ZEROS, "other[(1,)](x, out)", LAUNCH),  # what it added is there, and no zero
        (ZEROS, "out.fill_(1)", LAUNCH),
        (ZEROS, "out[0] = 1", LAUNCH),
        (ZEROS, "view = out[1:]", LAUNCH),
        (ZEROS, "x = out", LAUNCH),
        (ZEROS, "keep(out)", LAUNCH),
        (ZEROS, "torch.zeros_like(x, out)", LAUNCH),
        (ZEROS, "first = out.T", LAUNCH),
        (ZEROS, "def later():", "    return out", LAUNCH),
        (ZEROS, "add[(n,)](out, other_out, n, BLOCK=64)", LAUNCH),  # read by the same kernel
        (ZEROS, "add[(n,)](out, out, n, BLOCK=64)"),  # two parameters for one memory
        (ZEROS, "add[(n,)](out[1:], out, n, BLOCK=64)"),
        (ZEROS, "for part in x:", f"    {LAUNCH}", "    view = out[1:]"),  # the next turn finds the view
        (ZEROS, f"again = lambda: {LAUNCH}", "out.fill_(1)", "again()"),
    ],
)
def test_memory_that_something_else_was_handed(lines: tuple[str, ...]) -> None:
    assert made(*lines) is None


@pytest.mark.parametrize(
    "lines",
    [
        (ZEROS, "out = x", LAUNCH),
        (ZEROS, "out += 1", LAUNCH),
        (ZEROS, LAUNCH, "out = out / n"),  # one name, two tensors
        ("if n:", f"    {ZEROS}", "else:", "    out = torch.empty(n)", LAUNCH),
        (ZEROS, "for out in xs:", f"    {LAUNCH}"),
        (ZEROS, "out, y = y, out", LAUNCH),
        (ZEROS, "with held(x) as out:", f"    {LAUNCH}"),
        (ZEROS, "if (out := x) is not None:", f"    {LAUNCH}"),
        ("global out", ZEROS, LAUNCH),
        ("out = again = torch.zeros(n)", LAUNCH),
        ("out, y = torch.zeros((2, n))", LAUNCH),
        ("self.out = torch.zeros(n)", "add[(n,)](x, self.out, n, BLOCK=64)"),
        ("add[(n,)](x, torch.zeros(n), n, BLOCK=64)",),
        (LAUNCH, ZEROS),
    ],
)
def test_names_that_are_not_one_tensor(lines: tuple[str, ...]) -> None:
    assert made(*lines) is None


@pytest.mark.parametrize("head", ["def run(x, n, out=None):", "def run(x, n, *, out):", "def run(*out):"])
def test_memory_of_the_caller(head: str) -> None:
    assert made("if out is None:", f"    {ZEROS}", LAUNCH, head=head) is None
    assert made("if n:", f"    {ZEROS}", LAUNCH, head=head) is None


def sites_with(skill: str, case: str, old: str, new: str) -> tuple[list[str], str]:
    """Labels of a skill's sites in the kernel of a case with one line of it replaced, and the first one's edit."""
    given = next(c for c in cases_of(load_library()[skill]) if c.name == case)
    assert given.before.source.count(old) == 1
    kernel = given.before.with_source(given.before.source.replace(old, new))
    found = list(given.matches(kernel))
    edited = found[0].apply() if found else None
    return [m.site.label for m in found], edited.source if edited is not None else ""


@pytest.mark.parametrize(
    ("skill", "case", "line", "before"),
    [
        ("split-k", "skinny", "    skinny[(", "    c.fill_(1)"),
        ("split-k", "skinny", "    skinny[(", "    for a in halves:\n    "),
        ("parallel-parts", "two_passes", "    both_ways[", "    x = forward[1:]"),
        ("parallel-parts", "two_passes", "    both_ways[", "    backward = forward"),
        ("sort-before-scatter", "lookups_of_tables", "    out = torch.zeros(", "    idx = idx.new_ones(idx.shape)"),
    ],
)
def test_skills_that_need_memory_of_its_own_leave_a_kernel_alone(skill: str, case: str, line: str, before: str) -> None:
    assert sites_with(skill, case, line, line)[0]
    separator = "" if before.endswith(" ") else "\n"
    assert sites_with(skill, case, line, f"{before}{separator}{line}")[0] == []


def test_a_buffer_that_something_else_wrote_to_stays_in_its_type() -> None:
    line = "    grad_kernel[("
    assert sites_with("relax-atomics", "embedding_bf16", line, line)[0] == ["fp32 buffer for w_ptr", "relaxed"]
    assert sites_with("relax-atomics", "embedding_bf16", line, f"    start(w)\n{line}")[0] == ["relaxed"]


def test_a_sum_is_added_to_what_memory_held_before() -> None:
    line = "    dkdv_kernel["
    assert "tl.load(dk_ptr" not in sites_with("gqa-accumulate", "query_heads", line, line)[1]
    filled = sites_with("gqa-accumulate", "query_heads", line, f"    start(dk)\n{line}")[1]
    assert "tl.load(dk_ptr + kv, mask=n[:, None] < T) + dk" in filled and "tl.load(dv_ptr" not in filled
