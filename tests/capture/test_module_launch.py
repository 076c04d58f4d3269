"""Launches at module level: repeated as the file spells them, so that an edit of their options and sizes counts."""

from __future__ import annotations

import ast
import textwrap

import pytest

from sandbox.capture import capture
from sandbox.child_spelled import spelled_launch
from sandbox.evaluate import Evaluator
from sandbox.kernel import Kernel, parse_kernel
from sandbox.replay import replay
from sandbox.target import load_target
from sandbox.verdict import Accepted

TARGET = load_target("gfx942")
SOURCE = """
import torch
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, 2.0 * tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


"""
HARNESS = """
torch.manual_seed(0)
count, block = 3000, 256
values = torch.randn(count, device="cuda")
doubled = torch.empty_like(values)
double[(triton.cdiv(count, block),)](values, doubled, count, BLOCK=block, num_warps=32)
torch.testing.assert_close(doubled, 2 * values)
"""
FORMS = {
    "flat": SOURCE + HARNESS,
    "main": SOURCE + 'if __name__ == "__main__":\n' + textwrap.indent(HARNESS, "    "),
}


def kernel(source: str) -> Kernel:
    return parse_kernel(source.encode(), "double.py")


@pytest.mark.parametrize("form", FORMS)
def test_an_edited_launch_is_the_one_that_is_repeated(form: str) -> None:
    taken = capture(kernel(FORMS[form]), TARGET, executor="none")
    assert [e.kind for e in taken.entries] == ["kernel"]
    edited = FORMS[form].replace("block = 3000, 256", "block = 3000, 512").replace("num_warps=32", "num_warps=8")
    repeated = replay(taken.stored, kernel(edited), TARGET, executor="none")
    assert repeated.import_error is None, "what looks at the launch's results is left out with it"
    (launch,) = repeated.launches
    assert launch.grid == (6, 1, 1)
    assert launch.options["num_warps"].value == 8
    assert {a.name: a.value.value for a in launch.args}["BLOCK"] == 512


def test_a_launch_that_does_not_fit_is_repaired_at_module_level() -> None:
    source = FORMS["main"]
    taken = capture(kernel(source), TARGET, executor="interpreter")
    verdict = Evaluator(kernel(source), taken.stored, TARGET).evaluate(kernel(source.replace("=32", "=16"))).verdict
    assert isinstance(verdict, Accepted) and verdict.built_now, verdict


@pytest.mark.parametrize(
    ("statement", "grid", "options", "constants"),
    [
        ("k[(N // B,)](x, BLOCK=B, num_warps=4)", (8,), {"num_warps": 4}, {"BLOCK": 128}),
        ("k[8](x, BLOCK=64, n=N)", 8, {}, {"BLOCK": 64, "n": 1024}),
        ("k[grid_of(x)](x, BLOCK=B, **extra)", None, None, {"BLOCK": 128}),
        ("k[(4,)](x, BLOCK=choose(), num_stages=pick())", (4,), None, {}),
    ],
)
def test_what_cannot_be_evaluated_stays_as_recorded(statement, grid, options, constants) -> None:
    tree = ast.parse(f"N = 1024\nB = 128\n{statement}\n")
    spelled = spelled_launch(tree, {}, "k", ("x", "n", "BLOCK"), (0, 1))
    assert spelled is not None
    assert (spelled.grid, spelled.options, spelled.constants) == (grid, options, constants)


def test_of_several_statements_the_recorded_one_is_meant() -> None:
    tree = ast.parse("k[(1,)](x, BLOCK=1)\nif True:\n    k[(2,)](x, BLOCK=2)\n")
    second = spelled_launch(tree, {}, "k", ("x", "BLOCK"), (1, 2))
    assert second is not None and second.grid == (2,)
    assert spelled_launch(tree, {}, "k", ("x", "BLOCK"), (0, 1)) is None, "another number of statements: no guess"
