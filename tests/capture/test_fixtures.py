"""Test functions of a user's file get what pytest would give them."""

from __future__ import annotations

import textwrap

import pytest

from sandbox.capture import capture
from sandbox.kernel import Kernel, Language
from sandbox.target import load_target

HEAD = """
import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


def twice(x):
    y = torch.empty_like(x)
    scale[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y

"""


def sizes(tests: str) -> tuple[list[object], str]:
    """The third argument of each launch, and how the file ended."""
    kernel = Kernel(HEAD + textwrap.dedent(tests), "test_scale.py", Language.TRITON)
    found = capture(kernel, load_target("gfx950"), executor="interpreter")
    given = [next(a.value.value for a in launch.args if a.name == "n") for launch in found.launches]
    return given, found.outcome.status


@pytest.mark.parametrize(
    ("tests", "expected"),
    [
        (
            """
            @pytest.mark.parametrize("n", [100, 200])
            def test_scale(n, request, device):
                assert request.node.name == f"test_scale[{n}]" and request.node.callspec.params == {"n": n}
                twice(torch.ones(n, device=device))
            """,
            [100, 200],
        ),
        (
            """
            @pytest.fixture(params=[300, 400])
            def size(request):
                return request.param

            @pytest.fixture
            def x(size, tmp_path):
                assert tmp_path.is_dir()
                yield torch.ones(size, device="cuda")
                raise AssertionError("the rest of a fixture is not run")

            def test_scale(x, device="cuda"):
                twice(x)
            """,
            [300],
        ),
        (
            """
            SIZE = []

            @pytest.fixture(autouse=True)
            def prepared():
                SIZE.append(500)

            @pytest.fixture(name="made")
            def another_name():
                return torch.ones(SIZE[0], device="cuda")

            def test_scale(made):
                twice(made)
            """,
            [500],
        ),
        (
            """
            def test_scale():
                twice(torch.ones(700, device="cuda"))

            if __name__ == "__main__":
                raise ValueError("needs arguments")
            """,
            [700],
        ),
        (
            """
            def test_unknown(mocker, request):
                twice(torch.ones(1, device="cuda"))

            def test_known(request):
                twice(torch.ones(600, device="cuda"))
            """,
            [600],
        ),
    ],
)
def test_fixtures(tests: str, expected: list[int]) -> None:
    assert sizes(tests) == (expected, "passed")


def test_a_fixture_that_fails_is_the_files_failure() -> None:
    found, status = sizes(
        """
        @pytest.fixture
        def x():
            raise RuntimeError("no data")

        def test_scale(x):
            twice(x)

        def test_other():
            twice(torch.ones(7, device="cuda"))
        """
    )
    assert (found, status) == ([7], "failed")


def test_a_file_that_fails_before_its_tests_are_all_defined_is_not_run_by_halves() -> None:
    kernel = Kernel(
        HEAD + "def test_scale():\n    twice(torch.ones(7, device='cuda'))\n\nraise ValueError('no')\n",
        "test_scale.py",
        Language.TRITON,
    )
    found = capture(kernel, load_target("gfx950"), executor="interpreter")
    assert found.outcome.status == "failed" and "ValueError: no" in str(found.outcome.exception)
