"""Where a file decides how many warps a launch has."""

import pytest

from sandbox.kernel import parse_kernel
from skills.triton_source import parse_triton
from skills.warps import decisions, sinks, understood

HEAD = """
import triton
import triton.language as tl

@triton.jit
def k(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr, n)

"""


def followed(text: str) -> tuple[list[int], bool]:
    """The numbers behind every `num_warps` of a file, and whether that is all."""
    source = parse_triton(parse_kernel((HEAD + text).encode(), "k.py"))
    return sorted({d.warps for d in decisions(source)}), all(understood(source, s) for s in sinks(source))


@pytest.mark.parametrize(
    ("given", "numbers", "all_known"),
    [
        ("32", [32], True),
        ("4 if n < 9 else 32", [4, 32], True),
        ("min(32, n)", [32], True),
        ("min(8, 32)", [8], True),
        ("max(1, n // 32)", [1], False),
        ("n // 32", [], False),
        ("of(n)", [2, 32], True),
        ("SIZES[n]", [8, 32], True),
        ("BY_NAME['far']", [32], True),
        ("Tuned.WARPS", [16], True),
        ("elsewhere.of(n)", [], False),
    ],
)
def test_values_are_followed_to_their_literals(given, numbers, all_known):
    text = f"""
SIZES = [8, 32]
BY_NAME = {{"near": 4, "far": 32}}

class Tuned:
    WARPS = 16

def of(n):
    if n > 5:
        return 32
    return 2

def run(x, n):
    k[(1,)](x, n, BLOCK=64, num_warps={given})
"""
    assert followed(text) == (numbers, all_known)


def test_a_parameter_is_what_callers_give_and_may_be_something_else():
    text = """
def run(x, n, warps=8):
    k[(1,)](x, n, BLOCK=64, num_warps=warps)

def main(x):
    run(x, 1, warps=32)
    run(x, 1, 64)
"""
    assert followed(text) == ([8, 32, 64], False)
    source = parse_triton(parse_kernel((HEAD + text).encode(), "k.py"))
    assert all(d.at_launch for d in decisions(source))


def test_numbers_of_inner_functions_and_other_variables_are_not_taken_along():
    text = """
def run(x, n):
    num_warps, size = 4, 32
    other = 32
    k[(1,)](x, n, BLOCK=size, num_warps=num_warps)
"""
    assert followed(text) == ([4], True)


def test_loops_and_comprehensions_give_their_items():
    text = """
WARPS = [2, 32]
made = [triton.Config({}, num_warps=w) for b, w in ((64, 4), (128, 8))]
more = []
for w in WARPS:
    more.append(triton.Config({"BLOCK": 64}, num_warps=w))
"""
    assert followed(text) == ([2, 4, 8, 32], True)
