"""How many axes an expression has, and which scalar stands for a block's address."""

import libcst as cst
import pytest

from skills.axes import Axes
from skills.rank import LANEWISE, Ranks
from skills.shapes import Shapes
from skills.triton_source import TritonSource
from skills.uniform import Uniformity

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, n, flag, BLOCK: tl.constexpr, COLS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = i[:, None] * COLS + tl.arange(0, COLS)[None, :]
    total = tl.zeros((BLOCK,), tl.float32)
    once = x_ptr + flag + tl.zeros_like(i)
    moved = 3
    moved += flag
    stale = x_ptr + moved + tl.zeros_like(i)
    loaded = x_ptr + tl.load(x_ptr) + tl.zeros_like(i)
    for step in range(4):
        total += tl.load(x_ptr + i + step, mask=i < n, other=0.0)
    asked = EXPRESSION
"""


def asked(expression: str) -> tuple[TritonSource, cst.BaseExpression]:
    source = TritonSource(KERNEL.replace("EXPRESSION", expression))
    assigns = [n for n in source.nodes if isinstance(n, cst.Assign)]
    return source, assigns[-1].value


@pytest.mark.parametrize(
    ("expression", "rank"),
    [
        ("n + 1", 0),
        ("tl.program_id(0) * BLOCK", 0),
        ("step * BLOCK", 0),
        ("i", 1),
        ("i < n", 1),
        ("(i < n) & (flag > 0)", 1),
        ("total.to(tl.int32)", 1),
        ("tl.where(i < n, 1, 0)", 1),
        ("tl.zeros_like(i)", 1),
        ("tl.sigmoid(j)", 2),
        ("tl.math.erf(n)", 0),
        ("tl.fdiv(i, n, ieee_rounding=True)", 1),
        ("tl.full([BLOCK], 0, tl.int32)", 1),
        ("tl.broadcast_to(flag, (BLOCK, COLS))", 2),
        ("x_ptr + j", 2),
        ("tl.load(x_ptr + j, mask=j < n, other=0)", 2),
        ("i[:, None]", 2),
        ("tl.sum(i)", 0),
        ("tl.sum(j, axis=1)", 1),
        ("tl.sum(j, 1, keep_dims=True)", None),
        ("tl.reshape(i, (4, BLOCK // 4))", None),
        ("helper(i)", None),
        ("unknown + i", None),
    ],
)
def test_rank(expression: str, rank: int | None) -> None:
    source, node = asked(expression)
    assert Ranks(source, source.functions["kernel"]).of(node) == rank


@pytest.mark.parametrize(
    ("expression", "scalar"),
    [("once", "x_ptr + flag"), ("stale", None), ("loaded", None), ("x_ptr + moved", "x_ptr + moved")],
)
def test_a_scalar_stands_for_a_name_only_where_it_cannot_have_changed(expression: str, scalar: str | None) -> None:
    source, node = asked(expression)
    assert Uniformity(source, source.functions["kernel"]).scalar_of(node) == scalar


@pytest.mark.parametrize("name", LANEWISE)
def test_lanewise_calls_are_blocks_of_their_operands(name: str) -> None:
    source, node = asked(f"tl.{name}(i, i, i)")
    function = source.functions["kernel"]
    assert Ranks(source, function).of(node) == 1
    assert Axes(source, function).varying(node) == {-1}
    assert Shapes(source, function).of(node) == ("BLOCK",)
    assert Uniformity(source, function).is_block(node)
    assert Uniformity(source, function).scalar_of(node) is None


def test_a_rounded_up_quotient_of_lanes_is_no_scalar() -> None:
    source, node = asked("tl.cdiv(i, 4)")
    assert not Uniformity(source, source.functions["kernel"]).is_scalar(node)
    source, node = asked("tl.cdiv(n, 4)")
    assert Uniformity(source, source.functions["kernel"]).is_scalar(node)
